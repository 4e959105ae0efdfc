// Schedules of tasks as they are stored: who enqueues the task of a tick moves the schedule to its next one in the same transaction, so
// that each tick is enqueued once.
#pragma once

#include <cstdint>
#include <optional>
#include <outbox/error.hpp>
#include <outbox/event.hpp>
#include <outbox/schedule.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/part.hpp"

namespace outbox::store {

/// Times in microseconds since 1970, by the clock of the store.
struct ScheduleRow {
  Schedule schedule;
  bool paused{false};
  std::int64_t revision{0};  ///< Another one: the row has changed.
  std::int64_t next_at_us{0};
  std::optional<std::int64_t> last_at_us;  ///< The newest tick that enqueued a task.
  std::optional<EventId> last_task;
};

struct DueSchedules {
  std::int64_t now_us{0};
  /// The next tick of all of them, due or not. None: there are none.
  std::optional<std::int64_t> next_at_us{};
  std::vector<ScheduleRow> due{};  ///< In the order of their ticks.
};

struct Tick {
  std::optional<Event> task{};  ///< None: the tick is skipped.
  std::int64_t at_us{0};        ///< Of the task.
  std::int64_t next_at_us{0};   ///< The one that follows.
};

/// One thread at a time. All is committed on return.
class Schedules : public Part {
 public:
  [[nodiscard]] virtual Result<std::int64_t> now_us() = 0;
  /// A new one, or another one in place of that with its name, which stays paused if it is. `next_at_us`: of a new one, and of one with
  /// other ticks. False: it is there as it is.
  [[nodiscard]] virtual Result<bool> apply(const Schedule& schedule, std::int64_t next_at_us) = 0;
  /// Of these queues, without paused ones.
  [[nodiscard]] virtual Result<DueSchedules> due(std::span<const std::string> queues) = 0;
  /// False: the row has changed since it was read, or another worker is at it.
  [[nodiscard]] virtual Result<bool> tick(const ScheduleRow& row, const Tick& tick) = 0;
  /// By name.
  [[nodiscard]] virtual Result<std::vector<ScheduleRow>> list() = 0;
  [[nodiscard]] virtual Status pause(std::string_view name) = 0;
  /// Of one that is paused. False: the row has changed since it was read.
  [[nodiscard]] virtual Result<bool> resume(const ScheduleRow& row, std::int64_t next_at_us) = 0;
  /// False: there is none.
  [[nodiscard]] virtual Result<bool> remove(std::string_view name) = 0;
};

}  // namespace outbox::store
