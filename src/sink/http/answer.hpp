// What the end of a request means for its events. Pure.
#pragma once

#include <chrono>
#include <outbox/sink.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "sink/curl/answer.hpp"

namespace outbox::sink::http {

using curl::Answer;
using curl::excerpt;

/// What an answer is judged with.
struct RequestContext {
  std::string_view origin;  ///< "https://hooks.example.com:443"
  bool url_varies{false};   ///< Whether the URL has fields of the event.
  std::chrono::milliseconds deadline{0};
  const std::vector<std::string>* secrets{nullptr};  ///< Texts that are never quoted.
};

/// The outcome, without a token.
[[nodiscard]] Outcome judge(const Answer& answer, const RequestContext& context);

}  // namespace outbox::sink::http
