// Background work takes a quarter of what it could use: after each part it rests three times as
// long as the part took.
#pragma once

#include <chrono>
#include <condition_variable>
#include <stop_token>

#include "base/mutex.hpp"

namespace outbox::store {

/// It is used by one thread at a time.
class BackgroundPace {
 public:
  using Clock = std::chrono::steady_clock;

  /// Returns early when `stop` is requested.
  void after(Clock::time_point began, const std::stop_token& stop) {
    const MutexLock lock(mutex_);
    (void)stopped_.wait_for(mutex_, stop, 3 * (Clock::now() - began), [] { return false; });
  }

 private:
  Mutex mutex_;
  std::condition_variable_any stopped_;
};

}  // namespace outbox::store
