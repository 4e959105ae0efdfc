// Queues of tasks as people see them.
#include <libpq-fe.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "base/error.hpp"
#include "event/time_text.hpp"
#include "store/postgres/parts.hpp"
#include "store/postgres/snapshot.hpp"
#include "store/postgres/strands.hpp"
#include "store/postgres/task_queries.hpp"
#include "store/sql/parts.hpp"
#include "store/stored_subscription.hpp"
#include "store/tasks.hpp"

namespace outbox::store::postgres {
namespace {

/// The events that are not passed on some lanes: $1 to $7 of TaskQueries::pending and
/// count_pending.
Result<Params> make_range(const Strand& strand, std::int64_t looked_at) {
  const Cursor& cursor = strand.cursor;
  OUTBOX_TRY(const Snapshot s1, parse_snapshot(cursor.s1));
  OUTBOX_TRY(const Snapshot s2, parse_snapshot(cursor.drained() ? cursor.s1 : cursor.s2));
  return Params{cursor.s1,
                std::to_string(s1.xmin),
                static_cast<std::int64_t>(strand.lanes),
                looked_at,
                cursor.drained() ? Param::null() : Param(cursor.position),
                std::to_string(s2.xmax),
                Param::xid8_array(s2.xip)};
}

/// One row, whose columns are found by their names. A missing column reads as null.
class StatusRow {
 public:
  StatusRow(const Rows& rows, int row) : rows_(rows), row_(row) {}

  [[nodiscard]] std::optional<int> find(const char* name) const {
    const int column = PQfnumber(rows_.native(), name);
    if (column < 0 || rows_.is_null(row_, column)) return std::nullopt;
    return column;
  }
  [[nodiscard]] std::string text(const char* name) const {
    const auto column = find(name);
    return column ? rows_.text(row_, *column) : std::string();
  }
  [[nodiscard]] std::optional<Timestamp> time(const char* name) const {
    const auto column = find(name);
    if (!column) return std::nullopt;
    return event::timestamp(rows_.time_us(row_, *column));
  }
  [[nodiscard]] std::size_t int4(const char* name) const {
    const auto column = find(name);
    return column ? static_cast<std::size_t>(rows_.int4(row_, *column)) : 0;
  }
  [[nodiscard]] std::optional<std::size_t> int2(const char* name) const {
    const auto column = find(name);
    if (!column) return std::nullopt;
    return static_cast<std::size_t>(rows_.int2(row_, *column));
  }

 private:
  const Rows& rows_;
  int row_;
};

class PostgresTaskQueues final : public TaskQueues {
 public:
  explicit PostgresTaskQueues(Connection connection)
      : connection_(std::move(connection)), queries_(connection_.queries().schema) {}

  [[nodiscard]] Result<std::optional<TaskStatus>> task(const EventId& id) override {
    OUTBOX_TRY(const Rows rows, connection_.exec(queries_.status, {id}));
    return read_task_status(rows, id);
  }

  [[nodiscard]] Result<std::vector<PendingTask>> pending(const SubscriptionRow& subscription,
                                                         const PendingFilter& filter,
                                                         std::size_t limit) override {
    OUTBOX_TRY(const auto strands, read_strands(connection_, subscription.id, kAllLanes));
    std::vector<PendingTask> all;
    for (const Strand& strand : strands) {
      OUTBOX_TRY(Params params, make_range(strand, kMostPendingSearched));
      params.emplace_back(sql::task_type(subscription));
      params.push_back(own_type(subscription));
      params.push_back(Param::text_or_null(filter.type));
      params.push_back(Param::text_or_null(filter.key));
      params.emplace_back(static_cast<std::int64_t>(limit));
      OUTBOX_TRY(const Rows rows, connection_.exec_with(&Queries::plan_settings, queries_.pending,
                                                        std::move(params)));
      const auto some = read_cells(rows).list(sql::read_pending_task);
      all.insert(all.end(), some.begin(), some.end());
    }
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.seq < b.seq; });
    all.resize(std::min(all.size(), limit));
    return all;
  }

