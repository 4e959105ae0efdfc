// The history added up for people: sums, points for a line, and percentiles
// (docs/design/history.md).
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <outbox/error.hpp>
#include <outbox/histogram.hpp>
#include <string>
#include <vector>

#include "store/store.hpp"

namespace outbox::history {

/// The most points of a line.
inline constexpr std::int64_t kMostPoints = 120;

/// What was done in some time.
struct Figures {
  std::int64_t delivered{0};
  std::int64_t failed{0};
  std::int64_t parked{0};
  std::int64_t dead{0};
  std::int64_t pending{0};    ///< The most at any time.
  std::int64_t oldest_us{0};  ///< The greatest age of an event that was pending.
  DurationHistogram latency{};

  void add(const store::HistoryRow& row);
};

struct Point {
  std::int64_t at_us{0};  ///< When its step begins. Microseconds since 1970, UTC.
  Figures figures{};
};

/// A subscription, or a type of task under the subscription of its queue.
struct Line {
  std::string subscription;
  std::string type;
  Figures sum{};
  std::vector<Point> points{};
};

struct History {
  std::chrono::microseconds since{0};  ///< The length of the time that was asked for.
  std::chrono::microseconds step{0};   ///< The length of the time of a point.
  std::vector<Line> lines{};
};

/// The lines of these points, which are in the order of WorkHistory::list().
[[nodiscard]] std::vector<Line> add_up(const std::vector<store::HistoryPoint>& points);

/// The shortest step of whole intervals with which this time has at most kMostPoints points.
[[nodiscard]] std::chrono::microseconds choose_step(std::chrono::microseconds since,
                                                    std::chrono::microseconds interval);

/// The length that this share does not exceed, in a straight line within its bucket; what is longer
/// than all bounds counts as the last of them. Nullopt if there is nothing. Unit: seconds.
[[nodiscard]] std::optional<double> percentile(const DurationHistogram& histogram, double share);

/// What was done in the last `since`, by the store's clock. `interval` is that of the rows.
[[nodiscard]] Result<History> look_back(store::Store& store, std::chrono::microseconds since,
                                        std::chrono::microseconds interval);

}  // namespace outbox::history
