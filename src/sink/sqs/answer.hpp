// What answers of SQS mean for the entries of a batch, or for the look-up of a queue. Pure.
#pragma once

#include <chrono>
#include <optional>
#include <outbox/sink.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "sink/curl/answer.hpp"

namespace outbox::sink::sqs {

using curl::Answer;

/// What the request was about.
struct RequestContext {
  std::string_view address;  ///< "https://sqs.eu-central-1.amazonaws.com:443"
  std::string_view setting;  ///< The one with the address.
  std::string_view queue;
  bool queue_varies{false};  ///< It has fields of the event.
  std::chrono::milliseconds deadline{0};
  const std::vector<std::string>* secrets{nullptr};  ///< Never quoted.
};

/// Of a request that was refused, or has no whole answer: the outcome of everything in it, without a token. None: it was answered 200.
[[nodiscard]] std::optional<Outcome> failure_of(const Answer& answer,
                                                const RequestContext& context);

/// The outcomes of so many entries, in their order and without tokens, by the answer 200 to their batch. Those of an entry that is in neither
/// list, or in both, is `unknown`.
[[nodiscard]] std::vector<Outcome> outcomes_of(const Answer& answer, std::size_t entries,
                                               const RequestContext& context);

/// The URL of a queue, by the answer 200 to GetQueueUrl. The error has the outcome of what waits for it.
[[nodiscard]] tl::expected<std::string, Outcome> queue_url_of(const Answer& answer,
                                                              const RequestContext& context);

}  // namespace outbox::sink::sqs
