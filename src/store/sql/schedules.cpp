// Schedules of tasks.
#include <map>
#include <utility>

#include "base/error.hpp"
#include "base/units.hpp"
#include "event/json_event.hpp"
#include "schedule/schedule.hpp"
#include "store/enqueue.hpp"
#include "store/sql/audit.hpp"
#include "store/sql/parts.hpp"
#include "store/tasks.hpp"

namespace outbox::store::sql {
namespace {

using std::chrono::milliseconds;

std::string headers_json(const std::map<std::string, std::string>& headers) {
  return event::headers_to_json({headers.begin(), headers.end()});
}

/// Anything but a JSON object of texts counts as no headers.
std::map<std::string, std::string> headers_map(std::string_view json) {
  const auto headers = event::headers_from_json(json);
  return headers ? std::map<std::string, std::string>(headers->begin(), headers->end())
                 : std::map<std::string, std::string>();
}

/// A text that was written by hand may be anything. A value below 0 is an error of the schedule.
milliseconds parse_interval(std::string_view text) {
  const auto length = parse_duration(text);
  return length ? std::chrono::duration_cast<milliseconds>(*length) : milliseconds(-1);
}

ScheduleRow read_schedule(Row row) {
  ScheduleRow found;
  Schedule& schedule = found.schedule;
  std::string headers;
  std::string every;
  std::string missed;
  row.read(schedule.name, schedule.queue, schedule.type, schedule.payload, schedule.content_type,
           schedule.key, headers, schedule.cron, every, schedule.time_zone, missed, found.paused,
           found.revision, found.next_at_us, found.last_at_us, found.last_task);
  schedule.every = every.empty() ? milliseconds(0) : parse_interval(every);
  // The table accepts no other words.
  schedule.missed = from_word<MissedTicks>(missed).value_or(MissedTicks::one);
  schedule.headers = headers_map(headers);
  return found;
}

class SqlSchedules final : public store::Schedules {
 public:
  explicit SqlSchedules(std::unique_ptr<Connection> connection) : db_(std::move(connection)) {}

  [[nodiscard]] Result<std::int64_t> now_us() override {
    OUTBOX_TRY(const Rows rows, db_->exec(&Statements::clock));
    return rows.first<std::int64_t>();
  }

  [[nodiscard]] Result<bool> apply(const Schedule& schedule, std::int64_t next_at_us) override {
    const std::string headers = headers_json(schedule.headers);
    const std::string every = schedule.every.count() == 0 ? "" : format_duration(schedule.every);
    return changed(&Statements::apply_schedule,
                   {schedule.name, schedule.queue, schedule.type, Bytes{schedule.payload},
                    schedule.content_type, schedule.key, headers, schedule.cron, every,
                    schedule.time_zone, to_word(schedule.missed), Time{next_at_us}});
  }

  [[nodiscard]] Result<DueSchedules> due(std::span<const std::string> queues) override {
    OUTBOX_TRY(const Rows times, db_->exec(&Statements::next_tick, {queues}));
    DueSchedules found;
    times[0].read(found.now_us, found.next_at_us, found.any);
    if (!found.next_at_us || *found.next_at_us > found.now_us) return found;
    OUTBOX_TRY(const Rows rows,
               db_->exec(&Statements::due_schedules, {queues, Time{found.now_us}}));
    found.due = rows.list(read_schedule);
    return found;
  }

  [[nodiscard]] Result<bool> tick(const ScheduleRow& row, const Tick& tick) override {
    const std::span<const Event> tasks(tick.task ? &*tick.task : nullptr, tick.task ? 1 : 0);
    OUTBOX_TRY(validate_all(tasks, EventLimits{}));
    const std::vector<EventId> ids = list_ids(tasks);
    bool done = false;
    OUTBOX_TRY(db_->transact([&]() -> Result<Decision> {
      OUTBOX_TRY(done, changed(&Statements::lock_schedule,
                               {row.schedule.name, Time{row.next_at_us}, row.revision}));
      if (!done) return Decision::rollback;
      Params moved{row.schedule.name, Time{tick.next_at_us}, nullptr, nullptr};
      if (tick.task) moved = {moved[0], moved[1], Time{tick.at_us}, ids.front()};
      OUTBOX_TRY(db_->run_and_write(&Statements::move_schedule, moved, tasks, ids));
      return Decision::commit;
    }));
    return done;
  }

  [[nodiscard]] Result<std::vector<ScheduleRow>> list() override {
    OUTBOX_TRY(const Rows rows, db_->exec(&Statements::list_schedules));
    return rows.list(read_schedule);
  }

  [[nodiscard]] Status pause(std::string_view name) override {
    auto paused = changed_by_person(&Statements::pause_schedule, {name});
    return paused ? Status{} : Status(pass(paused));
  }

  [[nodiscard]] Result<bool> resume(const ScheduleRow& row, std::int64_t next_at_us) override {
    return changed_by_person(&Statements::resume_schedule,
                             {row.schedule.name, row.revision, Time{next_at_us}});
  }

  [[nodiscard]] Result<bool> remove(std::string_view name) override {
    return changed_by_person(&Statements::remove_schedule, {name});
  }

 private:
  /// Whether the statement found a row.
  [[nodiscard]] Result<bool> changed(Named statement, const Params& params) {
    OUTBOX_TRY(const Rows rows, db_->exec(statement, params));
    return !rows.empty();
  }

  [[nodiscard]] Result<bool> changed_by_person(Named statement, const Params& params) {
    bool found = false;
    OUTBOX_TRY(change_recorded(*db_, {}, [&]() -> Result<std::int64_t> {
      OUTBOX_TRY(found, changed(statement, params));
      return std::int64_t{found};
    }));
    return found;
  }

  std::unique_ptr<Connection> db_;
};

}  // namespace

std::unique_ptr<store::Schedules> make_schedules(std::unique_ptr<Connection> connection) {
  return std::make_unique<SqlSchedules>(std::move(connection));
}

}  // namespace outbox::store::sql
