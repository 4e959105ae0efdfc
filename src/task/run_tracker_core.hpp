// What the run tracker does, one statement at a time: it writes ends and progress, shows that
// this worker is alive, compares its rows with its runs, recovers what dead workers left behind,
// and decides when a stop is over. Pure: it starts no thread, waits for nothing, knows no time but
// what it is told, and asks the store that it is given; tests/sim steps it
// (docs/design/task-cores.md).
//
// Threads: one thread at a time; any thread may call claim_no_more().
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "store/tasks.hpp"
#include "task/exchange.hpp"
#include "task/run_watch.hpp"
#include "task/runner_core.hpp"
#include "task/store_clock.hpp"

namespace outbox::task {

struct RunTrackerOptions {
  RetrySchedule retries;  ///< For a failed run of a type that has no handler here.
  std::string name{};     ///< The name of the worker, for people.
  /// How long a stop waits for the last ends to be written.
  std::chrono::milliseconds last_write{std::chrono::seconds(2)};
  ExchangeOptions sharing{};
};

/// What the last statements have found, for the driver to log or to act on.
struct RunTrackerNews {
  std::vector<EventId> cancelled;  ///< Tasks whose handlers were told to stop.
  std::vector<sink::KeptRun> lost;
  std::vector<store::TaskRunRow> runless;
  std::vector<EventId> dead;                               ///< Workers that are dead.
  std::vector<std::pair<EventId, std::size_t>> recovered;  ///< Dead workers, with counts of tasks.
  std::map<std::string, std::size_t> recovered_in;         ///< These tasks by subscription.
  std::vector<store::ReplacedTask> replaced;               ///< Tasks to be removed.
};

class RunTrackerCore {
 public:
  /// `worker` is the name of this worker in the rows.
  RunTrackerCore(const EventId& worker, RunTrackerOptions options);

  [[nodiscard]] const EventId& worker() const { return worker_; }
  /// The clock is set with each heartbeat.
  [[nodiscard]] std::shared_ptr<const StoreClock> clock() const { return clock_; }
  void add(std::shared_ptr<RunnerCore> queue);

  void start();
  /// Claims no more tasks of others.
  void claim_no_more() { claims_ = false; }
  /// A run that still runs at this time is told to stop and given back, with no attempt counted.
  void stop(TimePoint by);
  [[nodiscard]] std::size_t given_back() const { return given_back_; }

  // ---- the driver's loop: waits until next_at() or until it is told, begins a round, steps to its
  // end, asks whether it is over

  /// If `reconnect_at` is set, there is no connection until then.
  [[nodiscard]] TimePoint next_at(TimePoint now, std::optional<TimePoint> reconnect_at) const;
  /// There may be tasks to claim.
  void told() { exchange_.told(); }
  void connected() { exchange_.start_over(); }
  /// What was asked and not answered is asked again in another round.
  void disconnected();
  void begin_round(TimePoint now);
  /// Asks the store for the next thing. Returns false if the round is over. Only the step of the
  /// exchange makes more than one statement.
  [[nodiscard]] Result<bool> step(store::TaskRuns& rows, TimePoint now);
  [[nodiscard]] RunTrackerNews news() { return std::exchange(news_, {}); }
  /// Whether it was told to stop and nothing is left to do or to wait for. `rows` is null without a
  /// connection.
  [[nodiscard]] bool is_over(store::TaskRuns* rows, TimePoint now);
  [[nodiscard]] std::size_t unwritten() const { return ends_.size() + finished_.size(); }

