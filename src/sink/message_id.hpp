// The id by which a destination that drops duplicates knows a message. Pure.
#pragma once

#include <outbox/event.hpp>
#include <string>
#include <string_view>

namespace outbox::sink {

/// The same each time this subscription sends this event, and different for everything else: two
/// subscriptions may send an event to one place, two events may share an id, and a replay sends
/// events again on purpose. Consists of letters, digits, '-', '_' and '.'.
[[nodiscard]] std::string message_id(const EventView& event, std::string_view subscription);

}  // namespace outbox::sink
