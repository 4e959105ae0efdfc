// Looks after the runs that have a row: writes their ends and progress, shows that this worker is alive, and takes what dead workers left
// behind. It has its own connection, so that runs go on whatever becomes of the lanes (docs/design/tasks.md, "Runs with a row").
//
// Threads: one of its own; start() and stop() by one thread at a time.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/event_fd.hpp"
#include "base/mutex.hpp"
#include "base/outage.hpp"
#include "store/store.hpp"
#include "task/exchange.hpp"
#include "task/run_watch.hpp"
#include "task/runner.hpp"
#include "task/store_clock.hpp"

namespace outbox::task {

struct KeeperOptions {
  RetrySchedule retries;  ///< After a run of a type that has no handler here.
  std::chrono::milliseconds heartbeat{std::chrono::seconds(10)};
};

class RunKeeper {
 public:
  /// `worker`: the name in the rows.
  RunKeeper(const EventId& worker, std::string name, store::StoreOptions store,
            KeeperOptions options, EventFd bell);
  RunKeeper(const RunKeeper&) = delete;
  RunKeeper& operator=(const RunKeeper&) = delete;
  RunKeeper(RunKeeper&&) = delete;
  RunKeeper& operator=(RunKeeper&&) = delete;
  ~RunKeeper();

  [[nodiscard]] const EventId& worker() const { return worker_; }
  /// Set with each heartbeat.
  [[nodiscard]] std::shared_ptr<const StoreClock> clock() const { return clock_; }
  /// Before start().
  void add(std::shared_ptr<Runner> queue);
  void start();
  /// Claims no more tasks of others. Any thread.
  void claim_no_more() { claims_ = false; }
  /// Waits at most `grace` for the runs. The others are told to stop and given back, with no attempt counted. Returns how many.
  std::size_t stop(std::chrono::milliseconds grace);

 private:
  /// What is written about a run.
  struct End {
    store::TaskRunEnd end;
    Runner* runner{nullptr};  ///< Whose loop is told; null: none here.
  };
  /// An end that the relay gets once it is written.
  struct Finished {
    FinishedRun run;
    Runner* runner{nullptr};
  };

  void run();
  void wait();
  void ring() const;
  [[nodiscard]] bool finds_last_rows();
  [[nodiscard]] bool is_over();
  void take_ends();
  /// None of its ends is unwritten.
  [[nodiscard]] bool is_written() const { return ends_.empty() && finished_.empty(); }
  void watch(TimePoint now);
  [[nodiscard]] bool runs_something() const;
  void give_up_runs();
  [[nodiscard]] Status work(TimePoint now);
  [[nodiscard]] Status connect();
  [[nodiscard]] Status begin_unique();
  [[nodiscard]] Status write();
  [[nodiscard]] Status beat();
  [[nodiscard]] std::string note_of_types() const;
  [[nodiscard]] std::vector<std::string> subscriptions() const;
  [[nodiscard]] Status compare_own_rows();
  [[nodiscard]] Status look_for_the_dead(TimePoint now);
  [[nodiscard]] Status recover(const EventId& dead);
  [[nodiscard]] Status remove_replaced();
  [[nodiscard]] Status report_progress();
  [[nodiscard]] const RetrySchedule& retries_of(const store::TaskRunRow& row) const;
  void note(const Status& status);

  const EventId worker_;
  const std::string name_;
  const store::StoreOptions where_;
  const KeeperOptions options_;
  std::vector<std::shared_ptr<Runner>> queues_;

  // The thread's.
  std::unique_ptr<store::TaskRuns> rows_;
  std::vector<End> ends_;           ///< Not written.
  std::vector<Finished> finished_;  ///< The same.
  bool some_are_busy_{false};       ///< Unique tasks that are asked for again.
  OwnRows own_rows_;
  const std::shared_ptr<StoreClock> clock_{std::make_shared<StoreClock>()};
  Heartbeats others_;
  Exchange exchange_;
  TimePoint beat_at_{};
  TimePoint look_at_{};
  TimePoint progress_at_{};
  TimePoint again_at_{};  ///< After a failure.
  int failures_{0};
  Outage outage_;

  struct Stop {
    TimePoint by;
    bool given_up{false};
    bool compared{false};  ///< The rows of this worker, after the relay had stopped.
  };
  const EventFd bell_;
  std::atomic<bool> claims_{true};
  Mutex mutex_;
  std::optional<Stop> stop_ OUTBOX_GUARDED_BY(mutex_);
  std::size_t given_back_ OUTBOX_GUARDED_BY(mutex_){0};

  std::jthread thread_;
};

}  // namespace outbox::task
