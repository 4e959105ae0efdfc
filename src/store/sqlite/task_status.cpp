#include <algorithm>
#include <string>

#include "base/error.hpp"
#include "event/arena.hpp"
#include "event/task.hpp"
#include "event/task_queue.hpp"
#include "event/time_text.hpp"
#include "store/sql/parts.hpp"
#include "store/sqlite/clock.hpp"
#include "store/sqlite/parts.hpp"
#include "store/sqlite/queries.hpp"
#include "store/text.hpp"

namespace outbox::store::sqlite {
namespace {

constexpr std::size_t kMostWithOneId = 16;

/// The time in the event's header for which it waits; nullopt if it does not wait for one.
std::optional<Timestamp> scheduled_at(const EventListing& event) {
  event::Arena arena;
  const auto rules = event::parse_task_rules(event.headers, arena);
  if (!rules || !rules->execute_at_us || *rules->execute_at_us <= wall_us()) return std::nullopt;
  return event::timestamp(*rules->execute_at_us);
}

void add_schedule(const EventListing& event, TaskStatus& status) {
  const bool waits = status.state == TaskState::pending ||
                     (status.state == TaskState::retrying && status.attempts == 0);
  const auto at = waits ? scheduled_at(event) : std::nullopt;
  if (!at) return;
  status.state = TaskState::scheduled;
  status.next_attempt_at = at;
}

void add_life(const EventLife& life, TaskStatus& status) {
  status.attempts = static_cast<std::size_t>(life.attempts.value_or(0));
  if (life.next_attempt_at_us) status.next_attempt_at = event::timestamp(*life.next_attempt_at_us);
  if (life.published_by_us) status.ended_at = event::timestamp(*life.published_by_us);
  status.error = life.reason.empty() ? life.error : life.reason;
  sql::set_state(status, life.state);
}

/// Adds what was noted when the task ended.
Status add_end(Connection& connection, TaskStatus& status) {
  OUTBOX_TRY(const Statement row, connection.query(query::kTaskEnd, to_bytes(status.id)));
  if (!row.has_row() || status.state == TaskState::dead || status.state == TaskState::cancelled)
    return {};
  status.state = row.bytes(0) == "done" ? TaskState::completed : TaskState::cancelled;
  if (!row.is_null(1)) status.result = std::string(row.bytes(1));
  if (!row.bytes(2).empty()) status.error = row.text(2);
  status.ended_at = event::timestamp(row.integer(3));
  return {};
}

Status add_run(Connection& connection, const EventListing& event, const EventLife& life,
               TaskStatus& status) {
  OUTBOX_TRY(const Statement row,
             connection.query(query::kTaskRow, life.subscription, event.seq, to_bytes(event.id)));
  if (!row.has_row()) return {};
  status.worker = row.text(0);
  if (!row.is_null(1)) status.running_since = event::timestamp(row.integer(1));
  if (!row.is_null(2)) status.percent = static_cast<std::size_t>(row.integer(2));
  status.progress = row.text(3);
  if (!row.is_null(4)) status.error = row.text(4);
  return {};
}

Result<std::optional<TaskStatus>> read_status(Connection& connection, const EventListing& event) {
  if (!event::is_task(event.aggregate_type)) return std::nullopt;
  const auto find = [&](const std::string& name) {
    return std::find_if(event.subscriptions.begin(), event.subscriptions.end(),
                        [&](const auto& one) { return one.subscription == name; });
  };
  const std::string of_type = event::subscription_of_type(event.aggregate_type, event.event_type);
  auto life = find(event::subscription_of_task(event.aggregate_type));
  if (life == event.subscriptions.end() || life->apart) life = find(of_type);
  // The task is in a queue that has had no worker yet.
  const bool known = life != event.subscriptions.end();
  if (!known && !event.in_log) return std::nullopt;
  TaskStatus status{.id = event.id,
                    .queue = event::queue_of_task(event.aggregate_type),
                    .type = event.event_type,
                    .key = event.aggregate_id,
                    .enqueued_at = event.created_at};
  status.priority = event::parse_task_place(event.aggregate_type).priority;
  if (known) {
    add_life(*life, status);
    OUTBOX_TRY(add_run(connection, event, *life, status));
  }
  OUTBOX_TRY(add_end(connection, status));
  add_schedule(event, status);
  return status;
}

Result<std::optional<TaskStatus>> find(Connection& connection, const EventId& id) {
  const auto events = make_events(Connection::borrow(connection.handle()));
  OUTBOX_TRY(const EventPage page, events->list({.id = id}, kMostWithOneId, true));
  for (const EventListing& event : page.events) {
    auto status = read_status(connection, event);
    if (!status || *status) return status;
  }
  return std::nullopt;
}

}  // namespace

Result<std::optional<TaskStatus>> read_task(Connection& connection, const EventId& id) {
  if (connection.in_transaction()) return find(connection, id);
  // Everything is read in one snapshot: a task that is settled meanwhile would look as if it had no
  // row.
  OUTBOX_TRY(connection.run(query::kBeginRead));
  auto status = find(connection, id);
  Status ended = connection.run(query::kCommit);
  if (!ended && connection.in_transaction()) (void)connection.run(query::kRollback);
  if (status && !ended) return pass(ended);
  return status;
}

}  // namespace outbox::store::sqlite
