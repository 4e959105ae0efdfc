// What the threads of a queue, its sinks and the run tracker know together: what was taken, what
// runs in which slot, and to whom its end belongs. What runs belongs to the relay, which gets its
// outcome, until it is kept: then its end is for the tracker. So is an end that is noted in the
// store before the relay may know it, and the beginning of a task with a unique key. Pure: it
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

class RunnerCore {
 public:
  using Types = std::vector<std::shared_ptr<TaskType>>;
  struct Options {
    std::size_t threads{8};
    /// After its deadline, for a handler that was told to stop.
    std::chrono::milliseconds deadline_grace{std::chrono::seconds(10)};
    /// Taken for a thread that has not become free since: it goes back.
    std::chrono::milliseconds longest_wait{500};
    /// A sink that has left tasks where they are is heard for so long. The relay offers them again
    /// within 1 ms; one that was paused says nothing more.
    std::chrono::milliseconds wants{50};
  };
  /// What the driver does. Called with no mutex held.
  struct Actions {
    /// Wakes threads that wait: there are so many tasks to begin.
    std::function<void(std::size_t tasks)> wake;
    /// A handler of this type does not return: another thread takes the new slot at its place.
    std::function<void(std::size_t place, const std::string& type)> replace;
  };

  /// The run that a thread is busy with.
  struct Run {
    const Batch* batch{nullptr};
    const Batch::Job* job{nullptr};
    TimePoint began{};
    bool told{false};     ///< To stop.
    bool dropped{false};  ///< Its outcome was reported without it, or does not count.
    std::optional<sink::KeptRun> kept{};
    std::optional<RunProgress> progress{};  ///< Not asked for yet.

    [[nodiscard]] TimePoint deadline() const {
      return began + job->type->handler().options.deadline;
    }
  };
  using Ended = std::map<Source, std::vector<Outcome>>;
  /// The place of a thread. For the core only; a handler reports its progress here.
  struct Slot {
    explicit Slot(Ended before = {}) : ended(std::move(before)) {}
    void report(std::size_t percent, std::string_view text);

    mutable Mutex mutex;
    std::optional<Run> run OUTBOX_GUARDED_BY(mutex);
    std::stop_source stop OUTBOX_GUARDED_BY(mutex);
    Ended ended OUTBOX_GUARDED_BY(mutex);
    bool replaced OUTBOX_GUARDED_BY(mutex){false};  ///< Its thread ends after its run.
  };

  /// `types`: of all jobs, kept as long as the core.
  RunnerCore(std::string queue, Types types, const Options& options, Actions actions);

  // ---- for the sinks

  /// Of the subscription of this name; those with the lowest number go first. The same source for
  /// the same name.
  [[nodiscard]] Source add_source(const std::string& subscription, std::size_t priority);
  [[nodiscard]] std::vector<std::string> subscriptions() const;
  /// Called by any thread when collect() has something, or rows_changed(); none: no longer.
  void on_ready(Source source, std::function<void()> ready);
  void add(std::shared_ptr<Batch> batch);
  /// Of one task that has a unique key.
  void add_unique(std::shared_ptr<Batch> batch);
  [[nodiscard]] Load load(Source source, TimePoint now) const;
  /// Whether its sink has left tasks where they are until a thread is free.
  void want(Source source, bool more, TimePoint now);
  /// Appends the outcomes of runs that have ended, and of tasks that have waited for a thread for
  /// too long.
  void collect(Source source, TimePoint now, std::vector<Outcome>& outcomes);
  /// Appends an outcome for everything that was taken and is not kept. Runs go on, are told to
  /// stop, and their ends do not count.
  void give_up(Source source, std::vector<Outcome>& outcomes);
  /// Runs that were given up and have not ended.
  [[nodiscard]] std::size_t given_up(Source source) const;
  /// False: it does not run (any more).
  [[nodiscard]] bool keep(Source source, Token token, const sink::KeptRun& run);
  /// Since the last call.
  [[nodiscard]] bool rows_changed(Source source) { return source_queues_[source]->rows_changed(); }
  /// Tells runs past their deadline to stop. One that does not gets its end without having ended,
  /// and its thread is replaced.
  void watch(TimePoint now);
  /// True: another worker has a thread for a task that finds none here.
  [[nodiscard]] bool take_elsewhere();

