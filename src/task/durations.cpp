#include "task/durations.hpp"

namespace outbox::task {

/// A run that ends at this moment may still be counted in the minute before.
void Durations::turn(TimePoint now) noexcept {
  if (turned_ == TimePoint{}) turned_ = now;
  for (std::size_t turns = 0; now - turned_ >= std::chrono::minutes(1); ++turns) {
    if (turns == kMinutes) {  // after a long sleep
      turned_ = now;
      return;
    }
    const std::size_t next = (now_.load(std::memory_order_relaxed) + 1) % kMinutes;
    for (auto& count : minutes_[next]) count.store(0, std::memory_order_relaxed);
    now_.store(next, std::memory_order_relaxed);
    turned_ += std::chrono::minutes(1);
  }
}

DurationCounts Durations::counts() const {
  DurationCounts counts;
  for (const Minute& minute : minutes_) {
    for (std::size_t bucket = 0; bucket < minute.size(); ++bucket) {
      const std::uint32_t count = minute[bucket].load(std::memory_order_relaxed);
      if (count != 0) counts[bucket] += count;
    }
  }
  return counts;
}

}  // namespace outbox::task
