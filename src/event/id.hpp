// The text form of an id without an allocation. Pure.
#pragma once

#include <cstddef>
#include <outbox/event.hpp>

namespace outbox::event {

inline constexpr std::size_t kIdChars = 36;

/// Writes exactly kIdChars characters in lower case, without a terminator.
void write_id(const EventId& id, char* to) noexcept;

}  // namespace outbox::event
