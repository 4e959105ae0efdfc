// Queues of tasks as people see them.
#include <limits>
#include <memory>
#include <utility>

#include "base/error.hpp"
#include "event/task_queue.hpp"
#include "store/sql/parts.hpp"
#include "store/sqlite/parts.hpp"
#include "store/sqlite/queries.hpp"
#include "store/stored_subscription.hpp"
#include "store/tasks.hpp"

namespace outbox::store::sqlite {
namespace {

class SqliteTaskQueues final : public TaskQueues {
 public:
  explicit SqliteTaskQueues(Connection connection) : connection_(std::move(connection)) {}

  [[nodiscard]] Result<std::optional<TaskStatus>> task(const EventId& id) override {
    return read_task(connection_, id);
  }

  [[nodiscard]] Result<std::vector<PendingTask>> pending(const SubscriptionRow& subscription,
                                                         const PendingFilter& filter,
                                                         std::size_t limit) override {
    OUTBOX_TRY(const std::int64_t position, read_position(subscription));
    OUTBOX_TRY(const sql::Rows rows,
               connection_.exec_all(
                   query::kPendingTasks,
                   {position, kMostPendingSearched, sql::task_type(subscription), filter.type,
                    filter.key, static_cast<std::int64_t>(limit), sql::own_type(subscription)}));
    return rows.list(sql::read_pending_task);
  }

  [[nodiscard]] Result<QueueReport> look(std::span<const SubscriptionRow> subscriptions,
                                         std::int64_t limit) override {
    QueueReport report;
    for (const SubscriptionRow& row : subscriptions) {
      OUTBOX_TRY(const std::int64_t position, read_position(row));
      OUTBOX_TRY(
          const sql::Rows pending,
          connection_.exec_all(query::kCountPendingTasks,
                               {position, limit + 1, sql::task_type(row), sql::own_type(row)}));
      std::int64_t looked_at = 0;
      sql::add_pending(pending, row.id, report, looked_at);
      if (looked_at > limit) report.more.insert(row.id);
      OUTBOX_TRY(const sql::Rows counts,
                 connection_.exec_all(query::kCountTasks, {row.id, kMostRowsCounted}));
      sql::add_counts(counts, report);
    }
    OUTBOX_TRY(const sql::Rows workers, connection_.exec_all(query::kWorkers, {}));
    sql::add_workers(workers, report);
    return report;
  }

 private:
  [[nodiscard]] Result<std::int64_t> read_position(const SubscriptionRow& subscription) {
    OUTBOX_TRY(const Statement cursor, connection_.query(query::kNewestCursor, subscription.id));
    if (cursor.has_row()) return cursor.integer(0);
    // The subscription is that of a type that has not begun: its tasks are still those of the
    // queue.
    if (event::is_of_type(subscription.spec)) return std::numeric_limits<std::int64_t>::max();
    return no_cursor(subscription.spec.name);
  }

  Connection connection_;
};

}  // namespace

std::unique_ptr<TaskQueues> make_task_queues(Connection connection) {
  return std::make_unique<SqliteTaskQueues>(std::move(connection));
}

}  // namespace outbox::store::sqlite
