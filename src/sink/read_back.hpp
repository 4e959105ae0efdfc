// Reading a destination back: the ids of the messages that it holds, for `outbox verify --sink`.
#pragma once

#include <cstdint>
#include <functional>
#include <outbox/error.hpp>
#include <outbox/event.hpp>
#include <string>
#include <vector>

namespace outbox::sink {

/// A part of a destination that is read as a whole, such as a file or a topic.
struct ReadPart {
  std::string name;
  /// Whether the part surely belongs to this subscription. One that was found by its name may not.
  bool certain{true};
  /// At most this many messages were removed by the destination itself.
  std::int64_t removed{0};
  /// The time before which they were sent. Microseconds since 1970, UTC.
  std::int64_t removed_before_us{0};
  /// The number of messages without the id of an event, which others have sent.
  std::int64_t without_id{0};
};

/// Called with the id of each message, as often as the message exists, and the number of its part.
using TakeId = std::function<void(std::uint32_t part, const EventId& id)>;

/// What was read, in the order of the parts' numbers.
using ReadParts = std::vector<ReadPart>;

}  // namespace outbox::sink
