// What the run tracker concludes from what it has read: which runs it has lost, which rows have
// no run, who is dead, and what is written about an end. Pure: tests/sim runs it beside the
// delivery cores (docs/design/tasks.md, "Runs with a row").
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <outbox/event.hpp>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "sink/run_owner.hpp"
#include "store/tasks.hpp"
#include "task/runner_core.hpp"
#include "task/type.hpp"

namespace outbox::task {

/// What is written about a kept run of this worker.
[[nodiscard]] store::TaskRunEnd make_run_end(const KeptEnd& kept, const EventId& worker);

/// What is written about a run that failed with its worker.
[[nodiscard]] store::TaskRunEnd end_of_dead(const store::TaskRunRow& row, const EventId& worker,
                                            const RetrySchedule& retries);

/// A worker's own rows, compared with its runs.
class OwnRows {
 public:
  struct Difference {
    std::vector<sink::KeptRun> lost;         ///< Runs whose rows are gone: others have them now.
    std::vector<store::TaskRunRow> runless;  ///< Rows for which nothing runs.
    std::vector<sink::KeptRun> cancelled;    ///< Runs that a person has cancelled.
  };

  /// `unkept` and `kept` are the runs from before the rows were read, collected in this order.
  /// `ended` are the ends that are not written yet.
  [[nodiscard]] Difference compare(std::span<const EventId> unkept,
                                   std::span<const sink::KeptRun> kept,
                                   std::span<const store::TaskRunEnd> ended,
                                   std::span<const store::TaskRunRow> rows);

 private:
  using Place =
      std::tuple<std::int32_t, std::int64_t, std::int64_t>;  ///< Subscription, seq, token.

  std::set<Place> strays_;
};

/// The heartbeats of other workers, with the time by our clock at which each was first seen. The
/// clocks of other workers do not matter.
class Heartbeats {
 public:
  /// `others` are the workers that have runs. Returns those that were silent for two heartbeats, of
  /// their own interval or, if it is longer, of ours.
  [[nodiscard]] std::vector<EventId> silent(std::span<const store::OtherWorker> others,
                                            TimePoint now, std::chrono::milliseconds heartbeat);
  /// The runs of the worker are recovered. If it comes back, its silence begins anew.
  void forget(const EventId& worker) { others_.erase(worker); }

 private:
  struct Seen {
    std::optional<std::int64_t> beat;
    TimePoint since;
  };

  std::map<EventId, Seen> others_;
};

}  // namespace outbox::task
