// Schedules of tasks.
#include "store/schedules.hpp"

#include <utility>

#include "store/common/enqueue.hpp"
#include "store/common/schedule.hpp"
#include "store/postgres/insert.hpp"
#include "store/postgres/parts.hpp"

namespace outbox::store::postgres {
namespace {

ScheduleRow row_of(const Rows& rows, int row) {
  ScheduleRow found;
  Schedule& schedule = found.schedule;
  schedule.name = rows.text(row, 0);
  schedule.queue = rows.text(row, 1);
  schedule.type = rows.text(row, 2);
  schedule.payload = rows.text(row, 3);
  schedule.content_type = rows.text(row, 4);
  schedule.key = rows.text(row, 5);
  schedule.headers = headers_map(rows.text(row, 6));
  schedule.cron = rows.text(row, 7);
  schedule.every = rows.text(row, 8);
  schedule.time_zone = rows.text(row, 9);
  schedule.missed = rows.text(row, 10);
  found.paused = rows.boolean(row, 11);
  found.revision = rows.int8(row, 12);
  found.next_at_us = rows.time_us(row, 13);
  if (!rows.is_null(row, 14)) found.last_at_us = rows.time_us(row, 14);
  if (!rows.is_null(row, 15)) found.last_task = rows.uuid(row, 15);
  return found;
}

std::vector<ScheduleRow> rows_of(const Rows& rows) {
  std::vector<ScheduleRow> all;
  for (int row = 0; row < rows.size(); ++row) all.push_back(row_of(rows, row));
  return all;
}

class PostgresSchedules final : public Schedules {
 public:
  explicit PostgresSchedules(Connection connection) : connection_(std::move(connection)) {}

  [[nodiscard]] Result<std::int64_t> now_us() override {
    OUTBOX_TRY(const Rows rows, connection_.exec(&Queries::clock));
    return rows.int8(0, 0);
  }

  [[nodiscard]] Result<bool> apply(const Schedule& schedule, std::int64_t next_at_us) override {
    OUTBOX_TRY(
        const Rows rows,
        connection_.exec(
            &Queries::apply_schedule,
            {Param(schedule.name), Param(schedule.queue), Param(schedule.type),
             Param::borrowed(schedule.payload), Param(schedule.content_type), Param(schedule.key),
             Param(headers_text(schedule.headers)), Param(schedule.cron), Param(schedule.every),
             Param(schedule.time_zone), Param(schedule.missed), Param::time_us(next_at_us)}));
    return !rows.empty();
  }

  [[nodiscard]] Result<DueSchedules> due(std::span<const std::string> queues) override {
    const auto names = [&] {
      ArrayParam array(ArrayParam::Element::text);
      for (const std::string& queue : queues) array.add(queue);
      return array.take();
    };
    OUTBOX_TRY(const Rows times, connection_.exec(&Queries::next_tick, {names()}));
    DueSchedules found{.now_us = times.int8(0, 0)};
    if (times.is_null(0, 1)) return found;
    found.next_at_us = times.time_us(0, 1);
    if (*found.next_at_us > found.now_us) return found;
    OUTBOX_TRY(const Rows rows,
               connection_.exec(&Queries::due_schedules, {names(), Param::time_us(found.now_us)}));
    found.due = rows_of(rows);
    return found;
  }

  [[nodiscard]] Result<bool> tick(const ScheduleRow& row, const Tick& tick) override {
    const std::span<const Event> tasks(tick.task ? &*tick.task : nullptr, tick.task ? 1 : 0);
    if (Status status = validate_all(tasks, EventLimits{}); !status) return pass(status);
    const std::vector<EventId> ids = ids_of(tasks);
    bool done = false;
    Status status = connection_.transact([&]() -> Result<Decision> {
      OUTBOX_TRY(const Rows locked,
                 connection_.exec(&Queries::lock_schedule,
                                  {Param(row.schedule.name), Param::time_us(row.next_at_us),
                                   Param(row.revision)}));
      done = !locked.empty();
      if (!done) return Decision::rollback;
      connection_.send(&Queries::move_schedule,
                       {Param(row.schedule.name), Param::time_us(tick.next_at_us),
                        tasks.empty() ? Param::null() : Param::time_us(tick.at_us),
                        tasks.empty() ? Param::null() : Param(ids.front())});
      std::vector<Step> steps;
      if (!tasks.empty()) plan_insert(connection_.queries(), tasks, ids, steps);
      for (Step& step : steps) connection_.send(*step.query, std::move(step.params));
      OUTBOX_TRY(const auto moved, connection_.finish());
      return Decision::commit;
    });
    if (!status) return pass(status);
    return done;
  }

  [[nodiscard]] Result<std::vector<ScheduleRow>> list() override {
    OUTBOX_TRY(const Rows rows, connection_.exec(&Queries::list_schedules));
    return rows_of(rows);
  }

  [[nodiscard]] Status pause(std::string_view name) override {
    return connection_.run(&Queries::pause_schedule, {Param(name)});
  }

  [[nodiscard]] Result<bool> resume(const ScheduleRow& row, std::int64_t next_at_us) override {
    OUTBOX_TRY(const Rows rows, connection_.exec(&Queries::resume_schedule,
                                                 {Param(row.schedule.name), Param(row.revision),
                                                  Param::time_us(next_at_us)}));
    return !rows.empty();
  }

  [[nodiscard]] Result<bool> remove(std::string_view name) override {
    OUTBOX_TRY(const Rows rows, connection_.exec(&Queries::remove_schedule, {Param(name)}));
    return !rows.empty();
  }

 private:
  Connection connection_;
};

}  // namespace

std::unique_ptr<Schedules> make_schedules(Connection connection) {
  return std::make_unique<PostgresSchedules>(std::move(connection));
}

}  // namespace outbox::store::postgres
