// The threads of a queue: they run what its sink has taken, each task as soon as a thread is free. What runs belongs to the relay, which
// gets its outcome, until it is kept: then its end is for the keeper of runs.
//
// Threads: any; add(), load(), collect() and give_up() by one thread, the sink's. The destructor waits a moment for handlers that run;
// those that do not return keep their threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <outbox/sink.hpp>
#include <outbox/worker.hpp>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.hpp"
#include "sink/run_owner.hpp"

namespace outbox::task {

using TimePoint = std::chrono::steady_clock::time_point;

/// A handler, and how long its runs take.
class TaskType {
 public:
  explicit TaskType(Handlers::Handler handler) : handler_(std::move(handler)) {}
  [[nodiscard]] const Handlers::Handler& handler() const { return handler_; }
  /// A moving average; zero: no run has ended yet.
  [[nodiscard]] std::chrono::nanoseconds usual() const {
    return std::chrono::nanoseconds(usual_ns_.load(std::memory_order_relaxed));
  }
  void took(std::chrono::nanoseconds time);

 private:
  const Handlers::Handler handler_;
  std::atomic<std::int64_t> usual_ns_{0};
  std::atomic<std::uint32_t> runs_{0};
};

/// Tasks that were taken together: one copy of their text.
class Batch {
 public:
  struct Job {
    TaskType* type{nullptr};
    Token token{0};
    EventId id{};
    std::size_t attempt{1};
    // Where its parts begin in the text, one after the other.
    std::size_t payload{0};
    std::size_t key{0};
    std::size_t content_type{0};
    std::size_t headers{0};
    std::size_t end{0};
  };

  explicit Batch(TimePoint taken = {}) : taken_(taken) {}
  void add(TaskType& type, const Message& message);
  [[nodiscard]] TimePoint taken() const { return taken_; }
  [[nodiscard]] std::size_t size() const { return jobs_.size(); }
  [[nodiscard]] const Job& job(std::size_t place) const { return jobs_[place]; }
  [[nodiscard]] std::string_view part(std::size_t begin, std::size_t end) const {
    return std::string_view(text_).substr(begin, end - begin);
  }

  /// The next one to begin; none: all have begun.
  [[nodiscard]] const Job* begin_next() {
    const std::size_t place = next_.fetch_add(1, std::memory_order_relaxed);
    return place < jobs_.size() ? &jobs_[place] : nullptr;
  }
  [[nodiscard]] std::size_t left() const {
    return jobs_.size() - std::min(next_.load(std::memory_order_relaxed), jobs_.size());
  }
  /// How long those that have not begun usually take.
  [[nodiscard]] std::chrono::nanoseconds work_left() const {
    return jobs_.empty() ? std::chrono::nanoseconds(0)
                         : usual_ * static_cast<std::int64_t>(left()) /
                               static_cast<std::int64_t>(jobs_.size());
  }
  /// No more of them begin. Calls `each` for those that have not begun.
  void cut(const std::function<void(const Job&)>& each);

 private:
  TimePoint taken_;
  std::string text_;
  std::vector<Job> jobs_;
  std::chrono::nanoseconds usual_{0};
  std::atomic<std::size_t> next_{0};
};

/// A kept run that has ended, or does not count any more.
struct KeptEnd {
  sink::KeptRun run;
  std::optional<TaskEnd> end;  ///< None: it was given up, and runs again.
};

/// What a handler has reported since it was asked last.
struct RunProgress {
  sink::KeptRun run;
  std::size_t percent{0};
  std::string text;
};

/// For the relay, and for what the keeper writes.
[[nodiscard]] Outcome outcome_of(Token token, const TaskEnd& end);

/// What the threads have to do.
struct Load {
  std::size_t running{0};
  std::size_t long_running{0};  ///< Of them, for longer than kQuick.
  std::size_t waiting{0};       ///< Taken, and not begun.
  std::chrono::nanoseconds work_waiting{0};
};

/// What takes less may wait behind others of its kind; anything else is taken only for a thread that is free.
inline constexpr std::chrono::milliseconds kQuick{20};

class Runner {
 public:
  using Types = std::vector<std::shared_ptr<TaskType>>;

  /// `types`: of all jobs, kept as long as a handler runs.
  Runner(std::string queue, Types types, std::size_t threads);
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;
  Runner(Runner&&) = delete;
  Runner& operator=(Runner&&) = delete;
  ~Runner();

  /// Starts the threads. A second call does nothing.
  void start();

  // ---- for the sink

  /// Called by the threads when collect() has something, or rows_changed(); none: no longer.
  void on_ready(std::function<void()> ready);
  void add(std::shared_ptr<Batch> batch);
  [[nodiscard]] Load load(TimePoint now) const;
  /// Appends the outcomes of runs that have ended, and of tasks that have waited for a thread for too long.
  void collect(TimePoint now, std::vector<Outcome>& outcomes);
  /// Appends an outcome for everything that was taken and is not kept. Runs go on, are told to stop, and their ends do not count.
  void give_up(std::vector<Outcome>& outcomes);
  /// Runs that were given up and have not ended.
  [[nodiscard]] std::size_t given_up() const;
  /// False: it does not run (any more).
  [[nodiscard]] bool keep(Token token, const sink::KeptRun& run);
  /// Since the last call.
  [[nodiscard]] bool rows_changed();

  // ---- for the keeper

  /// Called when kept_ends() has something.
  void on_kept_end(std::function<void()> ready);
  [[nodiscard]] std::vector<sink::KeptRun> kept() const;
  [[nodiscard]] std::vector<KeptEnd> kept_ends();
  [[nodiscard]] std::vector<RunProgress> progress();
  /// It belongs to another worker now: it is told to stop, and its end does not count.
  void lose(const sink::KeptRun& run);
  /// All that are kept: they are told to stop, and are among the next kept_ends().
  void give_up_kept();
  void announce_changed_rows();

  /// Either: tells runs past their deadline to stop. One that does not gets its end without having ended, and another thread is started.
  void watch(TimePoint now);

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