 private:
  /// What is to be written about a run.
  struct End {
    store::TaskRunEnd end;
    RunnerCore* runner{nullptr};  ///< The runner whose loop is told; null if there is none here.
  };
  /// An end that the relay gets once it is written.
  struct Finished {
    FinishedRun run;
    RunnerCore* runner{nullptr};
  };
  /// The runs of this worker from before its rows are read.
  struct Comparison {
    std::vector<EventId> unkept;
    std::vector<sink::KeptRun> kept;
    int more{0};        ///< The number of comparisons after this one.
    TimePoint beat_at;  ///< The time of the next heartbeat after it.
  };
  struct Stop {
    TimePoint by;
    bool looked{false};  ///< Whether is_over() was called since the stop.
    bool given_up{false};
    bool compared{false};  ///< Whether the rows were compared since the relay stopped.
  };
  using Part = Result<bool> (RunTrackerCore::*)(store::TaskRuns& rows, TimePoint now);

  // The parts of a round. Each returns false if it has nothing more to ask.
  [[nodiscard]] Result<bool> beat(store::TaskRuns& rows, TimePoint now);
  [[nodiscard]] Result<bool> compare_own_rows(store::TaskRuns& rows, TimePoint now);
  [[nodiscard]] Result<bool> begin_unique(store::TaskRuns& rows, TimePoint now);
  [[nodiscard]] Result<bool> write(store::TaskRuns& rows, TimePoint now);
  [[nodiscard]] Result<bool> share(store::TaskRuns& rows, TimePoint now);
  [[nodiscard]] Result<bool> look_for_the_dead(store::TaskRuns& rows, TimePoint now);
  [[nodiscard]] Result<bool> recover(store::TaskRuns& rows, TimePoint now);
  [[nodiscard]] Result<bool> look_for_replaced(store::TaskRuns& rows, TimePoint now);
  [[nodiscard]] Result<bool> report_progress(store::TaskRuns& rows, TimePoint now);
  static constexpr std::array<Part, 9> kRound{
      &RunTrackerCore::beat,           &RunTrackerCore::compare_own_rows,
      &RunTrackerCore::begin_unique,   &RunTrackerCore::write,
      &RunTrackerCore::share,          &RunTrackerCore::look_for_the_dead,
      &RunTrackerCore::recover,        &RunTrackerCore::look_for_replaced,
      &RunTrackerCore::report_progress};

  void take_ends();
  void note_store_time(TimePoint now);
  void begin_comparison(int more, TimePoint beat_at);
  void follow(const OwnRows::Difference& difference);
  [[nodiscard]] bool runs_something() const;
  void give_up_runs();
  [[nodiscard]] std::string note_of_types(TimePoint now) const;
  [[nodiscard]] std::vector<std::string> subscriptions() const;
  [[nodiscard]] const RetrySchedule& find_retries(const store::TaskRunRow& row) const;

  const EventId worker_;
  const RunTrackerOptions options_;
  std::vector<std::shared_ptr<RunnerCore>> queues_;
  std::vector<End> ends_;           ///< Ends that are not written.
  std::vector<Finished> finished_;  ///< Ends of finished runs that are not written.
  OwnRows own_rows_;
  Heartbeats others_;
  Exchange exchange_;
  const std::shared_ptr<StoreClock> clock_{std::make_shared<StoreClock>()};
  RunTrackerNews news_;
  TimePoint beat_at_{};
  TimePoint look_at_{};
  TimePoint progress_at_{};
  std::optional<Stop> stop_;
  std::size_t given_back_{0};
  std::atomic<bool> claims_{true};

  // The state of the round.
  std::size_t part_{kRound.size()};
  std::size_t asked_queues_{0};  ///< How many queues were asked for unique tasks.
  bool some_are_busy_{false};    ///< Whether unique tasks have to be asked for again.
  bool shared_{false};
  bool looked_{false};
  /// The time that the store has told. The next step sets the clock: its time is not before the
  /// answer.
  std::optional<std::int64_t> store_us_{};
  std::optional<Comparison> comparison_{};
  std::vector<EventId> dead_{};  ///< Workers whose runs are not recovered.
  std::vector<store::TaskRunRow> rows_of_dead_{};
};

}  // namespace outbox::task