  // ---- for the threads

  [[nodiscard]] std::shared_ptr<Slot> slot(std::size_t place) const;
  /// One with tasks to begin. Null: there is none, the thread waits until it is woken.
  [[nodiscard]] std::shared_ptr<Batch> next_batch();
  struct Begun {
    const Batch::Job* job{nullptr};
    std::stop_token stop;
  };
  /// None: the batch has no more tasks, or the thread was replaced.
  [[nodiscard]] std::optional<Begun> begin(Slot& slot, Batch& batch, TimePoint now);
  void end(Slot& slot, const TaskEnd& end, TimePoint now);
  [[nodiscard]] static bool is_replaced(const Slot& slot);
  /// None: it is busy with nothing.
  [[nodiscard]] static std::optional<Run> run_of(const Slot& slot);

  // ---- for the tracker

  /// Nothing is taken for them.
  [[nodiscard]] std::size_t free_threads() const;
  /// No thread is free, and a sink has left tasks where they are.
  [[nodiscard]] bool is_starved(TimePoint now) const;
  /// So many threads of other workers are free.
  void set_elsewhere(std::size_t threads) { elsewhere_ = threads; }
  /// It has handlers for them.
  [[nodiscard]] std::vector<std::string> types_to_claim() const;
  /// They are kept runs from the beginning.
  void add_claimed(const store::ClaimedTasks& claimed, TimePoint now);
  [[nodiscard]] const std::string& queue() const { return queue_; }
  [[nodiscard]] const Types& types() const { return types_; }
  /// Null: it has no handler here.
  [[nodiscard]] TaskType* find_type(std::string_view name) const;
  /// Tells the sinks to look again.
  void announce();
  void announce_changed_rows();

  /// Called when one of the lists below has something; none: no longer.
  void on_work(std::function<void()> ready) { tracker_bell_.set(std::move(ready)); }
  [[nodiscard]] std::vector<std::shared_ptr<Batch>> to_begin() const;
  void begin_unique(const std::shared_ptr<Batch>& batch);
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
  /// A person has cancelled it: it is told to stop, and what it ends with counts. False: it was
  /// told before.
  [[nodiscard]] bool cancel(const sink::KeptRun& run);
  /// All that are kept: they are told to stop, and are among the next kept_ends().
  void give_up_kept();
  /// Everything, at the end: nobody is told any more.
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
  [[nodiscard]] bool report(Slot& slot, const TaskEnd& end) OUTBOX_REQUIRES(slot.mutex);
  [[nodiscard]] std::optional<store::TaskFinish> finish_of(const Run& run,
                                                           const TaskEnd& end) const;
  [[nodiscard]] bool take_claimed(const sink::KeptRun& run);
  void add_kept_end(KeptEnd end);
  [[nodiscard]] bool add_claimed(const store::ClaimedTask& task, const sink::KeptRun& run,
                                 TimePoint now);

  const std::string queue_;
  const Types types_;
  const Options options_;
  const Actions actions_;
  // Only grow: what is below `sources_` stays where it is.
  std::array<std::unique_ptr<SourceQueue>, kMostSources> source_queues_;
  std::atomic<std::size_t> sources_{0};
  /// Threads of other workers for which no task was given up yet.
  std::atomic<std::size_t> elsewhere_{0};
  Bell tracker_bell_;

  mutable Mutex slots_mutex_;
  Slots slots_ OUTBOX_GUARDED_BY(slots_mutex_);
  mutable Mutex mutex_;
  std::vector<std::string> subscriptions_ OUTBOX_GUARDED_BY(mutex_);
  std::vector<SourceQueue*> by_priority_ OUTBOX_GUARDED_BY(mutex_);
  /// Each of one task, which is kept. Those that have begun are removed later.
  std::deque<std::shared_ptr<Batch>> claimed_ OUTBOX_GUARDED_BY(mutex_);
  Mutex ends_mutex_;
  std::vector<KeptEnd> kept_ends_ OUTBOX_GUARDED_BY(ends_mutex_);
  std::vector<FinishedRun> finished_ OUTBOX_GUARDED_BY(ends_mutex_);
};

}  // namespace outbox::task
