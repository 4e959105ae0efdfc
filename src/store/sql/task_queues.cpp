// Tasks for people: what both stores read in the same way.
#include <algorithm>
#include <chrono>
#include <map>
#include <string>

#include "event/task_queue.hpp"
#include "store/sql/parts.hpp"

namespace outbox::store::sql {
namespace {

/// A negative time, which a clock that was set back can cause, counts as zero.
std::chrono::microseconds waited(std::int64_t us) {
  return std::chrono::microseconds(std::max<std::int64_t>(us, 0));
}

}  // namespace

std::string_view task_type(const SubscriptionRow& subscription) {
  const auto& types = subscription.spec.aggregate_types;
  return types.empty() ? std::string_view() : types.front();
}

std::string_view own_type(const SubscriptionRow& subscription) {
  if (!event::is_of_type(subscription.spec)) return {};
  return subscription.spec.event_types.front();
}

PendingTask read_pending_task(Row row) {
  PendingTask task;
  row.read(task.seq, task.id, task.type, task.key, task.created_at_us);
  return task;
}

void add_pending(const Rows& rows, std::int32_t subscription, QueueReport& report,
                 std::int64_t& looked_at) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::optional<std::string> type;
    TaskCount count;
    count.subscription = subscription;
    std::int64_t us = 0;
    rows[i].read(type, count.tasks, us);
    looked_at += count.tasks;
    if (!type) continue;
    count.type = *type;
    count.waited = waited(us);
    report.counts.push_back(count);
  }
}

void add_counts(const Rows& rows, QueueReport& report) {
  std::map<std::int32_t, std::int64_t> counted;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    TaskCount count;
    std::string state;
    std::int64_t us = 0;
    rows[i].read(count.subscription, count.type, state, count.tasks, us);
    count.state = event::find_task_state(state).value_or(TaskState::dead);
    count.waited = waited(us);
    counted[count.subscription] += count.tasks;
    if (counted[count.subscription] >= kMostRowsCounted) report.more.insert(count.subscription);
    report.counts.push_back(count);
  }
}

void add_workers(const Rows& rows, QueueReport& report) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::int64_t silent_us = 0;
    std::string note;
    auto& worker = report.workers.emplace_back();
    rows[i].read(worker.name, silent_us, worker.running, note);
    worker.silent = waited(silent_us);
    worker.note = parse_worker_note(note);
  }
}

void set_state(TaskStatus& status, std::string_view word) {
  if (const auto state = event::find_task_state(word)) {
    status.state = *state;
    return;
  }
  if (word == "published") {
    status.state = TaskState::completed;
    return;
  }
  status.state = TaskState::cancelled;
  if (word == "edited") status.error = "a corrected copy took its place";
  if (word == "skipped") status.error = "the subscription of its queue began after it";
  if (word == "filtered") status.error = "the subscription of its queue does not take it";
}

}  // namespace outbox::store::sql
