// How many tasks of a type may run at once, and how often one may begin, in a worker.
//
// Threads: any.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>

#include "base/mutex.hpp"
#include "base/rate_limit.hpp"

namespace outbox::task {

using TimePoint = std::chrono::steady_clock::time_point;

/// The permit to run a task; it is given back when it is destroyed.
using Permit = std::shared_ptr<const void>;

class TypeLimit : public std::enable_shared_from_this<TypeLimit> {
 public:
  /// `most` is how many may run at once, `rate` how many may begin per second in all workers
  /// together. Zero means that there is no such limit.
  TypeLimit(std::size_t most, double rate) : most_(most), rate_(rate) {}

  /// Sets what part of the rate is this worker's.
  void set_share(double share, TimePoint now) {
    const MutexLock lock(mutex_);
    if (rate_ <= 0 || share == share_) return;
    share_ = share;
    bucket_.emplace(rate_ * share, now);
  }
  /// A permit; null if no task may begin now.
  [[nodiscard]] Permit take(TimePoint now) {
    const MutexLock lock(mutex_);
    if (most_ > 0 && taken_ >= most_) return nullptr;
    if (bucket_ && bucket_->allowed(now) == 0) return nullptr;
    if (bucket_) bucket_->sent(1);
    ++taken_;
    return {this, [limit = shared_from_this()](const void*) { limit->give_back(); }};
  }

 private:
  void give_back() {
    const MutexLock lock(mutex_);
    --taken_;
  }

  const std::size_t most_;
  const double rate_;
  mutable Mutex mutex_;
  std::size_t taken_ OUTBOX_GUARDED_BY(mutex_){0};
  double share_ OUTBOX_GUARDED_BY(mutex_){0};
  std::optional<RateLimit> bucket_ OUTBOX_GUARDED_BY(mutex_);
};

}  // namespace outbox::task
