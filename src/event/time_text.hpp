// Points in time as RFC 3339 text, UTC, with microseconds. Pure.
#pragma once

#include <cstddef>
#include <cstdint>

namespace outbox::event {

/// "2024-05-01T12:34:56.123456Z"
inline constexpr std::size_t kTimeChars = 27;

/// Writes exactly kTimeChars characters, no terminator. What lies outside the years 0 to 9999, which the form cannot hold,
/// becomes its first or last moment.
void write_time(std::int64_t us_since_1970, char* to) noexcept;

}  // namespace outbox::event
