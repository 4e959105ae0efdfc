#include "base/units.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace outbox {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

TEST(Units, rates_are_a_number_and_a_period) {
  for (const char* text : {"200/s", "30/min", "7200/h"})
    EXPECT_EQ(format_rate(parse_rate(text).value()), text);
  EXPECT_DOUBLE_EQ(per_second(parse_rate("30/min").value()), 0.5);
  EXPECT_EQ(format_rate({}), "");
  for (const char* text : {"", "200", "0/s", "-1/s", "1.5/s", "200/", "/s", "200/d",
                           "99999999999999999999/s", "10000001/s"})
    EXPECT_FALSE(parse_rate(text)) << text;
  EXPECT_FALSE(check_rate({1, seconds(2)}));
  EXPECT_FALSE(check_rate({10'000'001}));
}

TEST(Units, durations_have_a_unit) {
  EXPECT_EQ(parse_duration("250us").value(), microseconds(250));
  EXPECT_EQ(parse_duration("50ms").value(), milliseconds(50));
  EXPECT_EQ(parse_duration("15s").value(), seconds(15));
  EXPECT_EQ(parse_duration("5min").value(), minutes(5));
  EXPECT_EQ(parse_duration("5m").value(), minutes(5));
  EXPECT_EQ(parse_duration("1h").value(), hours(1));
  EXPECT_EQ(parse_duration("7d").value(), hours(168));
  EXPECT_EQ(parse_duration("10 s").value(), seconds(10));
  EXPECT_EQ(parse_duration("0").value(), microseconds(0));
  for (const char* bad : {"", "10", "s", "-1s", "1.5s", "1w", "99999999999999999999s", "9999999h"})
    EXPECT_FALSE(parse_duration(bad)) << bad;
}

TEST(Units, a_number_alone_is_bytes) {
  EXPECT_EQ(parse_size("512").value(), 512U);
  EXPECT_EQ(parse_size("512B").value(), 512U);
  EXPECT_EQ(parse_size("64KiB").value(), 65536U);
  EXPECT_EQ(parse_size("1GiB").value(), std::size_t{1} << 30U);
  for (const char* bad : {"", "16M", "16MB", "-1", "1.5MiB"}) EXPECT_FALSE(parse_size(bad)) << bad;
}

TEST(Units, are_written_in_the_largest_unit_that_loses_nothing) {
  EXPECT_EQ(format_duration(milliseconds(0)), "0ms");
  EXPECT_EQ(format_duration(milliseconds(1500)), "1500ms");
  EXPECT_EQ(format_duration(seconds(90)), "90s");
  EXPECT_EQ(format_duration(minutes(5)), "5min");
  EXPECT_EQ(format_duration(hours(48)), "2d");
  EXPECT_EQ(format_size(1024), "1KiB");
  EXPECT_EQ(format_size(1000), "1000B");
}

}  // namespace
}  // namespace outbox
