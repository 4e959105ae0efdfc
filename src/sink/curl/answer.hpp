// How an HTTP request of libcurl ended, and what it means for its events when there is no answer to judge. Pure.
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
  long status{0};                       ///< Of the answer; 0: there was none.
  long proxy_status{0};                 ///< Of a proxy's answer to CONNECT; 0: there was none.
  bool sent{false};                     ///< At least a part of the request was.
  bool longer{false};                   ///< More of the body came than is read.
  std::chrono::seconds retry_after{0};  ///< 0: none.
  std::string body{};                   ///< What was read.
  std::string curl_text{};              ///< What libcurl says of the failure.
  std::string refused{};                ///< The address that must not be connected to.

  /// It came to its end, as far as it is read.
  [[nodiscard]] bool whole() const { return code == CURLE_OK || longer; }
  [[nodiscard]] bool success() const { return status >= 200 && status < 300; }
};

/// Whom the request was for, in the words of errors.
struct Receiver {
  std::string_view sink;  ///< "http": messages begin with it, as the names of settings in hints do.
  std::string_view address;  ///< "https://hooks.example.com:443"
  std::string_view setting;  ///< The one with the address: "url"
  std::chrono::milliseconds deadline{0};
  const char* in_doubt{""};  ///< A hint: what becomes of an event whose answer was lost.
  const char* too_slow{""};  ///< A hint: what to do if no answer comes in time.
};

/// The outcome, without a token, of a request without a whole answer; a refusal counts as a whole one, even when its explanation is
/// incomplete. None: the answer decides.
[[nodiscard]] std::optional<Outcome> unanswered(const Answer& answer, const Receiver& receiver);

/// The pause that the answer asks for, within what a receiver may ask for. None: none.
[[nodiscard]] std::optional<Duration> pause_of(const Answer& answer);

/// An error with the remedy and the effect that go with its outcome.
[[nodiscard]] Error error_of(Errc code, Outcome::Kind kind, std::string message, std::string hint,
                             std::string origin);

/// The beginning of a body as one line, without the secrets; empty: nothing to show.
[[nodiscard]] std::string excerpt(std::string_view body, const std::vector<std::string>& secrets);

}  // namespace outbox::sink::curl
