// How an HTTP request ended, and what that means for its events without an answer to judge. Pure.
#pragma once

#include <curl/curl.h>

#include <chrono>
#include <optional>
#include <outbox/sink.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace outbox::sink::curl {

struct Answer {
  CURLcode code{CURLE_OK};
  long status{0};        ///< The status of the answer; 0 if there was none.
  long proxy_status{0};  ///< The status of a proxy's answer to CONNECT; 0 if there was none.
  bool sent{false};      ///< Whether at least a part of the request was sent.
  bool longer{false};    ///< Whether more of the body came than is read.
  std::chrono::seconds retry_after{0};  ///< The pause that the answer asks for; 0 if none.
  std::string body{};                   ///< The part of the body that was read.
  std::string curl_text{};              ///< libcurl's description of the failure.
  std::string refused{};                ///< The address that was refused.

  /// Whether the answer is complete, as far as it is read.
  [[nodiscard]] bool whole() const { return code == CURLE_OK || longer; }
  [[nodiscard]] bool success() const { return status >= 200 && status < 300; }
};

/// The receiver of a request, as errors name it.
struct Receiver {
  std::string_view sink;  ///< "http", with which messages and, in hints, names of settings begin.
  std::string_view address;  ///< "https://hooks.example.com:443"
  std::string_view setting;  ///< The setting with the address, such as "url".
  std::chrono::milliseconds deadline{0};
  const char* in_doubt{""};  ///< A hint about what happens to an event whose answer was lost.
  const char* too_slow{""};  ///< A hint about what to do if no answer comes in time.
};

/// The outcome, without a token, of a request that got no whole answer; nullopt if the answer
/// decides. A refusal counts as whole even when its explanation is incomplete.
[[nodiscard]] std::optional<Outcome> unanswered(const Answer& answer, const Receiver& receiver);

/// How long the receiver asks us to wait (Retry-After), within a limit; nullopt if it does not ask.
[[nodiscard]] std::optional<Duration> read_pause(const Answer& answer);

/// An error with the remedy and the effect that belong to this kind of outcome.
[[nodiscard]] Error make_error(Errc code, Outcome::Kind kind, std::string message, std::string hint,
                               std::string origin);

/// The beginning of a body as one line, without the secrets; empty if there is nothing to show.
[[nodiscard]] std::string excerpt(std::string_view body, const std::vector<std::string>& secrets);

}  // namespace outbox::sink::curl
