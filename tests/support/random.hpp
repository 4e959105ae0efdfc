// Seeded random numbers. The decisions of a test are repeatable; only the scheduling is not.
#pragma once

#include <chrono>
#include <cstdint>
#include <thread>

#include "base/hash.hpp"

namespace outbox::test {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(splitmix64(seed)) {}
  std::uint64_t next() { return splitmix64(state_++); }
  std::uint64_t below(std::uint64_t n) { return next() % n; }
  bool chance(int percent) { return below(100) < static_cast<std::uint64_t>(percent); }
  /// Sleeps for a random time, so that other threads interleave. This is part of the scenario, and
  /// not a wait for anything.
  void dawdle(std::chrono::microseconds longest) {
    if (longest.count() <= 0) return;
    std::this_thread::sleep_for(
        std::chrono::microseconds(below(static_cast<std::uint64_t>(longest.count()))));
  }

 private:
  std::uint64_t state_;
};

}  // namespace outbox::test
