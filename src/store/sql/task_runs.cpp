// The rows of tasks that run: what both stores do in the same way.
#include "store/sql/parts.hpp"

namespace outbox::store::sql {

Result<std::int64_t> TaskRuns::beat(const EventId& worker, std::string_view name,
                                    std::string_view note) {
  OUTBOX_TRY(const Rows rows, db_->exec(&Statements::beat_worker, {worker, name, note}));
  return rows.first<std::int64_t>();
}

Status TaskRuns::leave(const EventId& worker) {
  return db_->run(&Statements::remove_worker, {worker});
}

Result<std::vector<TaskRunRow>> TaskRuns::runs_of(const EventId& worker,
                                                  std::span<const std::string> subscriptions,
                                                  std::size_t limit) {
  OUTBOX_TRY(const Rows rows, db_->exec(&Statements::runs_of_worker,
                                        {worker, subscriptions, static_cast<std::int64_t>(limit)}));
  return rows.list([](Row row) {
    TaskRunRow run;
    row.read(run.subscription, run.queue, run.seq, run.id, run.attempts, run.token, run.type,
             run.headers, run.cancelled);
    return run;
  });
}

Result<std::vector<OtherWorker>> TaskRuns::others(const EventId& me,
                                                  std::span<const std::string> subscriptions) {
  OUTBOX_TRY(const Rows rows, db_->exec(&Statements::other_workers, {me, subscriptions}));
  return rows.list([](Row row) {
    OtherWorker other;
    std::int64_t heartbeat_ms = 0;
    row.read(other.id, other.beat, heartbeat_ms);
    other.heartbeat = std::chrono::milliseconds(heartbeat_ms);
    return other;
  });
}

Result<std::vector<ReplacedTask>> TaskRuns::replaced(std::span<const std::string> subscriptions) {
  OUTBOX_TRY(const Rows rows, db_->exec(&Statements::replaced_parked, {subscriptions}));
  return rows.list([](Row row) {
    ReplacedTask task;
    row.read(task.subscription, task.seq);
    return task;
  });
}

}  // namespace outbox::store::sql
