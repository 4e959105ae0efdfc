// What the error codes of SQS mean for a message (Amazon SQS API Reference: "Common Errors", SendMessageBatch, GetQueueUrl). Pure.
#pragma once

#include <outbox/sink.hpp>
#include <string>
#include <string_view>

namespace outbox::sink::sqs {

struct Meaning {
  Outcome::Kind kind{Outcome::Kind::unknown};
  Errc code{Errc::unavailable};
  const char* hint{""};
};

/// Without what precedes the name in the protocols' forms of it: com.amazonaws.sqs#QueueDoesNotExist,
/// AWS.SimpleQueueService.NonExistentQueue.
[[nodiscard]] std::string short_code(std::string_view code);

/// Of a refused request. `code`: a short one; empty: the answer has none, and only its status counts.
[[nodiscard]] Meaning meaning_of(std::string_view code, long status);

/// Of an entry in the list Failed: it was not stored, whatever the code.
[[nodiscard]] Meaning meaning_of_entry(std::string_view code, bool sender_fault);

}  // namespace outbox::sink::sqs
