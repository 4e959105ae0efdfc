// Schedules of tasks.
#include "store/schedules.hpp"

#include <algorithm>
#include <utility>

#include "store/common/enqueue.hpp"
#include "store/common/schedule.hpp"
#include "store/sqlite/clock.hpp"
#include "store/sqlite/event_insert.hpp"
#include "store/sqlite/parts.hpp"
#include "store/sqlite/queries.hpp"
#include "store/text.hpp"

namespace outbox::store::sqlite {
namespace {

ScheduleRow row_of(const Statement& row) {
  ScheduleRow found;
  Schedule& schedule = found.schedule;
  schedule.name = row.text(0);
  schedule.queue = row.text(1);
  schedule.type = row.text(2);
  schedule.payload = std::string(row.bytes(3));
  schedule.content_type = row.text(4);
  schedule.key = row.text(5);
  schedule.headers = headers_map(row.text(6));
  schedule.cron = row.text(7);
  schedule.every = row.text(8);
  schedule.time_zone = row.text(9);
  schedule.missed = row.text(10);
  found.paused = row.integer(11) != 0;
  found.revision = row.integer(12);
  found.next_at_us = row.integer(13);
  if (!row.is_null(14)) found.last_at_us = row.integer(14);
  if (!row.is_null(15)) found.last_task = id_of(row.bytes(15));
  return found;
}

class SqliteSchedules final : public Schedules {
 public:
  explicit SqliteSchedules(Connection connection) : connection_(std::move(connection)) {}

  [[nodiscard]] Result<std::int64_t> now_us() override { return wall_us(); }

  [[nodiscard]] Result<bool> apply(const Schedule& schedule, std::int64_t next_at_us) override {
    const std::string headers = headers_text(schedule.headers);
    return changed(connection_.run(query::kApplySchedule, schedule.name, schedule.queue,
                                   schedule.type, schedule.payload, schedule.content_type,
                                   schedule.key, headers, schedule.cron, schedule.every,
                                   schedule.time_zone, schedule.missed, next_at_us));
  }

  [[nodiscard]] Result<DueSchedules> due(std::span<const std::string> queues) override {
    DueSchedules found{.now_us = wall_us()};
    for (const std::string& queue : queues) {
      OUTBOX_TRY(const Statement row, connection_.query(query::kNextTick, queue));
      if (row.has_row() && !row.is_null(0))
        found.next_at_us = std::min(found.next_at_us.value_or(row.integer(0)), row.integer(0));
    }
    if (!found.next_at_us || *found.next_at_us > found.now_us) return found;
    for (const std::string& queue : queues) {
      OUTBOX_TRY(Statement row, connection_.query(query::kDueSchedules, queue, found.now_us));
      while (row.has_row()) {
        found.due.push_back(row_of(row));
        if (Status status = row.next(); !status) return pass(status);
      }
    }
    std::stable_sort(found.due.begin(), found.due.end(),
                     [](const auto& a, const auto& b) { return a.next_at_us < b.next_at_us; });
    return found;
  }

  [[nodiscard]] Result<bool> tick(const ScheduleRow& row, const Tick& tick) override {
    const std::span<const Event> tasks(tick.task ? &*tick.task : nullptr, tick.task ? 1 : 0);
    if (Status status = validate_all(tasks, EventLimits{}); !status) return pass(status);
    const std::vector<EventId> ids = ids_of(tasks);
    OUTBOX_TRY(WriteTransaction transaction, WriteTransaction::begin(connection_));
    const std::string_view task = tasks.empty() ? std::string_view() : bytes_of(ids.front());
    OUTBOX_TRY(const bool moved,
               changed(connection_.run(query::kMoveSchedule, row.schedule.name, row.next_at_us,
                                       row.revision, tick.next_at_us, tick.at_us, task)));
    if (!moved) return false;
    if (!tasks.empty()) {
      OUTBOX_TRY(const Statement insert, connection_.statement(query::kInsertEvent));
      if (Status status = insert_events(insert.raw(), tasks, ids); !status) return pass(status);
    }
    if (Status status = transaction.commit(); !status) return pass(status);
    return true;
  }

  [[nodiscard]] Result<std::vector<ScheduleRow>> list() override {
    std::vector<ScheduleRow> all;
    OUTBOX_TRY(Statement row, connection_.query(query::kListSchedules));
    while (row.has_row()) {
      all.push_back(row_of(row));
      if (Status status = row.next(); !status) return pass(status);
    }
    return all;
  }

  [[nodiscard]] Status pause(std::string_view name) override {
    return connection_.run(query::kPauseSchedule, name);
  }

  [[nodiscard]] Result<bool> resume(const ScheduleRow& row, std::int64_t next_at_us) override {
    return changed(
        connection_.run(query::kResumeSchedule, row.schedule.name, row.revision, next_at_us));
  }

  [[nodiscard]] Result<bool> remove(std::string_view name) override {
    return changed(connection_.run(query::kRemoveSchedule, name));
  }

 private:
  /// Whether the statement wrote a row.
  [[nodiscard]] Result<bool> changed(Status status) const {
    if (!status) return pass(status);
    return connection_.changes() > 0;
  }

  Connection connection_;
};

}  // namespace

std::unique_ptr<Schedules> make_schedules(Connection connection) {
  return std::make_unique<SqliteSchedules>(std::move(connection));
}

}  // namespace outbox::store::sqlite
