// Tasks for people.
#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "base/error.hpp"
#include "event/task_queue.hpp"
#include "store/common/subscription.hpp"
#include "store/sqlite/clock.hpp"
#include "store/sqlite/parts.hpp"
#include "store/sqlite/queries.hpp"
#include "store/sqlite/task_queries.hpp"
#include "store/tasks.hpp"
#include "store/text.hpp"

namespace outbox::store::sqlite {
namespace {

/// The aggregate_type of the tasks that a subscription of a queue delivers.
std::string tasks_of(const SubscriptionRow& subscription) {
  const auto& types = subscription.spec.aggregate_types;
  return types.empty() ? std::string() : types.front();
}

/// Empty: all types but those that have a subscription of their own.
std::string own_type_of(const SubscriptionRow& subscription) {
  return event::is_of_type(subscription.spec) ? subscription.spec.event_types.front() : "";
}

class SqliteTaskQueues final : public TaskQueues {
 public:
  explicit SqliteTaskQueues(Connection connection) : connection_(std::move(connection)) {}

  [[nodiscard]] Result<std::optional<TaskStatus>> task(const EventId& id) override {
    return read_task(connection_, id);
  }

  [[nodiscard]] Result<std::vector<PendingTask>> pending(const SubscriptionRow& subscription,
                                                         const PendingFilter& filter,
                                                         std::size_t limit) override {
    OUTBOX_TRY(const std::int64_t position, position_of(subscription));
    const std::string tasks = tasks_of(subscription);
    OUTBOX_TRY(
        Statement row,
        connection_.query(query::kPendingTasks, position, kMostPendingSearched, tasks, filter.type,
                          filter.key, static_cast<std::int64_t>(limit), own_type_of(subscription)));
    std::vector<PendingTask> all;
    while (row.has_row()) {
      all.push_back({.seq = row.integer(0),
                     .id = id_of(row.bytes(1)),
                     .type = row.text(2),
                     .key = row.text(3),
                     .created_at_us = row.integer(4)});
      if (Status status = row.next(); !status) return pass(status);
    }
    return all;
  }

  [[nodiscard]] Result<QueueReport> look(std::span<const SubscriptionRow> subscriptions,
                                         std::int64_t limit) override {
    QueueReport report;
    for (const SubscriptionRow& row : subscriptions) {
      Status status = count_pending(row, limit, report);
      if (status) status = count_rows(row.id, report);
      if (!status) return pass(status);
    }
    if (Status status = list_workers(report); !status) return pass(status);
    return report;
  }

 private:
  [[nodiscard]] Status count_pending(const SubscriptionRow& subscription, std::int64_t limit,
                                     QueueReport& report) {
    OUTBOX_TRY(const std::int64_t position, position_of(subscription));
    const std::string tasks = tasks_of(subscription);
    OUTBOX_TRY(Statement row, connection_.query(query::kCountPendingTasks, position, limit + 1,
                                                tasks, own_type_of(subscription)));
    std::int64_t looked_at = 0;
    while (row.has_row()) {
      looked_at += row.integer(1);
      if (!row.is_null(0)) {
        report.counts.push_back({.subscription = subscription.id,
                                 .type = row.text(0),
                                 .state = TaskState::pending,
                                 .tasks = row.integer(1),
                                 .waited = since(row.integer(2))});
      }
      if (Status status = row.next(); !status) return status;
    }
    if (looked_at > limit) report.more.insert(subscription.id);
    return {};
  }

  [[nodiscard]] Status count_rows(std::int32_t subscription, QueueReport& report) {
    OUTBOX_TRY(Statement row, connection_.query(query::kCountTasks, std::int64_t{subscription},
                                                kMostRowsCounted, wall_us()));
    std::int64_t counted = 0;
    while (row.has_row()) {
      counted += row.integer(2);
      report.counts.push_back(
          {.subscription = subscription,
           .type = row.text(0),
           .state = event::find_task_state(row.text(1)).value_or(TaskState::dead),
           .tasks = row.integer(2),
           .waited = std::chrono::microseconds(std::max<std::int64_t>(row.integer(3), 0))});
      if (Status status = row.next(); !status) return status;
    }
    if (counted >= kMostRowsCounted) report.more.insert(subscription);
    return {};
  }

  [[nodiscard]] Status list_workers(QueueReport& report) {
    constexpr std::int64_t kHourUs = 3'600'000'000;
    OUTBOX_TRY(Statement row, connection_.query(query::kWorkers, wall_us() - kHourUs));
    while (row.has_row()) {
      report.workers.push_back({.name = row.text(0),
                                .silent = since(row.integer(1)),
                                .running = row.integer(2),
                                .note = worker_note_of(row.text(3))});
      if (Status status = row.next(); !status) return status;
    }
    return {};
  }

  static std::chrono::microseconds since(std::int64_t time_us) {
    return std::chrono::microseconds(std::max<std::int64_t>(wall_us() - time_us, 0));
  }

  [[nodiscard]] Result<std::int64_t> position_of(const SubscriptionRow& subscription) {
    OUTBOX_TRY(const Statement cursor, connection_.query(query::kNewestCursor, subscription.id));
    if (cursor.has_row()) return cursor.integer(0);
    // That of a type that has not begun: its tasks are those of the queue.
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
