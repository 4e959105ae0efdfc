// The clock of the store, which alone says when a task is due: that of this machine may be wrong.
//
// Threads: any.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>

namespace outbox::task {

class StoreClock {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// The store has just said that it is `store_us`, in microseconds since 1970.
  void set(std::int64_t store_us, TimePoint now) { ahead_us_ = store_us - to_us(now); }
  /// The time of the store; nullopt if the store was not asked yet.
  [[nodiscard]] std::optional<std::int64_t> now_us(TimePoint now) const {
    const std::int64_t ahead = ahead_us_;
    if (ahead == kUnknown) return std::nullopt;
    return ahead + to_us(now);
  }

 private:
  static constexpr std::int64_t kUnknown = std::numeric_limits<std::int64_t>::min();
  static std::int64_t to_us(TimePoint time) {
    return std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count();
  }
  std::atomic<std::int64_t> ahead_us_{kUnknown};
};

}  // namespace outbox::task
