#include "base/outage.hpp"

#include <gtest/gtest.h>

#include <string>

namespace outbox {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

const Outage::TimePoint kStart{std::chrono::hours(1)};

TEST(Outage, the_first_failure_is_written_at_once) {
  Outage outage;
  EXPECT_EQ(outage.failed("refused", kStart), 0U);
}

TEST(Outage, repeats_are_written_once_a_minute_with_their_number) {
  Outage outage;
  int lines = 0;
  std::uint64_t left_out = 0;
  for (seconds at{0}; at < minutes(60); at += seconds(3)) {
    if (const auto repeats = outage.failed("refused", kStart + at)) {
      ++lines;
      left_out += *repeats;
      if (lines > 1) {
        EXPECT_EQ(*repeats, 19U);
      }
    }
  }
  EXPECT_EQ(lines, 60);
  EXPECT_EQ(lines + left_out + 19, 1200U) << "every failure is written or counted";
}

TEST(Outage, another_reason_is_written_at_once_and_reasons_that_alternate_are_no_flood) {
  Outage outage;
  int lines = 0;
  for (int i = 0; i < 200; ++i) {
    const auto now = kStart + milliseconds(100) * i;
    lines += outage.failed("refused", now) ? 1 : 0;
    lines += outage.failed("reset", now) ? 1 : 0;
  }
  EXPECT_EQ(lines, 2);
}

TEST(Outage, reasons_that_are_all_different_are_no_flood_either) {
  Outage outage;
  std::size_t lines = 0;
  for (int i = 0; i < 10'000; ++i)
    lines += outage.failed("port " + std::to_string(i), kStart + milliseconds(i)) ? 1 : 0;
  EXPECT_EQ(lines, Outage::kMostReasons);
  EXPECT_EQ(outage.failed("port x", kStart + minutes(2)), 0U)
      << "a minute later there is room again";
}

TEST(Outage, its_end_says_how_long_it_lasted) {
  Outage outage;
  EXPECT_FALSE(outage.works(kStart));
  (void)outage.failed("refused", kStart);
  (void)outage.failed("refused", kStart + seconds(1));
  const auto over = outage.works(kStart + seconds(90));
  ASSERT_TRUE(over);
  EXPECT_EQ(over->lasted, seconds(90));
  EXPECT_EQ(over->failures, 2U);
  EXPECT_FALSE(outage.works(kStart + seconds(91))) << "once";
}

TEST(Outage, one_that_comes_and_goes_is_written_once_a_minute_too) {
  Outage outage;
  int failures = 0;
  int ends = 0;
  for (seconds at{0}; at < minutes(10); at += seconds(2)) {
    failures += outage.failed("refused", kStart + at) ? 1 : 0;
    ends += outage.works(kStart + at + seconds(1)) ? 1 : 0;
  }
  EXPECT_EQ(failures, 10);
  EXPECT_EQ(ends, failures) << "an end is written for what was written of";
}

TEST(Outage, seconds_are_rounded_for_people) {
  EXPECT_EQ(in_seconds(milliseconds(3149)), 3.1);
  EXPECT_EQ(in_seconds(minutes(2)), 120.0);
}

}  // namespace
}  // namespace outbox
