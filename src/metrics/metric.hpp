// What a metric is, and the table of all of them. docs/reference/metrics.md and the expositions are
// made from the same rows.
#pragma once

#include <cstdint>
#include <outbox/metrics.hpp>
#include <span>
#include <string>
#include <string_view>

namespace outbox::metrics {

/// Who knows the values of a metric.
enum class MetricSource : std::uint8_t {
  process,  ///< Each process counts what it did itself; the sum over processes is everything.
  store,    ///< Each process asks the store, and all get the same answer.
};

namespace metric {

/// In the order of the documentation.
enum Id : std::uint8_t {
  // ---- What a process did itself: events.
  kBuildInfo,
  kDelivered,
  kFiltered,
  kParked,
  kDead,
  kOutcomes,
  kFailures,
  kLatency,
  kSendDuration,
  kBatchDuration,
  kLastDelivery,
  kInFlight,
  kWindowBytes,
  kState,
  kReconnects,
  kInsecure,

  // ---- What a process did itself: the relay and its store.
  kLanes,
  kTakeovers,
  kWakeups,
  kLastPoll,
  kStoreErrors,
  kStoreUp,

  // ---- What a process did itself: tasks.
  kTasksFinished,
  kTaskDuration,
  kTaskPickup,
  kTasksRecovered,

  // ---- What a process did itself: consumers.
  kMessagesReceived,
  kConsumerState,
  kConsumerLag,

  // ---- The process, as the client libraries of Prometheus name it.
  kCpu,
  kResidentMemory,
  kVirtualMemory,
  kOpenFds,
  kMaxFds,
  kThreads,
  kStartTime,

  // ---- What the store knows.
  kPending,
  kPendingEstimated,
  kOldestPending,
  kParkedEvents,
  kRelaysAlive,
  kHistoryHeld,
  kTasks,
  kOldestTask,
  kWorkersAlive,
  kStoreBytes,
  kPartitionsAhead,
  kOldestRetained,
  kOldestSnapshot,
  kVerified,
  kDifferences,
};

}  // namespace metric

struct Metric {
  metric::Id id;
  std::string_view name;
  MetricType type;
  MetricSource source;
  std::string_view labels;  ///< Their names, separated by commas.
  std::string_view help;
};

/// All metrics, in the order of the documentation and of their ids.
[[nodiscard]] std::span<const Metric> all_metrics() noexcept;
/// docs/reference/metrics.md.
[[nodiscard]] std::string metrics_page();

}  // namespace outbox::metrics
