// Makes entries of batches from messages: queue, body, attributes. Pure.
#pragma once

#include <outbox/sink.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "event/arena.hpp"
#include "sink/sqs/batch.hpp"
#include "sink/sqs/config.hpp"

namespace outbox::sink::sqs {

// ---- The headers of a message as message attributes, of which SQS takes ten. Pure.

/// The attribute with the message key; missing for an event without a key.
inline constexpr std::string_view kKeyAttribute = "outbox-key";
/// The attribute that says how the body is changed: "base64", or "empty", which SQS cannot send.
/// Missing if it is unchanged.
inline constexpr std::string_view kEncodingAttribute = "outbox-encoding";
/// The attribute with the headers that are not attributes themselves, as a JSON object.
inline constexpr std::string_view kRestAttribute = "outbox-headers";

struct Attribute {
  std::string name;
  std::string value;  ///< A String of SQS.

  /// The bytes that SQS counts: name, type and value.
  [[nodiscard]] std::size_t bytes() const;
};

/// All headers, the key and the encoding, in at most ten attributes. The last one, outbox-headers,
/// takes those that exceed ten or cannot be attributes (their name is not allowed, or their value
/// is empty or has control characters). `first` has names that get places of their own before all
/// but the id and the encoding. Fails if a header is not UTF-8.
[[nodiscard]] Result<std::vector<Attribute>> make_attributes(const Message& message,
                                                             std::string_view encoding,
                                                             std::span<const std::string> first);

// ---- Entries

struct Composed {
  std::string queue;
  Entry entry;
};

class Composer {
 public:
  explicit Composer(const SqsOptions& options) : options_(options) {}

  /// An error is the event's fault.
  [[nodiscard]] Result<Composed> compose(const Message& message);

 private:
  [[nodiscard]] Result<std::string> queue_for(const Message& message);

  const SqsOptions& options_;
  event::Arena arena_;
};

}  // namespace outbox::sink::sqs
