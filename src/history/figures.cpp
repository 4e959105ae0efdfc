#include "history/figures.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace outbox::history {

void Figures::add(const store::HistoryRow& row) {
  delivered += row.delivered;
  failed += row.failed;
  parked += row.parked;
  dead += row.dead;
  pending = std::max(pending, row.pending);
  oldest_us = std::max(oldest_us, row.oldest_us);
  const std::size_t buckets = std::min(row.latency.size(), latency.counts.size());
  for (std::size_t i = 0; i < buckets; ++i)
    latency.counts[i] += static_cast<std::uint64_t>(std::max<std::int64_t>(row.latency[i], 0));
}

std::vector<Line> add_up(const std::vector<store::HistoryPoint>& points) {
  std::vector<Line> lines;
  for (const store::HistoryPoint& one : points) {
    if (lines.empty() || lines.back().subscription != one.subscription ||
        lines.back().type != one.row.type)
      lines.push_back({.subscription = one.subscription, .type = one.row.type});
    Line& line = lines.back();
    line.sum.add(one.row);
    line.points.push_back({.at_us = one.at_us});
    line.points.back().figures.add(one.row);
  }
  return lines;
}

std::chrono::microseconds choose_step(std::chrono::microseconds since,
                                      std::chrono::microseconds interval) {
  // The time does not begin with a step, so that it may touch one more than it is long.
  const std::int64_t shortest = interval.count() * (kMostPoints - 1);
  const std::int64_t intervals = (since.count() + shortest - 1) / shortest;
  return interval * std::max<std::int64_t>(intervals, 1);
}

std::optional<double> percentile(const DurationHistogram& histogram, double share) {
  const std::uint64_t all = histogram.count();
  if (all == 0) return std::nullopt;
  const double wanted = std::max(share * static_cast<double>(all), 1.0);
  double seen = 0;
  double lower = 0;
  for (std::size_t i = 0; i < DurationHistogram::bounds.size(); ++i) {
    const double upper = DurationHistogram::bounds[i];
    const auto here = static_cast<double>(histogram.counts[i]);
    if (here > 0 && seen + here >= wanted) return lower + (upper - lower) * (wanted - seen) / here;
    seen += here;
    lower = upper;
  }
  return lower;
}

Result<History> look_back(store::Store& store, std::chrono::microseconds since,
                          std::chrono::microseconds interval) {
  History history{.since = since, .step = choose_step(since, interval)};
  OUTBOX_TRY(const auto rows, store.work_history());
  OUTBOX_TRY(const std::int64_t now_us, rows->now());
  OUTBOX_TRY(const auto points, rows->list(now_us - since.count(), history.step.count()));
  history.lines = add_up(points);
  return history;
}

}  // namespace outbox::history
