#include "task/type.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <thread>
#include <vector>

namespace outbox::task {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::minutes;

std::uint64_t all_of(const DurationCounts& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const auto& one) { return sum + one.second; });
}

TEST(TaskType, quick_runs_are_sampled_and_slow_ones_are_all_counted) {
  TaskType type({}, RetrySchedule({std::chrono::minutes(1)}, 0));
  for (int i = 0; i < 950; ++i) {
    type.took(microseconds(100));
    if (i % 19 == 0) type.took(milliseconds(500));
  }
  const DurationCounts counts = type.durations().counts();
  EXPECT_NEAR(static_cast<double>(all_of(counts)), 1000, 100);
  EXPECT_EQ(counts.at(duration_bucket(milliseconds(500))), 50U);
  EXPECT_EQ(duration_quantile(counts, 0.5),
            duration_quantile({{duration_bucket(microseconds(100)), 1}}, 0.5));
  EXPECT_EQ(duration_quantile(counts, 0.99),
            duration_quantile({{duration_bucket(milliseconds(500)), 1}}, 0.5));
}

TEST(TaskType, threads_lose_no_count) {
  TaskType type({}, RetrySchedule({std::chrono::minutes(1)}, 0));
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 4; ++thread) {
      threads.emplace_back([&] {
        for (int i = 0; i < 10000; ++i) type.took(milliseconds(2));
      });
    }
  }
  EXPECT_EQ(all_of(type.durations().counts()), 40000U);
}

TEST(Durations, forgets_what_is_older_than_some_minutes) {
  Durations durations;
  const Durations::TimePoint start{minutes(1000)};
  durations.turn(start);
  durations.add(milliseconds(1), 1);
  durations.turn(start + minutes(2));
  durations.add(milliseconds(1), 1);
  EXPECT_EQ(all_of(durations.counts()), 2U);
  durations.turn(start + minutes(4));
  EXPECT_EQ(all_of(durations.counts()), 2U);
  durations.turn(start + minutes(5));
  EXPECT_EQ(all_of(durations.counts()), 1U);
  durations.turn(start + minutes(500));
  EXPECT_EQ(all_of(durations.counts()), 0U);
}

TEST(TypeLimit, so_many_at_once) {
  const TimePoint now{};
  const auto limit = std::make_shared<TypeLimit>(2, 0);
  Permit one = limit->take(now);
  const Permit two = limit->take(now);
  EXPECT_TRUE(one && two);
  EXPECT_FALSE(limit->take(now));
  one.reset();
  EXPECT_TRUE(limit->take(now));
}

TEST(TypeLimit, so_often_by_the_part_of_the_lanes) {
  TimePoint now{};
  const auto limit = std::make_shared<TypeLimit>(0, 100);
  limit->set_share(0.5, now);
  const auto taken_in = [&](std::chrono::milliseconds time) {
    int taken = 0;
    for (const TimePoint end = now + time; now < end; now += std::chrono::milliseconds(1)) {
      while (limit->take(now)) ++taken;
    }
    return taken;
  };
  (void)taken_in(std::chrono::seconds(1));
  EXPECT_NEAR(taken_in(std::chrono::seconds(2)), 100, 1);
  limit->set_share(1, now);
  (void)taken_in(std::chrono::seconds(1));
  EXPECT_NEAR(taken_in(std::chrono::seconds(2)), 200, 1);
}

}  // namespace
}  // namespace outbox::task
