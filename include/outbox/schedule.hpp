// outbox/schedule.hpp: tasks that recur. Each tick of a schedule enqueues one task, however many
// workers there are.
//
//   outbox::WorkerOptions options{.relay = {.store_url = "postgresql://localhost/shop"},
//                                 .queues = {"reports"}};
//   options.schedules.push_back({.name = "monthly-report",
//                                .queue = "reports",
//                                .type = "report.make",
//                                .cron = "30 6 1 * *",
//                                .time_zone = "Europe/Berlin"});
//
// The task has the headers "task-schedule" (the name) and "task-scheduled-at" (the time of the
// tick, RFC 3339).
//
// Threads: values; Const methods from any thread.
// Lifetime: owns its strings.
// Errors: validate() names the field that is wrong.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <outbox/error.hpp>
#include <outbox/event.hpp>
#include <string>
#include <string_view>

namespace outbox {

/// The headers of a task that a schedule has enqueued.
inline constexpr std::string_view kScheduleHeader = "task-schedule";
inline constexpr std::string_view kScheduledAtHeader = "task-scheduled-at";

/// What happens to ticks at which no worker ran.
enum class MissedTicks : std::uint8_t {
  one,   ///< One task is enqueued, however many ticks were missed.
  skip,  ///< A tick that is more than 1 min late enqueues no task.
  all,   ///< Each tick enqueues its task, but no more than the newest 1000.
};

struct Schedule {
  /// Letters, digits, '-', '_' and '.', at most 63 bytes. A schedule of the same name is replaced.
  std::string name;
  /// The queue of its tasks. Default: default.
  std::string queue{"default"};
  /// The type of its tasks, which decides on their handler. Required.
  std::string type;
  /// The payload of each task. Default: {}
  std::string payload{"{}"};
  /// With a key, a task waits until the one of the tick before has ended. Default: empty.
  std::string key{};
  /// Further headers of the tasks. Default: none.
  std::map<std::string, std::string> headers{};
  /// The media type of the payload. When it is JSON the payload must parse as JSON. Default:
  /// application/json.
  std::string content_type{"application/json"};
  /// Minute, hour, day of month, month, day of week: "30 8 * * mon-fri"; or @hourly, @daily,
  /// @weekly, @monthly, @yearly. Exactly one of cron and every is set. Default: empty.
  std::string cron{};
  /// The time between ticks, from 1 s to 366 days. They are at its multiples since 1970, so that
  /// all workers agree. Default: 0, not set.
  std::chrono::milliseconds every{0};
  /// The time zone of `cron`, by its name in the tz database ("Europe/Berlin"). docs/guide/tasks.md
  /// says what happens when its clock changes. Default: UTC.
  std::string time_zone{"UTC"};
  /// Default: one.
  MissedTicks missed{MissedTicks::one};

  bool operator==(const Schedule&) const = default;
};

/// Checks a schedule. The error names the field ("cron: hour: '25' is no number from 0 to 23").
/// Reads the file of the time zone.
[[nodiscard]] Status validate(const Schedule& schedule, const EventLimits& limits = {});

}  // namespace outbox
