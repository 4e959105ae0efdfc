// The part of `outbox status` about what was done before (docs/design/history.md).
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/units.hpp"
#include "cli/exit.hpp"
#include "cli/status_parts.hpp"
#include "cli/table.hpp"
#include "event/task_queue.hpp"
#include "event/time_text.hpp"

namespace outbox::cli {
namespace {

constexpr std::chrono::hours kLongestPast{24 * 3650};

double delivery_rate(const history::Figures& figures, std::chrono::microseconds time) {
  return static_cast<double>(figures.delivered) / std::chrono::duration<double>(time).count();
}

Json percentile_or_null(const history::Figures& figures, double share) {
  const auto seconds = history::percentile(figures.latency, share);
  return seconds ? Json(*seconds) : Json();
}

double oldest_seconds(const history::Figures& figures) {
  return static_cast<double>(figures.oldest_us) / 1e6;
}

void print_deliveries(const history::History& past) {
  Table table({"SUBSCRIPTION", "DELIVERED", "PER SECOND", "FAILED", "PARKED", "DEAD", "P50", "P99",
               "MOST PENDING", "OLDEST"});
  for (const history::Line& line : past.lines) {
    if (!line.type.empty()) continue;
    const history::Figures& sum = line.sum;
    table.add({line.subscription, std::to_string(sum.delivered),
               fmt::format("{:.2f}", delivery_rate(sum, past.since)), std::to_string(sum.failed),
               std::to_string(sum.parked), std::to_string(sum.dead), percentile_text(sum, 0.5),
               percentile_text(sum, 0.99), std::to_string(sum.pending),
               sum.oldest_us == 0 ? "-" : age_text(std::chrono::microseconds(sum.oldest_us))});
  }
  table.print();
  print("\n");
}

void print_tasks(const history::History& past) {
  Table table({"QUEUE", "TYPE", "COMPLETED", "PER SECOND", "FAILED", "DEAD", "P50", "P99"});
  bool any = false;
  for (const history::Line& line : past.lines) {
    if (line.type.empty()) continue;
    any = true;
    const history::Figures& sum = line.sum;
    table.add({event::queue_of_subscription(line.subscription).value_or(line.subscription),
               line.type, std::to_string(sum.delivered),
               fmt::format("{:.2f}", delivery_rate(sum, past.since)), std::to_string(sum.failed),
               std::to_string(sum.dead), percentile_text(sum, 0.5), percentile_text(sum, 0.99)});
  }
  if (!any) return;
  table.print();
  print("\n");
}

Json to_json(const history::Line& line, const history::History& past) {
  Json points = Json::array();
  for (const history::Point& point : line.points) {
    const history::Figures& figures = point.figures;
    points.push_back({{"at", event::time_text(point.at_us)},
                      {"delivered", figures.delivered},
                      {"failed", figures.failed},
                      {"parked", figures.parked},
                      {"dead", figures.dead},
                      {"pending", figures.pending},
                      {"oldest_seconds", oldest_seconds(figures)},
                      {"p50_seconds", percentile_or_null(figures, 0.5)},
                      {"p99_seconds", percentile_or_null(figures, 0.99)}});
  }
  const bool task = !line.type.empty();
  return {{"subscription", line.subscription},
          {"queue",
           task ? or_null(event::queue_of_subscription(line.subscription).value_or("")) : Json()},
          {"type", or_null(line.type)},
          {"delivered", line.sum.delivered},
          {"failed", line.sum.failed},
          {"parked", line.sum.parked},
          {"dead", line.sum.dead},
          {"per_second", delivery_rate(line.sum, past.since)},
          {"p50_seconds", percentile_or_null(line.sum, 0.5)},
          {"p99_seconds", percentile_or_null(line.sum, 0.99)},
          {"most_pending", line.sum.pending},
          {"oldest_seconds", oldest_seconds(line.sum)},
          {"points", points}};
}

}  // namespace

std::string percentile_text(const history::Figures& figures, double share) {
  const auto seconds = history::percentile(figures.latency, share);
  if (!seconds) return "-";
  if (*seconds < 1) return fmt::format("{:.0f}ms", *seconds * 1e3);
  if (*seconds < 10) return fmt::format("{:.1f}s", *seconds);
  return age_text(std::chrono::microseconds(static_cast<std::int64_t>(*seconds * 1e6)));
}

std::optional<std::chrono::microseconds> parse_since(const std::optional<std::string>& since) {
  if (!since) return std::nullopt;
  const auto length = parse_duration(*since);
  if (!length)
    throw Failure(kUsage, "--since " + *since + ": is not a duration", length.error().hint);
  if (length->count() <= 0 || *length > kLongestPast)
    throw Failure(kUsage, "--since " + *since + " is out of range", "such as 1h, at most 3650d");
  return *length;
}

void print_history(const history::History& past) {
  print("since {} ago:\n\n", format_duration(past.since));
  if (past.lines.empty()) {
    print("nothing was delivered, and nothing was pending\n\n");
    return;
  }
  print_deliveries(past);
  print_tasks(past);
}

Json history_to_json(const history::History& past) {
  Json lines = Json::array();
  for (const history::Line& line : past.lines) lines.push_back(to_json(line, past));
  return {{"seconds", std::chrono::duration<double>(past.since).count()},
          {"step_seconds", std::chrono::duration<double>(past.step).count()},
          {"lines", lines}};
}

}  // namespace outbox::cli
