// Turns requests into easy handles of libcurl, and their ends into answers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sink/curl/http_client.hpp"
#include "sink/http/answer.hpp"
#include "sink/http/config.hpp"
#include "sink/http/request.hpp"

namespace outbox::sink::http {

/// A request in progress.
struct Exchange : curl::Exchange {
  Request request;
  std::string array;  ///< The body of a request with several events.
};

class Client {
 public:
  explicit Client(const HttpOptions& options);

  /// `stamp` has further header fields.
  [[nodiscard]] curl::Easy prepare(Exchange& exchange, const std::vector<std::string>& stamp) const;
  [[nodiscard]] static std::string_view make_body(Exchange& exchange);
  /// Connects, with TLS where the URL says so, and sends nothing. Takes at most connect_timeout.
  [[nodiscard]] Answer connect() const { return client_.connect(options_.target.origin()); }

 private:
  void set_identity() const;

  const HttpOptions& options_;
  const curl::HttpClient client_;
};

}  // namespace outbox::sink::http
