// Every transition of the adaptive polling.
#include "feed/pace.hpp"

#include <gtest/gtest.h>

namespace outbox::feed {
namespace {

using What = Pace::Step::What;
using Told = store::Wakeup::Told;
using std::chrono::milliseconds;
using std::chrono::seconds;

PaceOptions options() {
  PaceOptions made;
  made.busy = milliseconds(1);
  made.refused_longest = milliseconds(20);
  made.idle = seconds(1);
  made.empty_polls = 3;
  return made;
}

void expect(const Pace::Step& step, What what, std::chrono::nanoseconds pause) {
  EXPECT_EQ(step.what, what);
  EXPECT_EQ(step.pause, pause);
}

/// Makes polls that find nothing until the pace wants to arm.
void tire(Pace& pace) {
  for (int poll = 1; poll < 3; ++poll) expect(pace.found_nothing(), What::pause, milliseconds(1));
  EXPECT_EQ(pace.found_nothing().what, What::arm);
}

TEST(Pace, after_work_it_polls_again_soon) {
  Pace pace(options());
  expect(pace.worked(), What::pause, milliseconds(1));
  expect(pace.worked(), What::pause, milliseconds(1));
}

TEST(Pace, a_few_empty_polls_close_together_then_it_arms) {
  Pace pace(options());
  expect(pace.found_nothing(), What::pause, milliseconds(1));
  expect(pace.found_nothing(), What::pause, milliseconds(1));
  EXPECT_EQ(pace.found_nothing().what, What::arm);
  EXPECT_FALSE(pace.is_armed());
}

TEST(Pace, work_between_empty_polls_starts_the_count_again) {
  Pace pace(options());
  (void)pace.found_nothing();
  (void)pace.found_nothing();
  (void)pace.worked();
  tire(pace);
}

TEST(Pace, armed_it_polls_once_more_at_once_and_then_sleeps) {
  Pace pace(options());
  tire(pace);
  expect(pace.armed(true), What::pause, milliseconds(0));
  EXPECT_TRUE(pace.is_armed());
  expect(pace.found_nothing(), What::sleep, seconds(1));
  EXPECT_TRUE(pace.is_armed());
}

TEST(Pace, an_event_in_the_last_poll_after_arming_disarms) {
  Pace pace(options());
  tire(pace);
  (void)pace.armed(true);
  expect(pace.worked(), What::pause, milliseconds(1));
  EXPECT_FALSE(pace.is_armed());
  tire(pace);
}

TEST(Pace, woken_by_a_commit_it_polls_for_a_while_before_it_arms_again) {
  Pace pace(options());
  tire(pace);
  (void)pace.armed(true);
  (void)pace.found_nothing();
  pace.woken(true);
  EXPECT_FALSE(pace.is_armed());
  tire(pace);
}

TEST(Pace, woken_by_time_one_empty_poll_is_enough_to_arm_again) {
  Pace pace(options());
  tire(pace);
  (void)pace.armed(true);
  (void)pace.found_nothing();
  pace.woken(false);
  EXPECT_FALSE(pace.is_armed());
  EXPECT_EQ(pace.found_nothing().what, What::arm);
}

TEST(Pace, refused_it_doubles_the_pause_up_to_a_short_one_and_tries_each_time) {
  Pace pace(options());
  tire(pace);
  for (const int pause : {2, 4, 8, 16, 20, 20}) {
    expect(pace.armed(false), What::pause, milliseconds(pause));
    EXPECT_FALSE(pace.is_armed());
    EXPECT_EQ(pace.found_nothing().what, What::arm);
  }
  (void)pace.worked();
  tire(pace);
  expect(pace.armed(false), What::pause, milliseconds(2));
}

TEST(Pace, with_arming_off_it_doubles_the_pause_up_to_the_idle_interval) {
  PaceOptions off = options();
  off.arm = false;
  off.idle = milliseconds(10);
  Pace pace(off);
  (void)pace.found_nothing();
  (void)pace.found_nothing();
  for (const int pause : {2, 4, 8, 10, 10})
    expect(pace.found_nothing(), What::pause, milliseconds(pause));
  expect(pace.worked(), What::pause, milliseconds(1));
  expect(pace.found_nothing(), What::pause, milliseconds(1));
}

TEST(Pace, no_pause_is_longer_than_the_idle_interval) {
  PaceOptions impatient = options();
  impatient.idle = milliseconds(5);
  Pace pace(impatient);
  tire(pace);
  for (int refusal = 0; refusal < 6; ++refusal) EXPECT_LE(pace.armed(false).pause, milliseconds(5));
  (void)pace.armed(true);
  expect(pace.found_nothing(), What::sleep, milliseconds(5));
}

TEST(Pace, beside_a_stream_it_sleeps_as_soon_as_all_was_seen) {
  Pace pace(options());
  expect(pace.told(Told::all, 0), What::sleep, seconds(1));
  expect(pace.told(Told::all, 1), What::sleep, seconds(1));
  EXPECT_FALSE(pace.is_armed());
}

TEST(Pace, beside_a_stream_it_polls_again_soon_while_a_commit_is_unseen) {
  Pace pace(options());
  for (const int pause : {100, 200, 400, 800, 1600})
    expect(pace.told(Told::late, 0), What::pause, std::chrono::microseconds(pause));
  for (int i = 0; i < 10; ++i) (void)pace.told(Told::late, 0);
  expect(pace.told(Told::late, 1), What::pause, milliseconds(20));
  (void)pace.told(Told::all, 0);
  expect(pace.told(Told::late, 0), What::pause, std::chrono::microseconds(100));
}

TEST(Pace, beside_a_stream_it_polls_at_once_for_what_came_since) {
  Pace pace(options());
  (void)pace.told(Told::late, 0);
  expect(pace.told(Told::more, 0), What::pause, milliseconds(0));
  expect(pace.told(Told::more, 2), What::pause, milliseconds(0));
  expect(pace.told(Told::late, 0), What::pause, std::chrono::microseconds(100));
}

TEST(Pace, beside_a_stream_a_busy_log_is_read_in_pages) {
  Pace pace(options());
  expect(pace.told(Told::all, 3), What::pause, milliseconds(1));
  expect(pace.told(Told::late, 3), What::pause, milliseconds(1));
  expect(pace.told(Told::all, 2), What::sleep, seconds(1));
}

TEST(Pace, when_the_stream_ends_it_polls_before_it_arms) {
  Pace pace(options());
  tire(pace);
  (void)pace.armed(true);
  (void)pace.told(Told::all, 0);
  EXPECT_FALSE(pace.is_armed());
  pace.woken(false);
  EXPECT_EQ(pace.found_nothing().what, What::arm);
}

}  // namespace
}  // namespace outbox::feed
