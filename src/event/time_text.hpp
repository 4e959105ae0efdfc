// Points in time as RFC 3339 text, UTC, with microseconds. Pure.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <outbox/event.hpp>
#include <string>
#include <string_view>

namespace outbox::event {

[[nodiscard]] constexpr Timestamp timestamp(std::int64_t us_since_1970) {
  return Timestamp(std::chrono::microseconds(us_since_1970));
}
[[nodiscard]] constexpr std::int64_t to_us(Timestamp time) {
  return time.time_since_epoch().count();
}

/// The length of "2024-05-01T12:34:56.123456Z".
inline constexpr std::size_t kTimeChars = 27;

/// Writes exactly kTimeChars characters without a terminator. A time outside the years 0 to 9999
/// becomes their first or last moment.
void write_time(std::int64_t us_since_1970, char* to) noexcept;

[[nodiscard]] inline std::string time_text(std::int64_t us_since_1970) {
  std::string text(kTimeChars, '\0');
  write_time(us_since_1970, text.data());
  return text;
}

/// Parses RFC 3339 with an offset ("2024-05-01T14:34:56.5+02:00") into microseconds since 1970;
/// further digits are dropped. Returns nullopt for anything else and outside the years 1 to 9999.
[[nodiscard]] std::optional<std::int64_t> read_time(std::string_view text);

/// Whether the time is in the years 1 to 9999, which all stores and RFC 3339 can represent.
[[nodiscard]] bool is_time(std::int64_t us_since_1970) noexcept;

/// When the event happened or, if that is not given, when it was written.
[[nodiscard]] inline std::int64_t happened_us(const EventView& event) noexcept {
  return to_us(event.occurred_at.value_or(event.created_at));
}

/// The time that an event to enqueue gives.
[[nodiscard]] inline std::optional<std::int64_t> occurred_us(const Event& event) {
  if (!event.occurred_at) return std::nullopt;
  return to_us(*event.occurred_at);
}

}  // namespace outbox::event
