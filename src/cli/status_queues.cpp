#include "cli/status_queues.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/count.hpp"
#include "base/outage.hpp"
#include "cli/exit.hpp"
#include "cli/table.hpp"
#include "event/task_queue.hpp"

namespace outbox::cli {
namespace {

using Lines = std::map<std::pair<std::string, std::string>, QueueLine>;

QueueLine& line_of(Lines& lines, const std::string& queue, const std::string& type) {
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
    QueueLine& line = line_of(lines, type.queue, type.name);
    line.has_handler = true;
    for (const auto& [bucket, runs] : type.runs) line.runs[bucket] += runs;
  }
}

bool has_worker(const QueueView& view, const std::string& queue) {
  return std::any_of(view.workers.begin(), view.workers.end(), [&](const auto& worker) {
    return worker.is_alive() && std::any_of(worker.note.types.begin(), worker.note.types.end(),
                                            [&](const auto& type) { return type.queue == queue; });
  });
}

/// "120us", "3.4ms", "12s", "5m"
std::string duration_text(const QueueLine& line, double share) {
  const auto took = duration_quantile(line.runs, share);
  if (!took) return "-";
  const auto ns = static_cast<double>(took->count());
  if (ns < 1e6) return fmt::format("{:.0f}us", ns / 1e3);
  if (ns < 1e9) return fmt::format("{:.{}f}ms", ns / 1e6, ns < 1e7 ? 1 : 0);
  if (ns < 1e10) return fmt::format("{:.1f}s", ns / 1e9);
  return age_text(std::chrono::duration_cast<std::chrono::microseconds>(*took));
}

Json seconds_or_null(const QueueLine& line, double share) {
  const auto took = duration_quantile(line.runs, share);
  return took ? Json(std::chrono::duration<double>(*took).count()) : Json();
}

std::string queues_of(const store::WorkerRow& worker) {
  std::set<std::string> queues;
  for (const auto& type : worker.note.types) queues.insert(type.queue);
  std::string text;
  for (const std::string& queue : queues) text += (text.empty() ? "" : ", ") + queue;
  return text.empty() ? "-" : text;
}

std::int64_t tasks_to_do(const QueueLine& line) {
  return line.ready + line.running + line.scheduled + line.retrying + line.waiting;
}

}  // namespace

QueueView look_at_queues(store::Store& store,
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
  QueueView view;
  if (of_queues.empty()) return view;
  store::QueueReport report = must(must(store.task_queues())->look(of_queues, limit));
  Lines lines;
  for (const auto& count : report.counts) {
    QueueLine& line = line_of(lines, queues.at(count.subscription), count.type);
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
    if (!known) (void)line_of(lines, queue, "");
  }
  for (auto& [place, line] : lines) view.lines.push_back(std::move(line));
  view.workers = std::move(report.workers);
  return view;
}

std::vector<std::string> problems_of(const QueueView& view) {
  std::vector<std::string> found;
  for (const QueueLine& line : view.lines) {
    if (line.has_handler || tasks_to_do(line) == 0 || !has_worker(view, line.queue)) continue;
    found.push_back(fmt::format(
        "queue {0}: no worker has a handler for type {1}, and {2}{3} (hint: start a worker that has one; "
        "outbox tasks list --queue {0} --type {1})",
        line.queue, line.type, line.more ? "more than " : "",
        count("task", tasks_to_do(line), "of it waits", "of it wait")));
  }
  return found;
}

void print_queues(const QueueView& view) {
  if (view.lines.empty()) return;
  Table table({"QUEUE", "TYPE", "READY", "RUNNING", "SCHEDULED", "RETRYING", "WAITING", "DEAD",
               "OLDEST", "P50", "P95", "P99"});
  for (const QueueLine& line : view.lines) {
    table.add({line.queue, line.type.empty() ? "-" : line.type,
               std::to_string(line.ready) + (line.more ? "+" : ""), std::to_string(line.running),
               std::to_string(line.scheduled), std::to_string(line.retrying),
               std::to_string(line.waiting), std::to_string(line.dead),
               line.oldest ? age_text(*line.oldest) : "-", duration_text(line, 0.5),
               duration_text(line, 0.95), duration_text(line, 0.99)});
    if (!line.has_handler && !line.type.empty())
      table.note("  no live worker has a handler for it");
  }
  table.print();
  print("\n");
  if (view.workers.empty()) return;
  Table workers({"WORKER", "ALIVE", "QUEUES", "RUNNING", "SEEN"});
  for (const auto& worker : view.workers) {
    workers.add({worker.name, worker.is_alive() ? "yes" : "no", queues_of(worker),
                 std::to_string(worker.running), age_text(worker.silent) + " ago"});
  }
  workers.print();
  print("\n");
}

Json queues_to_json(const QueueView& view) {
  Json queues = Json::array();
  for (const QueueLine& line : view.lines) {
    queues.push_back({{"queue", line.queue},
                      {"type", or_null(line.type)},
                      {"ready", line.ready},
                      {"running", line.running},
                      {"scheduled", line.scheduled},
                      {"retrying", line.retrying},
                      {"waiting", line.waiting},
                      {"dead", line.dead},
                      {"more", line.more},
                      {"oldest_seconds", line.oldest ? Json(in_seconds(*line.oldest)) : Json()},
                      {"p50_seconds", seconds_or_null(line, 0.5)},
                      {"p95_seconds", seconds_or_null(line, 0.95)},
                      {"p99_seconds", seconds_or_null(line, 0.99)},
                      {"has_handler", line.has_handler}});
  }
  return queues;
}

Json workers_to_json(const QueueView& view) {
  Json workers = Json::array();
  for (const auto& worker : view.workers) {
    Json queues = Json::object();
    for (const auto& type : worker.note.types) queues[type.queue].push_back(type.name);
    workers.push_back({{"name", worker.name},
                       {"alive", worker.is_alive()},
                       {"queues", queues},
                       {"running", worker.running},
                       {"seen_seconds", in_seconds(worker.silent)}});
  }
  return workers;
}

std::string age_text(std::chrono::microseconds age) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(age).count();
  if (seconds < 60) return std::to_string(seconds) + "s";
  if (seconds < 3600) return std::to_string(seconds / 60) + "m";
  if (seconds < std::int64_t{48} * 3600) return std::to_string(seconds / 3600) + "h";
  return std::to_string(seconds / 86400) + "d";
}

}  // namespace outbox::cli
