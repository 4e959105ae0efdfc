// How long the runs of a type took in the last minutes.
//
// Threads: any may call add() and counts(), one at a time calls turn().
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "base/duration_buckets.hpp"

namespace outbox::task {

class Durations {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// Takes no lock. `runs` is how many runs this one stands for.
  void add(std::chrono::nanoseconds took, std::uint32_t runs) noexcept {
    minutes_[now_.load(std::memory_order_relaxed)][duration_bucket(took)].fetch_add(
        runs, std::memory_order_relaxed);
  }
  /// Forgets what is older than kMinutes.
  void turn(TimePoint now) noexcept;
  [[nodiscard]] DurationCounts counts() const;

 private:
  static constexpr std::size_t kMinutes = 5;
  using Minute = std::array<std::atomic<std::uint32_t>, kDurationBuckets>;

  std::array<Minute, kMinutes> minutes_{};
  std::atomic<std::size_t> now_{0};
  TimePoint turned_{};
};

}  // namespace outbox::task
