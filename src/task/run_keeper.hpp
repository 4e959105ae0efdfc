// Looks after the runs that have a row: writes their ends and progress, shows that this worker is alive, and takes what dead workers left
// behind. It has its own connection, so that runs go on whatever becomes of the lanes (docs/design/tasks.md, "Runs with a row").
//
// Threads: one of its own; start() and stop() by one thread at a time.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "base/mutex.hpp"
#include "base/outage.hpp"
#include "store/store.hpp"
#include "task/runner.hpp"
#include "task/store_clock.hpp"

namespace outbox::task {

struct KeeperOptions {
  RetrySchedule retries;  ///< After a run of a type that has no handler here.
  std::chrono::milliseconds heartbeat{std::chrono::seconds(10)};
};

class RunKeeper {
 public:
  struct Queue {
    std::vector<std::string> subscriptions;
    std::shared_ptr<Runner> runner;
  };

  /// `worker`: the name in the rows.
  RunKeeper(const EventId& worker, std::string name, store::StoreOptions store,
            KeeperOptions options);
  RunKeeper(const RunKeeper&) = delete;
  RunKeeper& operator=(const RunKeeper&) = delete;
  RunKeeper(RunKeeper&&) = delete;
  RunKeeper& operator=(RunKeeper&&) = delete;
  ~RunKeeper();

  [[nodiscard]] const EventId& worker() const { return worker_; }
  /// Set with each heartbeat.
  [[nodiscard]] std::shared_ptr<const StoreClock> clock() const { return clock_; }
  /// Before start().
  void add(Queue queue);
  void start();
  /// Waits at most `grace` for the runs. The others are told to stop and given back, with no attempt counted. Returns how many.
  std::size_t stop(std::chrono::milliseconds grace);

 private:
  using Place =
      std::tuple<std::int32_t, std::int64_t, std::int64_t>;  ///< Subscription, seq, token.
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
  /// Another worker's heartbeat as we first saw it, by our clock: theirs does not matter.
  struct Seen {
    std::optional<std::int64_t> beat;
    TimePoint since;
  };

  void run();
  void wait();
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
  [[nodiscard]] Status compare_own_rows();
  [[nodiscard]] Status look_for_the_dead(TimePoint now);
  [[nodiscard]] Status recover(const EventId& dead);
  [[nodiscard]] Status report_progress();
  [[nodiscard]] store::TaskRunEnd end_of(const KeptEnd& kept) const;
  [[nodiscard]] const RetrySchedule& retries_of(const store::TaskRunRow& row) const;
  [[nodiscard]] store::TaskRunEnd failed(const store::TaskRunRow& row, const EventId& worker,
                                         std::string reason) const;
  void note(const Status& status);

  const EventId worker_;
  const std::string name_;
  const store::StoreOptions where_;
  const KeeperOptions options_;
  std::vector<Queue> queues_;
  std::vector<std::string> subscriptions_;

  // The thread's.
  std::unique_ptr<store::TaskRuns> rows_;
  std::vector<End> ends_;           ///< Not written.
  std::vector<Finished> finished_;  ///< The same.
  bool some_are_busy_{false};       ///< Unique tasks that are asked for again.
  std::set<Place> strays_;
  const std::shared_ptr<StoreClock> clock_{std::make_shared<StoreClock>()};
  std::map<EventId, Seen> others_;
  TimePoint beat_at_{};
  TimePoint look_at_{};
  TimePoint progress_at_{};
  TimePoint again_at_{};  ///< After a failure.
  int failures_{0};
  Outage outage_;

  struct Stop {
    TimePoint by;
    bool given_up{false};
  };
  Mutex mutex_;
  std::condition_variable_any changed_;
  bool rung_ OUTBOX_GUARDED_BY(mutex_){false};
  std::optional<Stop> stop_ OUTBOX_GUARDED_BY(mutex_);
  std::size_t given_back_ OUTBOX_GUARDED_BY(mutex_){0};

  std::jthread thread_;
};

}  // namespace outbox::task
