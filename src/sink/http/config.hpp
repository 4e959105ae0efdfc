// The settings of an HTTP sink, and what they mean.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/field_error.hpp"
#include "sink/curl/guard.hpp"
#include "sink/http/body.hpp"
#include "sink/http/signature.hpp"
#include "sink/http/target.hpp"
#include "sink/kind.hpp"
#include "sink/tls_settings.hpp"

namespace outbox::sink::http {

/// The settings as they are written.
struct HttpSettings {
  std::string url;
  std::string method{"POST"};
  std::string secrets;
  std::string authorization;
  std::string username;
  std::string password;
  bool idempotency_key{false};
  std::string body;
  std::string body_type{kJsonBody};
  std::size_t batch{1};
  std::size_t concurrency{16};
  std::chrono::milliseconds deadline{std::chrono::seconds(20)};
  std::chrono::milliseconds connect_timeout{std::chrono::seconds(5)};
  bool allow_http{false};
  std::vector<std::string> allow_networks;
  std::string proxy;
  TlsSettings tls;
};

/// The checked settings.
struct HttpOptions {
  HttpSettings plain;  ///< The settings that need no conversion.
  Target target;
  std::optional<BodyTemplate> body;  ///< nullopt sends the message's own body.
  curl::Guard guard;
  Signer signer;
  /// Texts that must not be quoted when a receiver repeats them.
  std::vector<std::string> secrets;
};

/// Adds an error for everything that is wrong, and then returns nullopt.
[[nodiscard]] std::optional<HttpOptions> read_options(HttpSettings settings, FieldErrors& errors);

}  // namespace outbox::sink::http
