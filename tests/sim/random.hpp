// The random numbers of a simulation. Everything in it follows from one seed.
#pragma once

#include <cstdint>

#include "base/hash.hpp"

namespace outbox::sim {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(splitmix64(seed)) {}
  std::uint64_t next() { return splitmix64(state_++); }
  std::uint64_t below(std::uint64_t n) { return next() % n; }
  bool chance(unsigned percent) { return below(100) < percent; }

 private:
  std::uint64_t state_;
};

}  // namespace outbox::sim
