// Looks after the runs that have a row, on a thread and a connection of its own, so that runs go on
// whatever becomes of the lanes (docs/design/tasks.md, "Runs with a row"). What it asks the store,
// and when, its core decides.
//
// Threads: one of its own; start() and stop() by one thread at a time.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "base/event_fd.hpp"
#include "base/mutex.hpp"
#include "base/outage.hpp"
#include "store/store.hpp"
#include "task/run_tracker_core.hpp"

namespace outbox::task {

class RunTracker {
 public:
  /// `worker`: the name in the rows.
  RunTracker(const EventId& worker, store::StoreOptions store, RunTrackerOptions options,
             EventFd bell);
  RunTracker(const RunTracker&) = delete;
  RunTracker& operator=(const RunTracker&) = delete;
  RunTracker(RunTracker&&) = delete;
  RunTracker& operator=(RunTracker&&) = delete;
  ~RunTracker();

  [[nodiscard]] const EventId& worker() const { return core_.worker(); }
  /// Set with each heartbeat.
  [[nodiscard]] std::shared_ptr<const StoreClock> clock() const { return core_.clock(); }
  /// Before start().
  void add(const std::shared_ptr<RunnerCore>& queue);
  void start();
  /// Claims no more tasks of others. Any thread.
  void claim_no_more() { core_.claim_no_more(); }
  /// Waits at most `grace` for the runs. The others are told to stop and given back, with no
  /// attempt counted. Returns how many.
  std::size_t stop(std::chrono::milliseconds grace);

 private:
  void run();
  void wait();
  [[nodiscard]] Status work();
  [[nodiscard]] Status connect();
  [[nodiscard]] Status follow(const RunTrackerNews& news) const;
  [[nodiscard]] Status remove(const std::vector<store::ReplacedTask>& tasks) const;
  void note(const Status& status);

  const store::StoreOptions where_;
  const std::string name_;
  const EventFd bell_;   ///< The queues ring it until the core is gone.
  RunTrackerCore core_;  ///< The thread's.

  // The same.
  std::unique_ptr<store::TaskRuns> rows_;
  std::optional<TimePoint> again_at_;  ///< After a failure.
  int failures_{0};
  Outage outage_;

  Mutex mutex_;
  std::optional<TimePoint> stop_by_ OUTBOX_GUARDED_BY(mutex_);

  std::jthread thread_;
};

}  // namespace outbox::task
