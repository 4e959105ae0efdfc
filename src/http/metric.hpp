// What a metric is, and the table of all of them. docs/reference/metrics.md and the exposition are
// made from the same rows.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace outbox::http {

enum class MetricType : std::uint8_t { counter, gauge };
[[nodiscard]] const char* to_string(MetricType type) noexcept;

/// Who knows the values of a metric.
enum class MetricSource : std::uint8_t {
  process,  ///< Each process counts what it did itself; the sum over processes is everything.
  store,    ///< Each process asks the store, and all get the same answer.
};

struct Metric {
  std::string_view name;
  MetricType type;
  MetricSource source;
  std::string_view labels;  ///< Their names, separated by commas.
  std::string_view help;
};

/// All metrics, in the order of the documentation.
[[nodiscard]] std::span<const Metric* const> all_metrics() noexcept;
/// docs/reference/metrics.md.
[[nodiscard]] std::string metrics_page();

namespace metric {

// ---- What a process did itself.
extern const Metric kBuildInfo;
extern const Metric kDelivered;
extern const Metric kFiltered;
extern const Metric kDead;
extern const Metric kState;
extern const Metric kLastPoll;
extern const Metric kStoreUp;

// ---- What the store knows.
extern const Metric kPending;
extern const Metric kPendingEstimated;
extern const Metric kOldestPending;
extern const Metric kParkedEvents;
extern const Metric kRelaysAlive;
extern const Metric kHistoryHeld;
extern const Metric kTasks;
extern const Metric kOldestTask;
extern const Metric kWorkersAlive;

}  // namespace metric
}  // namespace outbox::http
