// What the end of a request means for its events. Pure.
#pragma once

#include <curl/curl.h>

#include <chrono>
#include <optional>
#include <outbox/sink.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace outbox::sink::http {

/// How a request ended.
struct Answer {
  CURLcode code{CURLE_OK};
  long status{0};                       ///< Of the answer; 0: there was none.
  long proxy_status{0};                 ///< Of a proxy's answer to CONNECT; 0: there was none.
  bool sent{false};                     ///< At least a part of the request was.
  bool longer{false};                   ///< More of the body came than is read.
  std::chrono::seconds retry_after{0};  ///< 0: none.
  std::string body{};                   ///< What was read.
  std::string curl_text{};              ///< What libcurl says of the failure.
  std::string refused{};                ///< The address that must not be connected to.
};

/// What it is about.
struct Asked {
  std::string_view origin;  ///< "https://hooks.example.com:443"
  bool url_varies{false};   ///< The URL has fields of the event.
  std::chrono::milliseconds deadline{0};
  const std::vector<std::string>* secrets{nullptr};  ///< Never quoted.
};

/// The outcome, without a token.
[[nodiscard]] Outcome judge(const Answer& answer, const Asked& asked);

/// Why nothing can be delivered: the connection could not be made.
[[nodiscard]] Error unreachable(const Answer& answer, const Asked& asked);

}  // namespace outbox::sink::http
