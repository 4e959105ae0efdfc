// The part of `outbox status` about queues of tasks and their workers.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "base/outage.hpp"
#include "cli/status_parts.hpp"
#include "cli/table.hpp"

namespace outbox::cli {
namespace {

/// A text such as "120us", "3.4ms", "12s" or "5m".
std::string duration_text(const health::QueueLine& line, double share) {
  const auto took = duration_quantile(line.runs, share);
  if (!took) return "-";
  const auto ns = static_cast<double>(took->count());
  if (ns < 1e6) return fmt::format("{:.0f}us", ns / 1e3);
  if (ns < 1e9) return fmt::format("{:.{}f}ms", ns / 1e6, ns < 1e7 ? 1 : 0);
  if (ns < 1e10) return fmt::format("{:.1f}s", ns / 1e9);
  return age_text(std::chrono::duration_cast<std::chrono::microseconds>(*took));
}

Json seconds_or_null(const health::QueueLine& line, double share) {
  const auto took = duration_quantile(line.runs, share);
  return took ? Json(std::chrono::duration<double>(*took).count()) : Json();
}

std::string list_queues(const store::WorkerRow& worker) {
  std::set<std::string> queues;
  for (const auto& type : worker.note.types) queues.insert(type.queue);
  std::string text;
  for (const std::string& queue : queues) text += (text.empty() ? "" : ", ") + queue;
  return text.empty() ? "-" : text;
}

}  // namespace

void print_queues(const health::Queues& view) {
  if (view.lines.empty()) return;
  Table table({"QUEUE", "TYPE", "READY", "RUNNING", "SCHEDULED", "RETRYING", "WAITING", "DEAD",
               "OLDEST", "P50", "P95", "P99"});
  for (const health::QueueLine& line : view.lines) {
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
    workers.add({worker.name, worker.is_alive() ? "yes" : "no", list_queues(worker),
                 std::to_string(worker.running), age_text(worker.silent) + " ago"});
  }
  workers.print();
  print("\n");
}

Json queues_to_json(const health::Queues& view) {
  Json queues = Json::array();
  for (const health::QueueLine& line : view.lines) {
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

Json workers_to_json(const health::Queues& view) {
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
