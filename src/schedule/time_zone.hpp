// The offsets of a time zone from UTC, as the zone files of the system (TZif, RFC 8536) tell them, those of years ahead included: what
// follows the last change in the file is computed from the rule at its end. Pure but for find(), which reads a file.
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
  /// The last day of the year is 365 or 366; a day of a week is found from its month.
  struct Day {
    enum class Kind : std::uint8_t { of_year, of_year_without_leap_day, of_week };
    Kind kind{Kind::of_year};
    unsigned day{0};   ///< From 0 (of_year), from 1, or a weekday with Sunday as 0.
    unsigned week{0};  ///< 1 to 5; 5: the last one.
    unsigned month{0};
    std::chrono::seconds time{
        0};  ///< Of the local clock before the change; may be negative, and more than a day.
  };
  struct Summer {
    std::chrono::seconds offset{0};
    Day begin;
    Day end;
  };
  std::chrono::seconds offset{0};
  std::optional<Summer> summer;  ///< None: the offset never changes.
};

class TimeZone {
 public:
  /// A time with one offset.
  struct Period {
    std::chrono::sys_seconds begin;  ///< kFirst: it has always been so.
    std::chrono::sys_seconds end;    ///< kLast: it stays so.
    std::chrono::seconds offset{0};
  };
  static constexpr std::chrono::sys_seconds kFirst{std::chrono::seconds(-(std::int64_t{1} << 59U))};
  static constexpr std::chrono::sys_seconds kLast{std::chrono::seconds(std::int64_t{1} << 59U)};

  /// By its name in the tz database ("Europe/Berlin"). UTC needs no file.
  [[nodiscard]] static Result<TimeZone> find(std::string_view name);
  /// From the bytes of a zone file.
  [[nodiscard]] static Result<TimeZone> read(std::string_view file);

  [[nodiscard]] Period at(std::chrono::sys_seconds time) const;

 private:
  struct Change {
    std::chrono::sys_seconds at;
    std::chrono::seconds offset{0};
  };

  [[nodiscard]] Period by_rule(std::chrono::sys_seconds time) const;

  std::chrono::seconds first_{0};  ///< Before the first change.
  std::vector<Change> changes_;
  std::optional<ZoneRule> rule_;  ///< After the last one.
};

/// An error: the text is no rule.
[[nodiscard]] Result<ZoneRule> read_zone_rule(std::string_view text);

}  // namespace outbox::schedule