  [[nodiscard]] Result<QueueReport> look(std::span<const SubscriptionRow> subscriptions,
                                         std::int64_t limit) override {
    std::vector<std::int64_t> ids;
    connection_.send(&Queries::begin);
    connection_.send(&Queries::plan_settings);
    connection_.send(&Queries::plan_once);
    for (const SubscriptionRow& row : subscriptions) {
      ids.push_back(row.id);
      connection_.send(&Queries::cursors, {row.id, static_cast<std::int64_t>(kAllLanes)});
    }
    connection_.send(queries_.count_rows, {Param::int8_array(ids), kMostRowsCounted});
    connection_.send(queries_.workers, {Param::int8_array(ids)});
    connection_.send(&Queries::commit);
    OUTBOX_TRY(const std::vector<Rows> answers, connection_.finish());
    constexpr std::size_t kFirst = 3;  // behind BEGIN and the settings
    QueueReport report;
    sql::add_counts(read_cells(answers[kFirst + ids.size()]), report);
    sql::add_workers(read_cells(answers[kFirst + ids.size() + 1]), report);
    OUTBOX_TRY(
        add_pending(subscriptions, std::span(answers).subspan(kFirst, ids.size()), limit, report));
    return report;
  }

 private:
  /// Null stands for all types but those that have a subscription of their own.
  static Param own_type(const SubscriptionRow& subscription) {
    return Param::text_or_null(std::string(sql::own_type(subscription)));
  }

  [[nodiscard]] Status add_pending(std::span<const SubscriptionRow> subscriptions,
                                   std::span<const Rows> cursors, std::int64_t limit,
                                   QueueReport& report) {
    std::vector<std::int32_t> asked;
    connection_.send(&Queries::begin);
    connection_.send(&Queries::plan_settings);
    for (std::size_t i = 0; i < subscriptions.size(); ++i) {
      OUTBOX_TRY(const auto strands, to_strands(cursors[i]));
      for (const Strand& strand : strands) {
        OUTBOX_TRY(Params params, make_range(strand, limit + 1));
        params.emplace_back(sql::task_type(subscriptions[i]));
        params.push_back(own_type(subscriptions[i]));
        connection_.send(queries_.count_pending, std::move(params));
        asked.push_back(subscriptions[i].id);
      }
    }
    connection_.send(&Queries::commit);
    OUTBOX_TRY(const std::vector<Rows> answers, connection_.finish());
    std::map<std::int32_t, std::int64_t> looked_at;
    for (std::size_t i = 0; i < asked.size(); ++i) {
      sql::add_pending(read_cells(answers[2 + i]), asked[i], report, looked_at[asked[i]]);
      if (looked_at[asked[i]] > limit) report.more.insert(asked[i]);
    }
    return {};
  }

  Connection connection_;
  const TaskQueries queries_;
};

}  // namespace

std::optional<TaskStatus> read_task_status(const pg::Rows& rows, const EventId& id) {
  if (rows.empty()) return std::nullopt;
  const StatusRow row(rows, rows.size() - 1);
  TaskStatus status{.id = id,
                    .queue = row.text("queue"),
                    .type = row.text("type"),
                    .key = row.text("key"),
                    .attempts = row.int4("attempts"),
                    .next_attempt_at = row.time("next_attempt_at"),
                    .ended_at = row.time("ended_at"),
                    .worker = row.text("worker"),
                    .running_since = row.time("running_since"),
                    .percent = row.int2("percent"),
                    .progress = row.text("progress"),
                    .error = row.text("error")};
  if (const auto at = row.time("enqueued_at")) status.enqueued_at = *at;
  if (row.find("result")) status.result = row.text("result");
  status.priority = row.int4("priority");
  sql::set_state(status, row.text("state"));
  return status;
}

std::unique_ptr<TaskQueues> make_task_queues(Connection connection) {
  return std::make_unique<PostgresTaskQueues>(std::move(connection));
}

}  // namespace outbox::store::postgres
