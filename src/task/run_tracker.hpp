// Looks after the runs that have a row, on a thread and a connection of its own, so that runs go on
// whatever becomes of the lanes (docs/design/tasks.md, "Runs with a row"). Its core decides what it
// asks the store, and when.
//
// Threads: one of its own; start() and stop() by one thread at a time.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <outbox/relay.hpp>
#include <string>
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
  /// `worker` is the name of this worker in the rows.
  RunTracker(const EventId& worker, store::StoreOptions store, RunTrackerOptions options,
             EventFd bell);
  RunTracker(const RunTracker&) = delete;
  RunTracker& operator=(const RunTracker&) = delete;
  RunTracker(RunTracker&&) = delete;
  RunTracker& operator=(RunTracker&&) = delete;
  ~RunTracker();

  [[nodiscard]] const EventId& worker() const { return core_.worker(); }
  /// The clock is set with each heartbeat.
  [[nodiscard]] std::shared_ptr<const StoreClock> clock() const { return core_.clock(); }
  /// Must be called before start().
  void add(const std::shared_ptr<RunnerCore>& queue);
  void start();
  /// Claims no more tasks of others. Any thread may call it.
  void claim_no_more() { core_.claim_no_more(); }
  /// Adds what was done to tasks. Any thread may call it after start().
  void report(RelayReport& into) const;
  /// Waits at most `grace` for the runs. Those that last longer are told to stop and given back,
  /// with no attempt counted. Returns how many were given back.
  std::size_t stop(std::chrono::milliseconds grace);

 private:
  void run();
  void wait();
  [[nodiscard]] Status work();
  [[nodiscard]] Status connect();
  [[nodiscard]] Status follow(const RunTrackerNews& news);
  [[nodiscard]] Status remove(const std::vector<store::ReplacedTask>& tasks) const;
  void note(const Status& status);

  const store::StoreOptions where_;
  const std::string name_;
  std::vector<std::shared_ptr<RunnerCore>> queues_;
  const EventFd bell_;   ///< The queues ring it until the core is gone.
  RunTrackerCore core_;  ///< Belongs to the thread while that runs.

  // These belong to the thread, too.
  std::unique_ptr<store::TaskRuns> rows_;
  std::optional<TimePoint> again_at_;  ///< When to try again after a failure.
  int failures_{0};
  OutageLog outage_{"the runs of tasks cannot be written, retries",
                    "the runs of tasks are written again"};

  mutable Mutex mutex_;
  std::optional<TimePoint> stop_by_ OUTBOX_GUARDED_BY(mutex_);
  std::map<std::string, std::uint64_t> recovered_ OUTBOX_GUARDED_BY(mutex_);  ///< By queue.

  std::jthread thread_;
};

}  // namespace outbox::task
