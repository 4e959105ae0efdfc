// The time until which the relay may send events. After that another relay may have the lanes.
#pragma once

#include <atomic>
#include <chrono>

namespace outbox::relay {

using TimePoint = std::chrono::steady_clock::time_point;

/// Any thread may use it.
class TrustDeadline {
 public:
  void extend_to(TimePoint until) {
    until_.store(until.time_since_epoch().count(), std::memory_order_release);
  }
  void end() { until_.store(0, std::memory_order_release); }
  [[nodiscard]] bool holds(TimePoint now) const {
    return now.time_since_epoch().count() < until_.load(std::memory_order_acquire);
  }

 private:
  std::atomic<TimePoint::rep> until_{0};
};

}  // namespace outbox::relay
