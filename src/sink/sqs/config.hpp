// The settings of an SQS sink, and what they mean.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/field_error.hpp"
#include "format/template.hpp"
#include "sink/endpoint.hpp"
#include "sink/kind.hpp"
#include "sink/tls_settings.hpp"

namespace outbox::sink::sqs {

/// The settings as they are written.
struct SqsSettings {
  std::string url;
  std::string queue;
  std::string region;
  std::string account;
  std::string endpoint;
  std::string access_key;
  std::string secret_key;
  std::string session_token;
  std::string encoding{"text"};
  std::vector<std::string> attributes;
  std::size_t delay_seconds{0};
  std::size_t max_batch_bytes{std::size_t{256} << 10U};
  std::size_t concurrency{16};
  std::chrono::milliseconds deadline{std::chrono::seconds(20)};
  std::chrono::milliseconds connect_timeout{std::chrono::seconds(5)};
  std::string proxy;
  TlsSettings tls;
};

/// The checked settings.
struct SqsOptions {
  SqsSettings plain;  ///< The settings that need no conversion.
  std::string subscription;
  std::string region;
  Endpoint endpoint;
  /// nullopt if `url` has the queue.
  std::optional<format::Template> queue;
  /// The name of the queue, or its URL, if it is the same for all events.
  std::optional<std::string> fixed_queue;

  [[nodiscard]] bool encrypted() const { return endpoint.scheme == "https"; }
};

/// Adds an error for everything that is wrong, and then returns nullopt.
[[nodiscard]] std::optional<SqsOptions> read_options(SqsSettings settings,
                                                     const std::string& subscription,
                                                     FieldErrors& errors);

/// The region in the name of a host of AWS (sqs.eu-central-1.amazonaws.com), or nothing.
[[nodiscard]] std::string parse_region(std::string_view host);

}  // namespace outbox::sink::sqs
