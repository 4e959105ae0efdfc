// The offsets of a time zone from UTC, by the zone files of the system (TZif, RFC 8536), also for
// years ahead: what follows the last change in the file is computed from the rule at its end. Pure
// but for find(), which reads a file.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <outbox/error.hpp>
#include <string_view>
#include <vector>

namespace outbox::schedule {

/// What repeats each year: a POSIX TZ string such as "CET-1CEST,M3.5.0,M10.5.0/3".
struct ZoneRule {
  /// A day in a year. Days of_year go to 364 or 365, and a day of_week is found from its month.
  struct Day {
    enum class Kind : std::uint8_t { of_year, of_year_without_leap_day, of_week };
    Kind kind{Kind::of_year};
    unsigned day{0};   ///< From 0 (of_year), from 1, or a weekday with Sunday as 0.
    unsigned week{0};  ///< 1 to 5; 5 is the last one.
    unsigned month{0};
    /// The time by the local clock before the change; may be negative, or exceed a day.
    std::chrono::seconds time{0};
  };
  struct Summer {
    std::chrono::seconds offset{0};
    Day begin;
    Day end;
  };
  std::chrono::seconds offset{0};
  std::optional<Summer> summer;  ///< nullopt if the offset never changes.
};

class TimeZone {
 public:
  /// A stretch of time with one offset.
  struct Period {
    std::chrono::sys_seconds begin;  ///< kFirst if it has always been so.
    std::chrono::sys_seconds end;    ///< kLast if it stays so.
    std::chrono::seconds offset{0};
  };
  static constexpr std::chrono::sys_seconds kFirst{std::chrono::seconds(-(std::int64_t{1} << 59U))};
  static constexpr std::chrono::sys_seconds kLast{std::chrono::seconds(std::int64_t{1} << 59U)};

  /// Finds a zone by its name in the tz database ("Europe/Berlin"). UTC needs no file.
  [[nodiscard]] static Result<TimeZone> find(std::string_view name);
  /// Reads the bytes of a zone file.
  [[nodiscard]] static Result<TimeZone> read(std::string_view file);

  [[nodiscard]] Period at(std::chrono::sys_seconds time) const;

 private:
  struct Change {
    std::chrono::sys_seconds at;
    std::chrono::seconds offset{0};
  };

  [[nodiscard]] Period by_rule(std::chrono::sys_seconds time) const;

  std::chrono::seconds first_{0};  ///< The offset before the first change.
  std::vector<Change> changes_;
  std::optional<ZoneRule> rule_;  ///< The rule after the last change.
};

/// Fails if the text is no rule.
[[nodiscard]] Result<ZoneRule> read_zone_rule(std::string_view text);

}  // namespace outbox::schedule
