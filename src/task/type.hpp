// A type of task in a worker: its handler, how long its runs take, and when it runs again after one
// that failed.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <outbox/sink.hpp>
#include <outbox/worker.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "subscription/retry_policy.hpp"
#include "task/durations.hpp"
#include "task/task_meter.hpp"
#include "task/type_limit.hpp"

namespace outbox::task {

/// The pauses after failed runs. Pure.
class RetrySchedule {
 public:
  /// `delays` and `jitter` must be valid.
  RetrySchedule(Delays delays, std::size_t jitter);

  /// Decides after a run that has ended when the task runs again, or that it is dead.
  /// `max_attempts` is that of this task; if it is nullopt, there is one attempt more than there
  /// are pauses.
  void decide(Outcome& outcome, std::size_t attempt, std::optional<std::size_t> max_attempts,
              const EventId& id) const;

 private:
  std::size_t runs_;  ///< The most runs, unless the task says otherwise.
  subscription::RetryPolicy policy_;
};

/// The outcome for the relay, and for what the tracker writes, before a schedule has decided.
[[nodiscard]] Outcome to_outcome(Token token, const TaskEnd& end);

/// Whether runs of the type are limited.
[[nodiscard]] inline bool has_limit(const Handlers::Options& options) {
  return options.max_running > 0 || options.rate.count > 0;
}

/// A type of task. Its Handlers::Options must be valid.
class TaskType {
 public:
  TaskType(Handlers::Handler handler, const RetrySchedule& retries);
  [[nodiscard]] const Handlers::Handler& handler() const { return handler_; }
  [[nodiscard]] const RetrySchedule& retries() const { return retries_; }
  /// How long a run usually takes, as a moving average; zero if no run has ended yet.
  [[nodiscard]] std::chrono::nanoseconds usual() const {
    return std::chrono::nanoseconds(usual_ns_.load(std::memory_order_relaxed));
  }
  void took(std::chrono::nanoseconds time);
  [[nodiscard]] Durations& durations() { return durations_; }
  [[nodiscard]] TaskMeter& meter() { return meter_; }
  /// The limit of the type; null if it has none.
  [[nodiscard]] TypeLimit* limit() const { return limit_.get(); }

 private:
  const Handlers::Handler handler_;
  const RetrySchedule retries_;
  const std::shared_ptr<TypeLimit> limit_;
  std::atomic<std::int64_t> usual_ns_{0};
  std::atomic<std::uint32_t> runs_{0};
  Durations durations_;
  TaskMeter meter_;
};

}  // namespace outbox::task
