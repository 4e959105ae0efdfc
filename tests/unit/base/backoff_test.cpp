#include "base/backoff.hpp"

#include <gtest/gtest.h>

#include <set>

namespace outbox {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr BackoffPolicy kPolicy{.first = milliseconds(100), .longest = milliseconds(1000)};

TEST(Backoff, doubles_up_to_the_longest_within_the_jitter) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    for (const auto& [attempt, middle] : {std::pair{1, milliseconds(100)},
                                          {2, milliseconds(200)},
                                          {4, milliseconds(800)},
                                          {5, milliseconds(1000)},
                                          {60, milliseconds(1000)},
                                          {1'000'000, milliseconds(1000)}}) {
      const nanoseconds pause = backoff(kPolicy, attempt, seed);
      EXPECT_GE(pause, nanoseconds(middle) * 3 / 4) << attempt;
      EXPECT_LT(pause, nanoseconds(middle) * 5 / 4) << attempt;
    }
  }
}

TEST(Backoff, is_the_same_for_a_seed_and_another_for_another) {
  std::set<nanoseconds> pauses;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    EXPECT_EQ(backoff(kPolicy, 3, seed), backoff(kPolicy, 3, seed));
    pauses.insert(backoff(kPolicy, 3, seed));
  }
  EXPECT_GT(pauses.size(), 40U);
}

}  // namespace
}  // namespace outbox
