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

// ---- What a process did itself: events.
extern const Metric kBuildInfo;
extern const Metric kDelivered;
extern const Metric kFiltered;
extern const Metric kParked;
extern const Metric kDead;
extern const Metric kOutcomes;
extern const Metric kFailures;
extern const Metric kLatency;
extern const Metric kSendDuration;
extern const Metric kBatchDuration;
extern const Metric kLastDelivery;
extern const Metric kInFlight;
extern const Metric kWindowBytes;
extern const Metric kState;
extern const Metric kReconnects;
extern const Metric kInsecure;

// ---- What a process did itself: the relay and its store.
extern const Metric kLanes;
extern const Metric kTakeovers;
extern const Metric kWakeups;
extern const Metric kLastPoll;
extern const Metric kStoreErrors;
extern const Metric kStoreUp;

// ---- What a process did itself: tasks.
extern const Metric kTasksFinished;
extern const Metric kTaskDuration;
extern const Metric kTaskPickup;
extern const Metric kTasksRecovered;

// ---- What a process did itself: consumers.
extern const Metric kMessagesReceived;
extern const Metric kConsumerState;
extern const Metric kConsumerLag;

// ---- The process, as the client libraries of Prometheus name it.
extern const Metric kCpu;
extern const Metric kResidentMemory;
extern const Metric kVirtualMemory;
extern const Metric kOpenFds;
extern const Metric kMaxFds;
extern const Metric kThreads;
extern const Metric kStartTime;

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
extern const Metric kStoreBytes;
extern const Metric kPartitionsAhead;
extern const Metric kOldestRetained;
extern const Metric kOldestSnapshot;
extern const Metric kVerified;
extern const Metric kDifferences;

}  // namespace metric
}  // namespace outbox::metrics
