// The threads of a queue: they run what its sinks have taken, each task as soon as a thread is free, the urgent ones first. What runs
// belongs to the relay, which gets its outcome, until it is kept: then its end is for the keeper of runs. So is an end that is noted in
// the store before the relay may know it, and the beginning of a task with a unique key.
//
// Threads: any; of a source, add(), collect() and give_up() by one thread, its sink's. The destructor waits a moment for handlers that
// run; those that do not return keep their threads.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <outbox/sink.hpp>
#include <outbox/worker.hpp>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/mutex.hpp"
#include "sink/run_owner.hpp"
#include "store/tasks.hpp"
#include "task/batch.hpp"
#include "task/shared_queue.hpp"

namespace outbox::task {

/// A kept run that has ended, or does not count any more.
struct KeptEnd {
  sink::KeptRun run;
  std::optional<Outcome> outcome{};  ///< None: it was given up, and runs again.
  std::optional<store::TaskFinish> finish{};
};

/// A run that has ended, and is noted before the relay gets its outcome.
struct FinishedRun {
  Source source{0};
  Outcome outcome;
  store::TaskFinish finish;
};

/// What a handler has reported since it was asked last.
struct RunProgress {
  sink::KeptRun run;
  std::size_t percent{0};
  std::string text;
};

/// What the threads have to do before a task of a source.
struct Load {
  std::size_t running{0};
  std::size_t long_running{0};  ///< Of them, for longer than kQuick.
  std::size_t waiting{0};       ///< Taken, and not begun.
  std::chrono::nanoseconds work_waiting{0};
  bool urgent_wants{false};  ///< A more urgent source has tasks for the next free thread.
};

class Runner final : public SharedQueue {
 public:
  using Types = std::vector<std::shared_ptr<TaskType>>;
  struct Options {
    std::size_t threads{8};
    std::size_t result_bytes{std::size_t{64} << 10U};
  };

  /// `types`: of all jobs, kept as long as a handler runs.
  Runner(std::string queue, Types types, const Options& options);
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;
  Runner(Runner&&) = delete;
  Runner& operator=(Runner&&) = delete;
  ~Runner() override;

  /// Starts the threads. A second call does nothing.
  void start();

  // ---- for the sinks

  /// Of the subscription of this name; those with the lowest number go first. The same source for the same name.
  [[nodiscard]] Source add_source(const std::string& subscription, std::size_t priority);
  [[nodiscard]] std::vector<std::string> subscriptions() const override;
  /// Called by any thread when collect() has something, or rows_changed(); none: no longer.
  void on_ready(Source source, std::function<void()> ready);
  void add(std::shared_ptr<Batch> batch);
  /// Of one task that has a unique key.
  void add_unique(std::shared_ptr<Batch> batch);
  [[nodiscard]] Load load(Source source, TimePoint now) const;
  /// Whether its sink has left tasks where they are until a thread is free.
  void want(Source source, bool more, TimePoint now);
  /// Appends the outcomes of runs that have ended, and of tasks that have waited for a thread for too long.
  void collect(Source source, TimePoint now, std::vector<Outcome>& outcomes);
  /// Appends an outcome for everything that was taken and is not kept. Runs go on, are told to stop, and their ends do not count.
  void give_up(Source source, std::vector<Outcome>& outcomes);
  /// Runs that were given up and have not ended.
  [[nodiscard]] std::size_t given_up(Source source) const;
  /// False: it does not run (any more).
  [[nodiscard]] bool keep(Source source, Token token, const sink::KeptRun& run);
  /// Since the last call.
  [[nodiscard]] bool rows_changed(Source source);
  /// Either: tells runs past their deadline to stop. One that does not gets its end without having ended, and another thread is started.
  void watch(TimePoint now);

  /// True: another worker has a thread for a task that finds none here.
  [[nodiscard]] bool take_elsewhere();

  // ---- for the keeper

  [[nodiscard]] std::size_t free_threads() const override;
  [[nodiscard]] bool is_starved(TimePoint now) const override;
  void set_elsewhere(std::size_t threads) override;
  [[nodiscard]] std::vector<std::string> types_to_claim() const override;
  void add_claimed(const store::ClaimedTasks& claimed) override;
  [[nodiscard]] const std::string& queue() const override;
  [[nodiscard]] const Types& types() const;
  /// Null: it has no handler here.
  [[nodiscard]] const TaskType* find_type(std::string_view name) const;
  /// Tells the sinks to look again.
  void announce();
  void announce_changed_rows();

  /// Called when one of the lists below has something.
  void on_work(std::function<void()> ready);
  [[nodiscard]] std::vector<std::shared_ptr<Batch>> to_begin() const;
  void begin(const std::shared_ptr<Batch>& batch);
  /// It never begins. False: it was given up.
  [[nodiscard]] bool refuse(const std::shared_ptr<Batch>& batch);
  /// The task that it replaces still runs: it is offered again in a while.
  void postpone(const std::shared_ptr<Batch>& batch);
  [[nodiscard]] std::vector<FinishedRun> finished();
  /// It is noted: the relay gets its outcome, unless the run was given up.
  void noted(const FinishedRun& run);

  [[nodiscard]] std::vector<sink::KeptRun> kept() const;
  /// The tasks whose runs still belong to the relay.
  [[nodiscard]] std::vector<EventId> unkept() const;
  [[nodiscard]] std::vector<KeptEnd> kept_ends();
  [[nodiscard]] std::vector<RunProgress> progress();
  /// It belongs to another worker now: it is told to stop, and its end does not count.
  void lose(const sink::KeptRun& run);
  /// A person has cancelled it: it is told to stop, and what it ends with counts. False: it was told before.
  [[nodiscard]] bool cancel(const sink::KeptRun& run);
  /// All that are kept: they are told to stop, and are among the next kept_ends().
  void give_up_kept();

 private:
  struct Slot;
  struct Shared;
  using Slots = std::vector<std::shared_ptr<Slot>>;

  [[nodiscard]] Slots slots() const;
  void start_thread_of(std::size_t place) OUTBOX_REQUIRES(places_mutex_);
  void replace(const std::shared_ptr<Slot>& stuck);

  const std::shared_ptr<Shared> shared_;
  mutable Mutex places_mutex_;
  Slots slots_ OUTBOX_GUARDED_BY(places_mutex_);
  std::vector<std::jthread> threads_ OUTBOX_GUARDED_BY(places_mutex_);
};

}  // namespace outbox::task
