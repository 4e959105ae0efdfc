// How many events a subscription may send now. The bucket fills evenly and holds what a tenth of a
// second allows, at least one event, so that no burst makes up for a pause. Pure.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>

namespace outbox {

class RateLimit {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  RateLimit(double per_second, TimePoint now)
      : per_second_(per_second), most_(std::max(1.0, per_second / 10)), held_(most_), at_(now) {}

  [[nodiscard]] std::size_t allowed(TimePoint now) {
    const double passed = std::chrono::duration<double>(now - at_).count();
    held_ = std::min(most_, held_ + std::max(passed, 0.0) * per_second_);
    at_ = std::max(at_, now);
    return static_cast<std::size_t>(held_);
  }
  /// Notes that events were sent, at most as many as allowed.
  void sent(std::size_t events) { held_ -= static_cast<double>(events); }
  /// When the next event is allowed, after allowed() returned 0.
  [[nodiscard]] TimePoint next() const {
    const std::chrono::duration<double> missing((1.0 - held_) / per_second_);
    return at_ + std::chrono::ceil<TimePoint::duration>(missing);
  }

 private:
  double per_second_;
  double most_;
  double held_;
  TimePoint at_;
};

}  // namespace outbox
