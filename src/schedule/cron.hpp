// When something recurs, in the five fields of cron: minute, hour, day of month, month, weekday.
// Pure.
//
// On days when the clock changes (docs/guide/tasks.md, "Schedules"), a schedule that names its
// hours runs once, also when the time exists twice (it runs at the first) or not at all (it runs at
// the first moment after the gap). One that runs in every hour runs whenever the clock shows its
// minute; one that has a star or a step for hours runs in both of two equal hours.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <outbox/error.hpp>
#include <string_view>

#include "schedule/time_zone.hpp"

namespace outbox::schedule {

class Cron {
 public:
  /// The error names the field: "hour: '25' is no number from 0 to 23".
  [[nodiscard]] static Result<Cron> parse(std::string_view text);

  /// The first time after `after`; nullopt if there is none within 50 years, which only a zone that
  /// leaves days out can cause.
  [[nodiscard]] std::optional<std::chrono::sys_seconds> next(std::chrono::sys_seconds after,
                                                             const TimeZone& zone) const;

 private:
  [[nodiscard]] Status check() const;
  [[nodiscard]] bool is_day(std::chrono::local_days day) const;
  /// The first time in a stretch of the local clock, without the stretch's end.
  [[nodiscard]] std::optional<std::chrono::local_seconds> first_in(
      std::chrono::local_seconds begin, std::chrono::local_seconds end) const;
  [[nodiscard]] std::optional<std::chrono::sys_seconds> first_in(
      const TimeZone::Period& period, std::chrono::seconds offset_before,
      std::chrono::sys_seconds after) const;

  // The fields have a bit for each value.
  std::uint64_t minutes_{0};
  std::uint64_t hours_{0};
  std::uint64_t days_{0};
  std::uint64_t months_{0};
  std::uint64_t weekdays_{0};  ///< Sunday is 0.
  // A field that begins with a star does not restrict the days. If neither does, either suffices.
  bool any_day_{false};
  bool any_weekday_{false};
  bool in_every_hour_{false};
  bool in_both_hours_{false};
};

}  // namespace outbox::schedule
