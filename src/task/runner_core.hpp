// What the threads of a queue, its sinks and the run tracker share: what was taken, what runs in
// which slot, and to whom its end belongs. A run belongs to the relay, which gets its outcome,
// until it is kept; then its end is for the tracker. The tracker also gets an end that is noted in
// the store before the relay may know it, and the beginning of a task with a unique key. Pure: it
// starts no thread, waits for nothing, and knows no time but what it is told; tests/sim steps it
// (docs/design/task-cores.md).
//
// Threads: any; of a source, add(), collect() and give_up() by one thread, its sink's. Each slot
//          and each source queue has a mutex of its own, so that threads which run quick tasks do
//          not wait for each other.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <outbox/sink.hpp>
#include <outbox/worker.hpp>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.hpp"
#include "sink/run_owner.hpp"
#include "store/tasks.hpp"
#include "task/batch.hpp"
#include "task/source_queue.hpp"

namespace outbox::task {

/// A kept run that has ended, or does not count any more.
struct KeptEnd {
  sink::KeptRun run;
  std::optional<Outcome> outcome{};  ///< Unset if the run was given up and the task runs again.
  std::optional<store::TaskFinish> finish{};
};

/// A run that has ended, and has to be noted before the relay gets its outcome.
struct FinishedRun {
  Source source{0};
  Outcome outcome;
  store::TaskFinish finish;
};

/// What a handler has reported since progress() was called last.
struct RunProgress {
  sink::KeptRun run;
  std::size_t percent{0};
  std::string text;
};

/// What the threads have to do before they begin a task of a source.
struct Load {
  std::size_t running{0};
  std::size_t long_running{0};  ///< Those that have run for longer than kQuick.
  std::size_t waiting{0};       ///< Tasks that were taken and have not begun.
  std::chrono::nanoseconds work_waiting{0};
  bool urgent_wants{false};  ///< A more urgent source has tasks for the next free thread.
};

class RunnerCore {
 public:
  using Types = std::vector<std::shared_ptr<TaskType>>;
  struct Options {
    std::size_t threads{8};
    /// How long after its deadline a handler that was told to stop may return.
    std::chrono::milliseconds deadline_grace{std::chrono::seconds(10)};
    /// A task that was taken and has found no free thread for this long goes back.
    std::chrono::milliseconds longest_wait{500};
    /// How long it counts that a sink has left tasks in the log because no thread was free. The
    /// relay offers them again within 1 ms; a relay that was paused says nothing more.
    std::chrono::milliseconds wants{50};
  };
  /// What the driver does. The core calls it with no mutex held.
  struct Actions {
    /// Wakes threads that wait: there are `tasks` to begin.
    std::function<void(std::size_t tasks)> wake;
    /// A handler of this type does not return: another thread takes the new slot at this place.
    std::function<void(std::size_t place, const std::string& type)> replace;
  };

  /// The run that a thread is busy with.
  struct Run {
    const Batch* batch{nullptr};
    const Batch::Job* job{nullptr};
    TimePoint began{};
    bool told{false};     ///< Whether the handler was told to stop.
    bool dropped{false};  ///< Whether its outcome was reported before its end, or does not count.
    std::optional<sink::KeptRun> kept{};
    std::optional<RunProgress> progress{};  ///< What progress() has not returned yet.

    [[nodiscard]] TimePoint deadline() const {
      return began + job->type->handler().options.deadline;
    }
  };
  using Ended = std::map<Source, std::vector<Outcome>>;
  /// The place of a thread. Only the core uses it; a handler reports its progress here.
  struct Slot {
    explicit Slot(Ended before = {}) : ended(std::move(before)) {}
    void report(std::size_t percent, std::string_view text);

    mutable Mutex mutex;
    std::optional<Run> run OUTBOX_GUARDED_BY(mutex);
    std::stop_source stop OUTBOX_GUARDED_BY(mutex);
    Ended ended OUTBOX_GUARDED_BY(mutex);
    bool replaced OUTBOX_GUARDED_BY(mutex){false};  ///< Whether its thread ends after its run.
  };

