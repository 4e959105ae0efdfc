// What the threads of a queue and one of its subscriptions hand each other.
//
// Threads: any.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <outbox/sink.hpp>
#include <set>
#include <utility>
#include <vector>

#include "base/mutex.hpp"
#include "task/batch.hpp"

namespace outbox::task {

struct Waiting {
  std::size_t tasks{0};
  std::chrono::nanoseconds work{0};
};

/// Tells whoever waits.
class Bell {
 public:
  void set(std::function<void()> ready) {
    const MutexLock lock(mutex_);
    ready_ = std::move(ready);
  }
  void ring() {
    const MutexLock lock(mutex_);
    if (ready_) ready_();
  }

 private:
  Mutex mutex_;
  std::function<void()> ready_ OUTBOX_GUARDED_BY(mutex_);
};

class SourceQueue {
 public:
  explicit SourceQueue(std::size_t priority) : priority_(priority) {}
  [[nodiscard]] std::size_t priority() const { return priority_; }

  // ---- what was taken and has not begun

  void add(std::shared_ptr<Batch> batch);
  /// The first batch that has tasks left; null if there is none.
  [[nodiscard]] std::shared_ptr<Batch> front();
  [[nodiscard]] Waiting waiting() const;
  void add_unique(std::shared_ptr<Batch> batch);
  [[nodiscard]] std::vector<std::shared_ptr<Batch>> to_begin() const;
  /// The sink has tasks that no thread can begin yet, so those of less urgent source queues wait.
  /// The sink says so again while that is so.
  void want(TimePoint until) { wants_until_ = until; }
  [[nodiscard]] bool wants(TimePoint now) const { return now < wants_until_.load(); }
  /// Any thread may begin the task now. This and the next two return false if the task was given
  /// up.
  [[nodiscard]] bool begin_unique(const std::shared_ptr<Batch>& batch);
  /// The task never begins, and is awaited until that is noted.
  [[nodiscard]] bool refuse_unique(const std::shared_ptr<Batch>& batch);
  /// The task goes back for a while.
  [[nodiscard]] bool postpone_unique(const std::shared_ptr<Batch>& batch);
  /// Tasks that were taken before this time and have not begun go back.
  void return_late(TimePoint before, std::vector<Outcome>& outcomes);

  // ---- ends that are noted before the relay gets them

  void await(Token token);
  /// Returns false if nobody waits for the outcome any more.
  [[nodiscard]] bool note(const Outcome& outcome);

  void collect(std::vector<Outcome>& outcomes);
  /// Appends outcomes of all tasks that have not begun.
  void give_up_waiting(std::vector<Outcome>& outcomes);
  /// Appends outcomes of all tasks that have ended, also of those that are awaited.
  void give_up_ended(std::vector<Outcome>& outcomes);

  // ---- the bell

  void on_ready(std::function<void()> ready) { bell_.set(std::move(ready)); }
  /// Rings the bell once until collected().
  void announce() {
    if (!announced_.exchange(true)) bell_.ring();
  }
  void announce_changed_rows() {
    rows_changed_ = true;
    announced_ = false;
    announce();
  }
  void collected() { announced_ = false; }
  [[nodiscard]] bool rows_changed() { return rows_changed_.exchange(false); }

 private:
  const std::size_t priority_;
  std::atomic<TimePoint> wants_until_{};
  std::atomic<bool> announced_{false};
  std::atomic<bool> rows_changed_{false};
  mutable Mutex mutex_;
  std::deque<std::shared_ptr<Batch>> batches_ OUTBOX_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<Batch>> to_begin_ OUTBOX_GUARDED_BY(mutex_);
  std::set<Token> awaited_ OUTBOX_GUARDED_BY(mutex_);
  std::vector<Outcome> noted_ OUTBOX_GUARDED_BY(mutex_);
  Bell bell_;
};

}  // namespace outbox::task
