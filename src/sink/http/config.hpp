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

/// As they are written.
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

/// Settings that were checked.
struct HttpOptions {
  HttpSettings plain;  ///< What needs no more than that.
  Target target;
  std::optional<BodyTemplate> body;  ///< None: the message's own.
  curl::Guard guard;
  Signer signer;
  std::vector<std::string> secrets;  ///< What must not be quoted when a receiver repeats it.
};

/// Complains about everything that is wrong; then there are none.
[[nodiscard]] std::optional<HttpOptions> read_options(HttpSettings settings, FieldErrors& errors);

}  // namespace outbox::sink::http
