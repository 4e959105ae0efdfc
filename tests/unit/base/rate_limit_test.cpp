#include "base/rate_limit.hpp"

#include <gtest/gtest.h>

namespace outbox {
namespace {

using std::chrono::milliseconds;
using TimePoint = RateLimit::TimePoint;
using std::chrono::seconds;

/// The number of events sent in this time if all that are allowed are sent each millisecond.
std::size_t sent_in(RateLimit& limit, TimePoint& now, milliseconds time) {
  std::size_t sum = 0;
  for (milliseconds at{0}; at < time; at += milliseconds(1), now += milliseconds(1)) {
    const std::size_t allowed = limit.allowed(now);
    limit.sent(allowed);
    sum += allowed;
  }
  return sum;
}

TEST(RateLimit, is_kept_over_time) {
  for (const double rate : {1.0, 7.5, 200.0, 20'000.0}) {
    TimePoint now{};
    RateLimit limit(rate, now);
    const double burst = std::max(1.0, rate / 10);
    const auto sent = static_cast<double>(sent_in(limit, now, seconds(20)));
    EXPECT_LE(sent, 20 * rate + burst + 1) << rate;
    EXPECT_GE(sent, 20 * rate - 1) << rate;
  }
}

TEST(RateLimit, a_pause_is_not_made_up_for) {
  TimePoint now{};
  RateLimit limit(100, now);
  now += std::chrono::hours(1);
  EXPECT_EQ(limit.allowed(now), 10U);
}

TEST(RateLimit, says_when_the_next_one_may_go) {
  for (const double rate : {0.3, 3.0, 700.0, 1e6}) {
    TimePoint now{};
    RateLimit limit(rate, now);
    limit.sent(limit.allowed(now));
    for (int i = 0; i < 100; ++i) {
      ASSERT_EQ(limit.allowed(now), 0U) << rate;
      const TimePoint next = limit.next();
      ASSERT_GT(next, now) << "the loop would spin";
      now = next;
      if (limit.allowed(now) == 0) now += std::chrono::nanoseconds(1);  // rounding
      ASSERT_GE(limit.allowed(now), 1U) << rate;
      limit.sent(1);
    }
  }
}

TEST(RateLimit, a_clock_that_goes_back_gives_nothing) {
  TimePoint now = TimePoint{} + seconds(10);
  RateLimit limit(10, now);
  limit.sent(limit.allowed(now));
  EXPECT_EQ(limit.allowed(now - seconds(5)), 0U);
}

}  // namespace
}  // namespace outbox
