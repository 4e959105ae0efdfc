#include "health/queues.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.hpp"
#include "event/task_queue.hpp"

namespace outbox::health {
namespace {

using Lines = std::map<std::pair<std::string, std::string>, QueueLine>;

QueueLine& find_line(Lines& lines, const std::string& queue, const std::string& type) {
  QueueLine& line = lines[{queue, type}];
  line.queue = queue;
  line.type = type;
  return line;
}

void add(const store::TaskCount& count, QueueLine& line) {
  using enum TaskState;
  switch (count.state) {
    case pending: line.ready += count.tasks; break;
    case running: line.running += count.tasks; break;
    case scheduled: line.scheduled += count.tasks; break;
    case retrying: line.retrying += count.tasks; break;
    case waiting: line.waiting += count.tasks; break;
    case dead: line.dead += count.tasks; break;
    case completed:
    case cancelled: break;
  }
  const bool waits = count.state == pending || count.waited.count() > 0;
  if (waits) line.oldest = std::max(line.oldest.value_or(count.waited), count.waited);
}

void add(const store::WorkerRow& worker, Lines& lines) {
  for (const auto& type : worker.note.types) {
    QueueLine& line = find_line(lines, type.queue, type.name);
    line.has_handler = true;
    for (const auto& [bucket, runs] : type.runs) line.runs[bucket] += runs;
  }
}

}  // namespace

bool Queues::has_worker(const std::string& queue) const {
  return std::any_of(workers.begin(), workers.end(), [&](const auto& worker) {
    const auto& types = worker.note.types;
    return worker.is_alive() && std::any_of(types.begin(), types.end(),
                                            [&](const auto& type) { return type.queue == queue; });
  });
}

Result<Queues> look_at_queues(store::Store& store,
                              const std::vector<store::SubscriptionOverview>& subscriptions,
                              std::int64_t limit) {
  std::vector<store::SubscriptionRow> of_queues;
  std::map<std::int32_t, std::string> queues;
  for (const auto& [row, progress, parked] : subscriptions) {
    const auto queue = event::queue_of_subscription(row.spec.name);
    if (!queue) continue;
    queues[row.id] = *queue;
    of_queues.push_back(row);
  }
  Queues seen;
  if (of_queues.empty()) return seen;
  OUTBOX_TRY(const auto task_queues, store.task_queues());
  OUTBOX_TRY(store::QueueReport report, task_queues->look(of_queues, limit));
  Lines lines;
  for (const auto& count : report.counts) {
    QueueLine& line = find_line(lines, queues.at(count.subscription), count.type);
    add(count, line);
    line.more = line.more || report.more.contains(count.subscription);
  }
  for (const auto& worker : report.workers) {
    if (worker.is_alive()) add(worker, lines);
  }
  for (const auto& entry : queues) {
    const std::string& queue = entry.second;
    const bool known = std::any_of(lines.begin(), lines.end(),
                                   [&](const auto& one) { return one.second.queue == queue; });
    if (!known) (void)find_line(lines, queue, "");
  }
  for (auto& [place, line] : lines) seen.lines.push_back(std::move(line));
  seen.workers = std::move(report.workers);
  return seen;
}

}  // namespace outbox::health
