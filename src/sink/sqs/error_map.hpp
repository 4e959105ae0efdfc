// What SQS's error codes mean for a message (Amazon SQS API Reference: "Common Errors",
// SendMessageBatch, GetQueueUrl). Pure.
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

/// The code without what precedes its name in the protocols: com.amazonaws.sqs#QueueDoesNotExist,
/// AWS.SimpleQueueService.NonExistentQueue.
[[nodiscard]] std::string short_code(std::string_view code);

/// The meaning of a refused request. `code` is short; if it is empty, only the status counts.
[[nodiscard]] Meaning find_meaning(std::string_view code, long status);

/// The meaning of an entry in the list Failed, which was not stored, whatever the code.
[[nodiscard]] Meaning meaning_of_entry(std::string_view code, bool sender_fault);

}  // namespace outbox::sink::sqs
