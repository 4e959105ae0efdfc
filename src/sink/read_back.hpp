// Reading a destination back: the ids of the messages that it holds, for `outbox verify --sink`.
#pragma once

#include <cstdint>
#include <functional>
#include <outbox/error.hpp>
#include <outbox/event.hpp>
#include <string>
#include <vector>

namespace outbox::sink {

/// A piece of a destination that is read as a whole: a file, a topic.
struct ReadPart {
  std::string name;
  /// False: it was found by its name, so it may belong to somebody else as a whole.
  bool certain{true};
  /// Messages that the destination itself removed; at most so many.
  std::int64_t removed{0};
  /// They were sent before. Microseconds since 1970, UTC.
  std::int64_t removed_before_us{0};
  /// Messages without the id of an event: somebody else's.
  std::int64_t without_id{0};
};

/// Gets the id of each message, as often as it is there, with the number of its part.
using TakeId = std::function<void(std::uint32_t part, const EventId& id)>;

/// What was read. Parts are numbered in this order.
using ReadParts = std::vector<ReadPart>;

}  // namespace outbox::sink
