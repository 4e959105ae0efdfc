// Turns HTTP requests into easy handles of libcurl, and their ends into answers. Redirects are not
// followed, only the named proxy is used, and everything has a limit.
#pragma once

#include <array>
#include <chrono>
#include <string>
#include <string_view>

#include "sink/curl/answer.hpp"
#include "sink/curl/guard.hpp"
#include "sink/curl/handles.hpp"
#include "sink/tls_settings.hpp"

namespace outbox::sink::curl {

/// A request in progress: its handle points here, so it stays in place until the handle is back.
struct Exchange {
  List headers;
  GuardedConnect connect;
  std::array<char, CURL_ERROR_SIZE> curl_text{};
  std::string answer;  ///< The body that came back, up to a limit.
  bool longer{false};  ///< Whether more of the body came.
};

class HttpClient {
 public:
  struct Options {
    bool encrypted{true};  ///< Allows only https; otherwise only http.
    bool http2{true};      ///< Whether HTTP/2 is used where the receiver offers it.
    std::string proxy{};   ///< No proxy if empty.
    TlsSettings tls{};
    std::chrono::milliseconds connect_timeout{0};
    const Guard* guard{nullptr};  ///< Null lets requests connect anywhere.
  };
  explicit HttpClient(const Options& options);

  /// The handle that all others are copied from, for setting options that all requests have.
  [[nodiscard]] CURL* prototype() const { return prototype_.get(); }
  [[nodiscard]] Easy handle_for(Exchange& exchange, const std::string& url) const;
  /// Makes a POST with the exchange's headers so far. The body must stay in place, too.
  static void set_post(CURL* easy, const Exchange& exchange, std::string_view body);
  [[nodiscard]] static Answer make_answer(Exchange& exchange, CURL* easy, CURLcode code);
  /// Connects, with TLS where the URL says so, and sends nothing. Takes at most connect_timeout.
  [[nodiscard]] Answer connect(const std::string& origin) const;

 private:
  const Guard* const guard_;
  const Easy prototype_;
};

}  // namespace outbox::sink::curl
