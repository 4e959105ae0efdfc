// What the threads of a runner share, and what each of them does now. For runner*.cpp only.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <span>
#include <utility>

#include "task/desk.hpp"
#include "task/runner.hpp"

namespace outbox::task {

/// A thread, and the run that it is busy with.
struct Runner::Slot final : TaskRun::Reporter {
  struct Current {
    const Batch* batch{nullptr};
    const Batch::Job* job{nullptr};
    TimePoint began{};
    bool told{false};     ///< To stop.
    bool dropped{false};  ///< Its outcome was reported without it, or does not count.
    std::optional<sink::KeptRun> kept{};
    std::optional<RunProgress> progress{};  ///< Not asked for yet.
  };

  mutable Mutex mutex;
  std::optional<Current> current OUTBOX_GUARDED_BY(mutex);
  std::stop_source stop OUTBOX_GUARDED_BY(mutex);
  std::map<Source, std::vector<Outcome>> ended OUTBOX_GUARDED_BY(mutex);
  bool over OUTBOX_GUARDED_BY(mutex){false};  ///< The thread ends after its run.

  void progress(std::size_t percent, std::string_view text) override {
    const MutexLock lock(mutex);
    if (current)
      current->progress = RunProgress{
          .run = {}, .percent = std::min<std::size_t>(percent, 100), .text = std::string(text)};
  }
};

/// Outlives the runner as long as a handler does not return.
struct Runner::Shared {
  Shared(std::string name, Types all, const Options& wanted)
      : queue(std::move(name)), types(std::move(all)), options(wanted) {}

  const std::string queue;
  const Types types;
  const Options options;
  // Only grow: what is below `sources` stays where it is.
  std::array<std::unique_ptr<Desk>, kMostSources> desks;
  std::atomic<std::size_t> sources{0};

  Mutex mutex;
  std::vector<std::string> subscriptions OUTBOX_GUARDED_BY(mutex);
  std::vector<Desk*> by_priority OUTBOX_GUARDED_BY(mutex);
  std::deque<std::shared_ptr<Batch>> claimed OUTBOX_GUARDED_BY(mutex);
  std::atomic<std::size_t> elsewhere{
      0};  ///< Threads of other workers for which no task was given up yet.
  std::condition_variable_any changed;
  bool over OUTBOX_GUARDED_BY(mutex){false};
  Mutex work_mutex;
  std::function<void()> work_ready OUTBOX_GUARDED_BY(work_mutex);
  Mutex ends_mutex;
  std::vector<KeptEnd> kept_ends OUTBOX_GUARDED_BY(ends_mutex);
  std::vector<FinishedRun> finished OUTBOX_GUARDED_BY(ends_mutex);

  [[nodiscard]] std::span<const std::unique_ptr<Desk>> all_desks() const {
    return {desks.data(), sources.load(std::memory_order_acquire)};
  }
  [[nodiscard]] std::shared_ptr<Batch> wait_for_batch();
  void ring_keeper();
  void add_kept_end(KeptEnd end);
  void add_finished(FinishedRun run);
  void report(Slot& slot, const TaskEnd& end) OUTBOX_REQUIRES(slot.mutex);
  [[nodiscard]] std::optional<store::TaskFinish> finish_of(const Batch& batch,
                                                           const Batch::Job& job,
                                                           const TaskEnd& end) const;
  void work(Slot& slot);
  [[nodiscard]] bool run_next(Slot& slot, Batch& batch);
  [[nodiscard]] TaskEnd run(const Batch& batch, const Batch::Job& job, Slot& slot,
                            std::stop_token stop, TimePoint began) const;
};

}  // namespace outbox::task
