#include "event/time_text.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

namespace outbox::event {
namespace {

std::string written(std::int64_t us) {
  std::string text(kTimeChars, ' ');
  write_time(us, text.data());
  return text;
}

TEST(TimeText, reads_rfc_3339) {
  EXPECT_EQ(read_time("1970-01-01T00:00:00Z"), 0);
  EXPECT_EQ(read_time("2001-02-03T04:05:06.789012Z"), 981'173'106'789'012);
  EXPECT_EQ(read_time("2001-02-03t05:05:06.7890129+01:00"), 981'173'106'789'012);
  EXPECT_EQ(read_time("2001-02-02 23:35:06.5-04:30"), 981'173'106'500'000);
  EXPECT_EQ(read_time("2024-02-29T00:00:00z"), 1'709'164'800'000'000);
  EXPECT_EQ(read_time("1969-12-31T23:59:59.999999Z"), -1);
}

TEST(TimeText, refuses_everything_else) {
  for (const char* text : {"",
                           "now",
                           "2001-02-03",
                           "2001-02-03T04:05:06",
                           "2001-02-03T04:05Z",
                           "2001-02-30T04:05:06Z",
                           "2023-02-29T00:00:00Z",
                           "2001-00-03T04:05:06Z",
                           "2001-13-03T04:05:06Z",
                           "2001-02-00T04:05:06Z",
                           "2001-02-03T24:05:06Z",
                           "2001-02-03T04:60:06Z",
                           "2001-02-03T04:05:60Z",
                           "2001-02-03T04:05:06.Z",
                           "2001-02-03T04:05:06+1:00",
                           "2001-02-03T04:05:06+24:00",
                           "2001-02-03T04:05:06+01:60",
                           "2001-02-03T04:05:06Z ",
                           " 2001-02-03T04:05:06Z",
                           "2001-2-3T04:05:06Z",
                           "20010203T040506Z",
                           "0000-01-01T00:00:00Z",
                           "0001-01-01T00:00:00+01:00",
                           "9999-12-31T23:59:59-01:00"}) {
    EXPECT_EQ(read_time(text), std::nullopt) << text;
  }
}

RC_GTEST_PROP(TimeText, what_was_written_is_read, ()) {
  const auto us = *rc::gen::inRange<std::int64_t>(-62'135'596'800'000'000, 253'402'300'800'000'000);
  RC_ASSERT(is_time(us));
  RC_ASSERT(read_time(written(us)) == us);
}

TEST(TimeText, an_event_happened_when_it_was_written_unless_it_says_otherwise) {
  EventView event;
  event.created_at = event::timestamp(2);
  EXPECT_EQ(happened_us(event), 2);
  event.occurred_at = event::timestamp(1);
  EXPECT_EQ(happened_us(event), 1);
}

}  // namespace
}  // namespace outbox::event
