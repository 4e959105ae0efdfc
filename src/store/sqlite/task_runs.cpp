// The rows of tasks that run.
#include "store/task_runs.hpp"

#include <utility>

#include "store/common/wait.hpp"
#include "store/sqlite/clock.hpp"
#include "store/sqlite/event_row.hpp"
#include "store/sqlite/parking.hpp"
#include "store/sqlite/parts.hpp"
#include "store/sqlite/queries.hpp"
#include "store/text.hpp"

namespace outbox::store::sqlite {
namespace {

class SqliteTaskRuns final : public TaskRuns {
 public:
  explicit SqliteTaskRuns(Connection connection) : connection_(std::move(connection)) {}

  [[nodiscard]] Result<std::int64_t> beat(const EventId& worker, std::string_view name,
                                          std::string_view note) override {
    Status status = connection_.run(query::kBeatWorker, bytes_of(worker), name, wall_us(), note);
    return status ? Result<std::int64_t>(wall_us()) : pass(status);
  }

  [[nodiscard]] Status leave(const EventId& worker) override {
    return connection_.run(query::kRemoveWorker, bytes_of(worker), wall_us());
  }

  [[nodiscard]] Result<std::vector<TaskRunRow>> runs_of(const EventId& worker,
                                                        std::span<const std::string> subscriptions,
                                                        std::size_t limit) override {
    std::vector<TaskRunRow> runs;
    for (const std::string& name : subscriptions) {
      OUTBOX_TRY(Statement row, connection_.query(query::kRunsOfWorker, name, bytes_of(worker),
                                                  static_cast<std::int64_t>(limit)));
      while (row.has_row()) {
        runs.push_back({.subscription = static_cast<std::int32_t>(row.integer(0)),
                        .queue = name,
                        .seq = row.integer(1),
                        .id = id_of(row.bytes(2)),
                        .attempts = static_cast<std::size_t>(row.integer(3)),
                        .token = row.integer(4),
                        .type = row.text(5),
                        .headers = row.text(6),
                        .cancelled = row.integer(7) != 0});
        if (Status status = row.next(); !status) return pass(status);
      }
    }
    return runs;
  }

  [[nodiscard]] Result<std::vector<OtherWorker>> others(
      const EventId& me, std::span<const std::string> subscriptions) override {
    std::vector<OtherWorker> others;
    for (const std::string& name : subscriptions) {
      OUTBOX_TRY(Statement row, connection_.query(query::kOtherWorkers, name, bytes_of(me)));
      while (row.has_row()) {
        others.push_back({.id = id_of(row.bytes(0)),
                          .beat = row.is_null(1) ? std::nullopt : std::optional(row.integer(1)),
                          .heartbeat = std::chrono::milliseconds(row.integer(2))});
        if (Status status = row.next(); !status) return pass(status);
      }
    }
    return others;
  }

  [[nodiscard]] Status end(std::span<const TaskRunEnd> ends,
                           std::span<const TaskFinish> finishes) override {
    if (ends.empty() && finishes.empty()) return {};
    OUTBOX_TRY(WriteTransaction transaction, WriteTransaction::begin(connection_));
    if (Status status = end_runs(connection_, ends); !status) return status;
    for (const TaskFinish& finish : finishes) {
      if (Status status = finish_task(connection_, finish); !status) return status;
    }
    return transaction.commit();
  }

  [[nodiscard]] Result<std::vector<MayBegin>> begin_unique(
      std::span<const UniqueTask> tasks) override {
    OUTBOX_TRY(WriteTransaction transaction, WriteTransaction::begin(connection_));
    std::vector<MayBegin> all;
    for (const UniqueTask& task : tasks) {
      OUTBOX_TRY(const bool over, is_cancelled(task.id));
      if (over) {
        all.push_back(MayBegin::replaced);
        continue;
      }
      Status status =
          connection_.run(query::kBeginUnique, task.queue, task.unique_key, bytes_of(task.id));
      if (!status) return pass(status);
      if (connection_.changes() > 0) {
        all.push_back(MayBegin::begin);
        continue;
      }
      OUTBOX_TRY(const Statement row,
                 connection_.query(query::kUniqueTask, task.queue, task.unique_key));
      const bool has_key = row.has_row() && id_of(row.bytes(0)) == task.id;
      all.push_back(has_key ? MayBegin::later : MayBegin::replaced);
    }
    if (Status status = transaction.commit(); !status) return pass(status);
    return all;
  }

  [[nodiscard]] Result<std::vector<ReplacedTask>> replaced(
      std::span<const std::string> subscriptions) override {
    constexpr std::int64_t kMost = 1000;
    std::vector<ReplacedTask> all;
    for (const std::string& name : subscriptions) {
      OUTBOX_TRY(Statement row, connection_.query(query::kReplacedParked, name, kMost));
      while (row.has_row()) {
        all.push_back(
            {.subscription = static_cast<std::int32_t>(row.integer(0)), .seq = row.integer(1)});
        if (Status status = row.next(); !status) return pass(status);
      }
    }
    return all;
  }

  // One worker has a file: there is nobody to share tasks with.
  [[nodiscard]] Status announce_free_threads(
      const EventId& /*worker*/, const std::map<std::string, std::size_t>& /*free*/) override {
    return {};
  }
  [[nodiscard]] Result<OtherThreads> other_threads(const EventId& /*me*/,
                                                   std::string_view /*queue*/,
                                                   std::chrono::milliseconds /*alive*/) override {
    return OtherThreads{};
  }
  [[nodiscard]] Result<ClaimedTasks> claim(const EventId& /*worker*/,
                                           std::span<const std::string> /*subscriptions*/,
                                           std::span<const std::string> /*types*/,
                                           std::size_t /*limit*/) override {
    return ClaimedTasks{};
  }
  [[nodiscard]] Result<bool> wait(const EventFd& bell,
                                  std::chrono::steady_clock::time_point until) override {
    auto rung = wait_for(bell, -1, until);
    if (!rung) return rung;
    return false;
  }

  [[nodiscard]] Status report(const EventId& worker,
                              std::span<const TaskProgress> progress) override {
    OUTBOX_TRY(WriteTransaction transaction, WriteTransaction::begin(connection_));
    for (const TaskProgress& one : progress) {
      Status status =
          connection_.run(query::kReportProgress, one.subscription, one.seq, bytes_of(worker),
                          one.token, static_cast<std::int64_t>(one.percent), one.text);
      if (!status) return status;
    }
    return transaction.commit();
  }

 private:
  [[nodiscard]] Result<bool> is_cancelled(const EventId& task) {
    OUTBOX_TRY(const Statement row, connection_.query(query::kIsCancelled, bytes_of(task)));
    return row.has_row();
  }

  Connection connection_;
};

}  // namespace

std::unique_ptr<TaskRuns> make_task_runs(Connection connection) {
  return std::make_unique<SqliteTaskRuns>(std::move(connection));
}

}  // namespace outbox::store::sqlite