  /// `types` are those of all jobs, and live as long as the core.
  RunnerCore(std::string queue, Types types, const Options& options, Actions actions);

  // ---- for the sinks

  /// The source of the subscription of this name, the same for the same name; kMostSources if there
  /// are too many. Sources with the lowest `priority` go first.
  [[nodiscard]] Source add_source(const std::string& subscription, std::size_t priority);
  [[nodiscard]] std::vector<std::string> subscriptions() const;
  /// Any thread calls `ready` when collect() or rows_changed() has something, until an empty one is
  /// set.
  void on_ready(Source source, std::function<void()> ready);
  void add(std::shared_ptr<Batch> batch);
  /// Adds a batch of one task that has a unique key.
  void add_unique(std::shared_ptr<Batch> batch);
  [[nodiscard]] Load load(Source source, TimePoint now) const;
  /// Sets whether the sink of the source has left tasks in the log until a thread is free.
  void want(Source source, bool more, TimePoint now);
  /// Appends the outcomes of runs that have ended, and of tasks that have waited for a thread for
  /// too long.
  void collect(Source source, TimePoint now, std::vector<Outcome>& outcomes);
  /// Appends an outcome for everything that was taken and is not kept. Runs go on, are told to
  /// stop, and their ends do not count.
  void give_up(Source source, std::vector<Outcome>& outcomes);
  /// The number of runs that were given up and have not ended.
  [[nodiscard]] std::size_t given_up(Source source) const;
  /// Notes that the run has a row now. Returns false if it does not run, or not any more.
  [[nodiscard]] bool keep(Source source, Token token, const sink::KeptRun& run);
  /// Whether rows have changed since the last call.
  [[nodiscard]] bool rows_changed(Source source) { return source_queues_[source]->rows_changed(); }
  /// Tells runs past their deadline to stop. A run that does not end within the grace period is
  /// recorded as failed, and its thread is replaced.
  void watch(TimePoint now);
  /// Takes one of the free threads of other workers for a task that finds none here. Returns false
  /// if there is none.
  [[nodiscard]] bool take_elsewhere();

  // ---- for the threads

  [[nodiscard]] std::shared_ptr<Slot> slot(std::size_t place) const;
  /// A batch with tasks to begin. If it is null there is none, and the thread waits until it is
  /// woken.
  [[nodiscard]] std::shared_ptr<Batch> next_batch();
  struct Begun {
    const Batch::Job* job{nullptr};
    std::stop_token stop;
  };
  /// Begins the next task; returns nullopt if the batch has no more tasks, or if the thread was
  /// replaced.
  [[nodiscard]] std::optional<Begun> begin(Slot& slot, Batch& batch, TimePoint now);
  void end(Slot& slot, const TaskEnd& end, TimePoint now);
  [[nodiscard]] static bool is_replaced(const Slot& slot);
  /// The run in the slot; nullopt if there is none.
  [[nodiscard]] static std::optional<Run> run_of(const Slot& slot);

  // ---- for the tracker

  /// The number of threads for which nothing is taken.
  [[nodiscard]] std::size_t free_threads() const;
  /// Whether no thread is free and a sink has left tasks in the log.
  [[nodiscard]] bool is_starved(TimePoint now) const;
  /// Sets how many threads of other workers are free.
  void set_elsewhere(std::size_t threads) { elsewhere_ = threads; }
  /// The names of the types that have a handler here.
  [[nodiscard]] std::vector<std::string> types_to_claim() const;
  /// Adds tasks that were claimed. They already have a row, so their runs are kept from the
  /// beginning.
  void add_claimed(const store::ClaimedTasks& claimed, TimePoint now);
  [[nodiscard]] const std::string& queue() const { return queue_; }
  [[nodiscard]] const Types& types() const { return types_; }
  /// The type of this name; null if it has no handler here.
  [[nodiscard]] TaskType* find_type(std::string_view name) const;
  /// Tells the sinks to look again.
  void announce();
  void announce_changed_rows();

