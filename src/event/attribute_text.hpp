// The attributes of an event as text, in an arena. Pure.
#pragma once

#include <cstdint>
#include <outbox/event.hpp>
#include <string_view>

#include "event/arena.hpp"

namespace outbox::event {

[[nodiscard]] std::string_view seq_text(std::int64_t seq, Arena& arena);
[[nodiscard]] std::string_view id_text(const EventId& id, Arena& arena);
/// The time in RFC 3339, in UTC with microseconds.
[[nodiscard]] std::string_view time_text(std::int64_t us, Arena& arena);
/// A copy of the text in the arena.
[[nodiscard]] std::string_view kept(std::string_view text, Arena& arena);

}  // namespace outbox::event
