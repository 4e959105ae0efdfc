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

/// What an answer is judged with.
struct RequestContext {
  std::string_view address;  ///< "https://sqs.eu-central-1.amazonaws.com:443"
  std::string_view setting;  ///< The setting with the address.
  std::string_view queue;
  bool queue_varies{false};  ///< Whether its name has fields of the event.
  std::chrono::milliseconds deadline{0};
  const std::vector<std::string>* secrets{nullptr};  ///< Texts that are never quoted.
};

/// The outcome, without a token, of everything in a request that was refused or got no whole
/// answer; nullopt if the answer was 200.
[[nodiscard]] std::optional<Outcome> find_failure(const Answer& answer,
                                                  const RequestContext& context);

/// The outcomes of the entries, in their order and without tokens, by the answer 200 to their
/// batch. The outcome of an entry that is in neither list, or in both, is `unknown`.
[[nodiscard]] std::vector<Outcome> read_outcomes(const Answer& answer, std::size_t entries,
                                                 const RequestContext& context);

/// The URL of a queue, by the answer 200 to GetQueueUrl. The error is the outcome of its batches.
[[nodiscard]] tl::expected<std::string, Outcome> read_queue_url(const Answer& answer,
                                                                const RequestContext& context);

}  // namespace outbox::sink::sqs
