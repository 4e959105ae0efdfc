// Turns HTTP requests into easy handles of libcurl, and their ends into answers: nothing is followed, no proxy but the one that is
// named, limits on everything.
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

/// A request under way, with everything that its handle points to. Stays in place until that is back.
struct Exchange {
  List headers;
  GuardedConnect connect;
  std::array<char, CURL_ERROR_SIZE> curl_text{};
  std::string answer;  ///< The body that came back, up to a limit.
  bool longer{false};  ///< There was more.
};

class HttpClient {
 public:
  struct Options {
    bool encrypted{true};  ///< https, and nothing else; else http.
    bool http2{true};      ///< Where the receiver offers it.
    std::string proxy{};   ///< Empty: none.
    TlsSettings tls{};
    std::chrono::milliseconds connect_timeout{0};
    const Guard* guard{nullptr};  ///< Null: it may connect anywhere.
  };
  explicit HttpClient(const Options& options);

  /// For options that all requests have.
  [[nodiscard]] CURL* prototype() const { return prototype_.get(); }
  [[nodiscard]] Easy handle_for(Exchange& exchange, const std::string& url) const;
  /// The body stays in place, too. With the headers that the exchange has so far.
  static void set_post(CURL* easy, const Exchange& exchange, std::string_view body);
  [[nodiscard]] static Answer answer_of(Exchange& exchange, CURL* easy, CURLcode code);
  /// Connects, with TLS where the URL says so, and sends nothing. Takes as long as connect_timeout at most.
  [[nodiscard]] Answer connect(const std::string& origin) const;

 private:
  const Guard* const guard_;
  const Easy prototype_;
};

}  // namespace outbox::sink::curl
