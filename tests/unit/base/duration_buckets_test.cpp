#include "base/duration_buckets.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace outbox {
namespace {

using std::chrono::nanoseconds;

TEST(DurationBuckets, longer_durations_are_in_later_buckets) {
  std::size_t before = 0;
  for (std::int64_t ns = 1; ns < std::int64_t{1} << 55U; ns += ns / 9 + 1) {
    const std::size_t bucket = duration_bucket(nanoseconds(ns));
    EXPECT_GE(bucket, before) << ns;
    EXPECT_LE(bucket, before + 1) << ns;
    EXPECT_LT(bucket, kDurationBuckets);
    before = bucket;
  }
  EXPECT_EQ(before, kDurationBuckets - 1);
  EXPECT_EQ(duration_bucket(nanoseconds(-5)), 0U);
  EXPECT_EQ(duration_bucket(nanoseconds::max()), kDurationBuckets - 1);
}

TEST(DurationBuckets, a_duration_is_told_within_an_eighth) {
  for (std::int64_t ns = 300; ns < std::int64_t{1} << 50U; ns += ns / 7 + 1) {
    const auto told = duration_quantile({{duration_bucket(nanoseconds(ns)), 1}}, 0.5);
    ASSERT_TRUE(told);
    EXPECT_LE(std::abs(static_cast<double>(told->count() - ns)), static_cast<double>(ns) / 8) << ns;
  }
}

TEST(DurationBuckets, quantiles_count_from_the_shortest) {
  EXPECT_FALSE(duration_quantile({}, 0.5));
  EXPECT_FALSE(duration_quantile({{3, 0}}, 0.5));
  const std::size_t quick = duration_bucket(std::chrono::milliseconds(1));
  const std::size_t slow = duration_bucket(std::chrono::seconds(1));
  const DurationCounts counts{{quick, 95}, {slow, 5}};
  EXPECT_EQ(duration_quantile(counts, 0.5), duration_quantile({{quick, 1}}, 0.5));
  EXPECT_EQ(duration_quantile(counts, 0.95), duration_quantile({{quick, 1}}, 0.5));
  EXPECT_EQ(duration_quantile(counts, 0.96), duration_quantile({{slow, 1}}, 0.5));
  EXPECT_EQ(duration_quantile(counts, 1), duration_quantile({{slow, 1}}, 0.5));
}

}  // namespace
}  // namespace outbox
