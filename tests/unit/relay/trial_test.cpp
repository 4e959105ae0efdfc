// Which events are sent on trial.
#include <gtest/gtest.h>

#include "relay/trial_gate.hpp"

namespace outbox::relay {
namespace {

TEST(Trials, one_death_changes_nothing) {
  TrialGate gate({.deaths = 1, .events = {}}, 100);
  EXPECT_FALSE(gate.tries_stream());
  EXPECT_FALSE(gate.tries_retries());
}

TEST(Trials, after_two_at_one_place_as_many_events_are_tried_as_were_in_the_window) {
  TrialGate gate({.deaths = 2, .events = {}}, 3);
  for (std::int64_t seq = 1; seq <= 3; ++seq) {
    ASSERT_TRUE(gate.tries_stream());
    EXPECT_FALSE(gate.take_culprit(seq));
    EXPECT_FALSE(gate.is_open(seq));
    gate.opened(seq);
    EXPECT_TRUE(gate.is_open(seq));
    gate.sent();
    EXPECT_FALSE(gate.is_open(seq));
  }
  EXPECT_FALSE(gate.tries_stream());
}

TEST(Trials, a_death_on_trial_is_not_enough_and_goes_on_event_by_event) {
  TrialGate gate({.deaths = 0, .events = {{.seq = 7, .deaths = 1, .newest = true}}}, 100);
  EXPECT_TRUE(gate.tries_stream());
  EXPECT_FALSE(gate.take_culprit(7));
}

TEST(Trials, the_second_one_finds_the_culprit_once_and_ends_the_trial_of_the_stream) {
  TrialGate gate({.deaths = 0, .events = {{.seq = 7, .deaths = 2, .newest = true}}}, 100);
  EXPECT_FALSE(gate.take_culprit(6));
  EXPECT_TRUE(gate.tries_stream());
  EXPECT_EQ(gate.take_culprit(7), 2U);
  EXPECT_FALSE(gate.take_culprit(7)) << "it is sent again, on trial";
  EXPECT_FALSE(gate.tries_stream());
  EXPECT_TRUE(gate.tries_retries());
}

TEST(Trials, a_death_of_something_else_is_not_held_against_it) {
  TrialGate gate({.deaths = 2, .events = {{.seq = 7, .deaths = 2, .newest = false}}}, 100);
  EXPECT_FALSE(gate.take_culprit(7));
  EXPECT_TRUE(gate.tries_retries());
}

}  // namespace
}  // namespace outbox::relay