  /// `ready` is called when one of the lists below has something, until an empty one is set.
  void on_work(std::function<void()> ready) { tracker_bell_.set(std::move(ready)); }
  [[nodiscard]] std::vector<std::shared_ptr<Batch>> to_begin() const;
  void begin_unique(const std::shared_ptr<Batch>& batch);
  /// The task never begins. Returns false if it was given up.
  [[nodiscard]] bool refuse(const std::shared_ptr<Batch>& batch);
  /// The task that this one replaces still runs: this one is offered again in a while.
  void postpone(const std::shared_ptr<Batch>& batch);
  [[nodiscard]] std::vector<FinishedRun> finished();
  /// The end is noted: the relay gets the outcome of the run, unless the run was given up.
  void noted(const FinishedRun& run);

  [[nodiscard]] std::vector<sink::KeptRun> kept() const;
  /// The tasks whose runs still belong to the relay.
  [[nodiscard]] std::vector<EventId> unkept() const;
  [[nodiscard]] std::vector<KeptEnd> kept_ends();
  [[nodiscard]] std::vector<RunProgress> progress();
  /// The run belongs to another worker now: it is told to stop, and its end does not count.
  void lose(const sink::KeptRun& run);
  /// A person has cancelled the run: it is told to stop, and what it ends with counts. Returns
  /// false if it was told before, or is not here.
  [[nodiscard]] bool cancel(const sink::KeptRun& run);
  /// Gives up all kept runs: they are told to stop, and are among the next kept_ends().
  void give_up_kept();
  /// Gives up everything at the end, when nobody is to be told any more.
  void close();

 private:
  using Slots = std::vector<std::shared_ptr<Slot>>;

  [[nodiscard]] std::span<const std::unique_ptr<SourceQueue>> all_source_queues() const {
    return {source_queues_.data(), sources_.load(std::memory_order_acquire)};
  }
  [[nodiscard]] Slots slots() const;
  void take_ended(Source source, std::vector<Outcome>& outcomes);
  void stop_runs(const std::function<bool(const std::shared_ptr<Slot>&, Run&)>& choose);
  [[nodiscard]] bool is_stuck(const Run& run, TimePoint now) const;
  void replace(const std::shared_ptr<Slot>& stuck, TimePoint now);
  [[nodiscard]] bool report(Slot& slot, const TaskEnd& end, TimePoint now)
      OUTBOX_REQUIRES(slot.mutex);
  [[nodiscard]] std::optional<store::TaskFinish> make_finish(const Run& run,
                                                             const TaskEnd& end) const;
  [[nodiscard]] bool take_claimed(const sink::KeptRun& run);
  void add_kept_end(KeptEnd end);
  [[nodiscard]] bool add_claimed(const store::ClaimedTask& task, const sink::KeptRun& run,
                                 TimePoint now);

  const std::string queue_;
  const Types types_;
  const Options options_;
  const Actions actions_;
  // Source queues are only added: those below `sources_` stay where they are.
  std::array<std::unique_ptr<SourceQueue>, kMostSources> source_queues_;
  std::atomic<std::size_t> sources_{0};
  /// The number of threads of other workers for which no task was given away yet.
  std::atomic<std::size_t> elsewhere_{0};
  Bell tracker_bell_;

  mutable Mutex slots_mutex_;
  Slots slots_ OUTBOX_GUARDED_BY(slots_mutex_);
  mutable Mutex mutex_;
  std::vector<std::string> subscriptions_ OUTBOX_GUARDED_BY(mutex_);
  std::vector<SourceQueue*> by_priority_ OUTBOX_GUARDED_BY(mutex_);
  /// Batches of one task each, whose run is kept. Those that have begun are removed later.
  std::deque<std::shared_ptr<Batch>> claimed_ OUTBOX_GUARDED_BY(mutex_);
  Mutex ends_mutex_;
  std::vector<KeptEnd> kept_ends_ OUTBOX_GUARDED_BY(ends_mutex_);
  std::vector<FinishedRun> finished_ OUTBOX_GUARDED_BY(ends_mutex_);
};

}  // namespace outbox::task
