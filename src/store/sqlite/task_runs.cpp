// The rows of tasks that run.
#include <utility>

#include "base/error.hpp"
#include "store/sql/parts.hpp"
#include "store/sqlite/event_row.hpp"
#include "store/sqlite/parking.hpp"
#include "store/sqlite/parts.hpp"
#include "store/sqlite/queries.hpp"
#include "store/tasks.hpp"
#include "store/text.hpp"
#include "store/wait.hpp"

namespace outbox::store::sqlite {
namespace {

class SqliteTaskRuns final : public sql::TaskRuns {
 public:
  explicit SqliteTaskRuns(std::unique_ptr<Connection> connection)
      : sql::TaskRuns(std::move(connection)), connection_(static_cast<Connection&>(db())) {}

  [[nodiscard]] Status end(std::span<const TaskRunEnd> ends,
                           std::span<const TaskFinish> finishes) override {
    if (ends.empty() && finishes.empty()) return {};
    OUTBOX_TRY(WriteTransaction transaction, WriteTransaction::begin(connection_));
    OUTBOX_TRY(end_runs(connection_, ends));
    for (const TaskFinish& finish : finishes) {
      OUTBOX_TRY(finish_task(connection_, finish));
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
      OUTBOX_TRY(
          connection_.run(query::kBeginUnique, task.queue, task.unique_key, to_bytes(task.id)));
      if (connection_.changes() > 0) {
        all.push_back(MayBegin::begin);
        continue;
      }
      OUTBOX_TRY(const Statement row,
                 connection_.query(query::kUniqueTask, task.queue, task.unique_key));
      const bool has_key = row.has_row() && to_id(row.bytes(0)) == task.id;
      all.push_back(has_key ? MayBegin::later : MayBegin::replaced);
    }
    OUTBOX_TRY(transaction.commit());
    return all;
  }

  // A file has only one worker, so there is nobody to share tasks with.
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
    OUTBOX_TRY(wait_for(bell, -1, until));
    return false;
  }

  [[nodiscard]] Status report(const EventId& worker,
                              std::span<const TaskProgress> progress) override {
    OUTBOX_TRY(WriteTransaction transaction, WriteTransaction::begin(connection_));
    for (const TaskProgress& one : progress) {
      OUTBOX_TRY(connection_.run(query::kReportProgress, one.subscription, one.seq,
                                 to_bytes(worker), one.token,
                                 static_cast<std::int64_t>(one.percent), one.text));
    }
    return transaction.commit();
  }

 private:
  [[nodiscard]] Result<bool> is_cancelled(const EventId& task) {
    OUTBOX_TRY(const Statement row, connection_.query(query::kIsCancelled, to_bytes(task)));
    return row.has_row();
  }

  Connection& connection_;
};

}  // namespace

std::unique_ptr<TaskRuns> make_task_runs(Connection connection) {
  return std::make_unique<SqliteTaskRuns>(std::make_unique<Connection>(std::move(connection)));
}

}  // namespace outbox::store::sqlite
