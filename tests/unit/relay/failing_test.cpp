// Tests events that fail while others succeed, and events that take long.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "event/key.hpp"
#include "unit/relay/core_driver.hpp"

namespace outbox::relay {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Kind = Outcome::Kind;
using std::chrono::milliseconds;

CoreOptions options(bool gapless) {
  SubscriptionSpec spec{.name = "orders", .sink = "custom"};
  spec.retry_jitter = 0;
  CoreOptions options{.gapless = gapless};
  options.parking = ParkingRules{.policy = subscription::RetryPolicy(spec)};
  return options;
}

std::vector<Logged> keys(std::int64_t from, std::int64_t to) {
  std::vector<Logged> events;
  for (std::int64_t seq = from; seq <= to; ++seq)
    events.push_back({seq, "k" + std::to_string(seq)});
  return events;
}

std::vector<std::string> shown(const std::vector<store::ParkedEvent>& events) {
  std::vector<std::string> all;
  for (const auto& event : events)
    all.push_back(std::to_string(event.seq) + " " + to_string(event.state) + " " +
                  std::to_string(event.attempts));
  return all;
}

// ---- whose fault a failure is

TEST(Doubts, a_failure_between_two_acks_is_the_events_own) {
  Neighbours outcomes;
  outcomes.acked();
  const Doubt doubt = outcomes.doubted(false);
  EXPECT_EQ(doubt.fault(), Fault::open);
  outcomes.acked();
  EXPECT_EQ(doubt.fault(), Fault::event);
}

TEST(Doubts, beside_another_failure_it_is_not) {
  Neighbours outcomes;
  const Doubt first = outcomes.doubted(false);
  outcomes.acked();
  EXPECT_EQ(first.fault(), Fault::destination) << "nothing was acked before";
  const Doubt second = outcomes.doubted(false);
  const Doubt third = outcomes.doubted(false);
  outcomes.acked();
  EXPECT_EQ(second.fault(), Fault::destination) << "the next one failed";
  EXPECT_EQ(third.fault(), Fault::destination) << "the one before failed";
}

TEST(Doubts, of_suspects_a_failure_says_nothing_about_others) {
  Neighbours outcomes;
  outcomes.acked();
  const Doubt one = outcomes.doubted(true);
  const Doubt other = outcomes.doubted(true);
  outcomes.acked();
  EXPECT_EQ(one.fault(), Fault::event);
  EXPECT_EQ(other.fault(), Fault::event);
}

// ---- failures at a sink that is not gapless

TEST(FailingGated, one_that_fails_blocks_its_key_only) {
  CoreDriver driver(options(false));
  driver.open();
  driver.pair("0", "1", {{1, "a"}, {2, "b"}, {3, "c"}, {4, "b"}});
  driver.send_all();
  driver.ack(1);
  driver.report(2, Kind::unknown);
  EXPECT_EQ(driver.sink.mode(), Mode::delivering);
  driver.ack(3);
  driver.pair("1", "2", {{5, "d"}, {6, "b"}});
  EXPECT_THAT(driver.send_all(), ElementsAre(5));
  driver.ack(5);
  driver.pass(milliseconds(130));
  EXPECT_THAT(driver.send_all(), ElementsAre(2)) << "alone, after a pause";
  driver.ack(2);
  EXPECT_THAT(driver.send_all(), ElementsAre(4));
  driver.ack(4);
  EXPECT_THAT(driver.send_all(), ElementsAre(6));
  driver.ack(6);
  EXPECT_EQ(driver.sink.openings(), 1U);
  driver.settle();
  EXPECT_THAT(driver.parked, IsEmpty());
  EXPECT_TRUE(driver.core.idle());
}

TEST(FailingGated, one_that_fails_again_and_again_is_parked_with_one_attempt) {
  CoreDriver driver(options(false));
  driver.open();
  driver.pair("0", "1", {{1, "a"}, {2, "bad"}, {3, "bad"}, {4, "b"}, {5, "c"}, {6, "d"}, {7, "e"}});
  driver.send_all();
  driver.ack(1);
  std::int64_t other = 4;
  for (int time = 0; time < 3; ++time) {
    driver.report(2, Kind::retry, "no");
    driver.ack(other++);
    EXPECT_THAT(driver.parked, IsEmpty());
    if (time < 2) {
      EXPECT_THAT(driver.send_all(), IsEmpty());
      driver.pass(milliseconds(300));
      ASSERT_THAT(driver.send_all(), ElementsAre(2));
    }
  }
  EXPECT_THAT(driver.send_all(), IsEmpty());
  driver.ack(other);
  driver.settle();
  EXPECT_THAT(shown(driver.parked), ElementsAre("2 retrying 1", "3 waiting 0"));
  EXPECT_EQ(driver.parked[0].error, "no");
  EXPECT_TRUE(driver.gate.blocked(event::key_hash("order", "bad")));
  EXPECT_EQ(driver.sink.openings(), 1U);
}

TEST(FailingGated, an_outage_with_acks_before_blames_nobody) {
  for (const Kind kind : {Kind::unknown, Kind::retry, Kind::blocked}) {
    CoreDriver driver(options(false));
    driver.open();
    driver.pair("0", "1", keys(1, 60));
    driver.send_all();
    for (std::int64_t seq = 1; seq <= 20; ++seq) driver.ack(seq);
    for (int outage = 0; outage < 6; ++outage) {
      std::vector<std::int64_t> left;
      for (std::int64_t seq = 21; seq <= 60; ++seq) left.push_back(seq);
      if (outage == 0) {
        for (const std::int64_t seq : left) driver.report(seq, kind);
      } else {
        // After a pause the core sends some of the events again, and all of these fail too.
        for (const std::int64_t seq : driver.send_all()) driver.report(seq, kind);
      }
      EXPECT_EQ(driver.sink.mode(), Mode::backing_off);
      driver.pass_pause();
    }
    std::set<std::int64_t> arrived;
    for (int round = 0; round < 40; ++round) {
      for (const std::int64_t seq : driver.send_all()) {
        driver.ack(seq);
        arrived.insert(seq);
      }
      driver.pass(milliseconds(200));
    }
    EXPECT_EQ(arrived.size(), 40U);
    driver.settle();
    EXPECT_THAT(driver.parked, IsEmpty());
    EXPECT_TRUE(driver.core.idle());
  }
}

TEST(FailingGated, when_all_that_was_sent_fails_it_pauses) {
  CoreDriver driver(options(false));
  driver.open();
  driver.pair("0", "1", {{1, "a"}});
  driver.send_all();
  driver.report(1, Kind::retry, "refused");
  EXPECT_EQ(driver.sink.mode(), Mode::backing_off);
  EXPECT_EQ(driver.sink.last_failure().message, "refused");
}

TEST(FailingGated, many_that_fail_in_a_row_pause_it_while_others_are_in_flight) {
  CoreDriver driver(options(false));
  driver.open();
  driver.pair("0", "1", keys(1, 40));
  driver.send_all();
  driver.ack(1);
  for (std::int64_t seq = 2; seq < 18; ++seq) driver.report(seq, Kind::unknown);
  EXPECT_EQ(driver.sink.mode(), Mode::draining);
}

TEST(FailingGated, a_pause_that_the_destination_asks_for_is_for_all) {
  CoreDriver driver(options(false));
  driver.open();
  driver.pair("0", "1", {{1, "a"}, {2, "b"}, {3, "c"}});
  driver.send_all();
  driver.ack(1);
  Outcome later{.kind = Kind::retry};
  later.retry_after = std::chrono::seconds(20);
  driver.report(2, later);
  EXPECT_EQ(driver.sink.mode(), Mode::draining);
  driver.ack(3);
  driver.pass(std::chrono::seconds(19));
  driver.open();
  EXPECT_EQ(driver.sink.mode(), Mode::backing_off);
  driver.pass(std::chrono::seconds(2));
  driver.open();
  EXPECT_THAT(driver.send_all(), ElementsAre(2));
}

TEST(FailingGated, a_stop_sends_what_failed_only_to_fill_a_gap) {
  CoreDriver driver(options(false));
  driver.open();
  driver.pair("0", "1", {{1, "a"}, {2, "b"}, {3, "c"}});
  driver.send_all();
  driver.ack(1);
  driver.report(2, Kind::unknown);
  driver.ack(3);
  driver.stop(true);
  EXPECT_THAT(driver.send_all(), ElementsAre(2));
  driver.ack(2);
  EXPECT_EQ(driver.settle().size(), 1U);
  EXPECT_TRUE(driver.core.finished());
}

// ---- failures at either kind of sink: one event makes others fail with it

class FailingTogether : public ::testing::TestWithParam<bool> {};

INSTANTIATE_TEST_SUITE_P(Failing, FailingTogether, ::testing::Values(true, false),
                         [](const auto& kind) { return kind.param ? "gapless" : "gated"; });

/// When one event fails, the client gives up others with it: if it is gapless, those behind the
/// event, otherwise all that it has.
TEST_P(FailingTogether, the_one_that_makes_the_others_come_back_is_found_and_parked) {
  CoreOptions patient = options(GetParam());
  patient.parking->slow_after = std::chrono::hours(1);
  CoreDriver driver(patient);
  driver.open();
  auto events = keys(1, 30);
  events[4].key = "bad";   // seq 5
  events[11].key = "bad";  // seq 12
  driver.pair("0", "1", events);
  std::vector<std::int64_t> arrived;
  for (int round = 0; round < 400 && driver.parked.empty(); ++round) {
    const std::int64_t next = 100 + round;
    driver.pair(std::to_string(round + 1), std::to_string(round + 2), keys(next, next));
    const auto sent = driver.send_all();
    const auto bad = std::find(sent.begin(), sent.end(), 5);
    for (const std::int64_t seq : sent) {
      const bool fails = bad != sent.end() && std::find(bad, sent.end(), seq) != sent.end();
      // A client that is not gapless fails all of them.
      if (fails || (bad != sent.end() && !GetParam())) {
        driver.report(seq, Kind::unknown, "gone");
      } else {
        driver.ack(seq);
        arrived.push_back(seq);
      }
    }
    driver.pass(milliseconds(60));
    driver.open();
    const auto due = driver.core.settle(driver.now);
    if (!due.empty()) driver.core.settled();
    driver.parked.insert(driver.parked.end(), due.parked.begin(), due.parked.end());
  }
  EXPECT_GE(arrived.size(), 28U);
  EXPECT_THAT(arrived, Contains(30));
  EXPECT_THAT(arrived, Not(Contains(12)));
  ASSERT_THAT(driver.parked, Not(IsEmpty()));
  EXPECT_THAT(shown(driver.parked), ElementsAre("5 retrying 1", "12 waiting 0"));
  EXPECT_EQ(driver.parked[0].error, "gone");
}

// ---- events that take long

class Slow : public ::testing::Test {
 protected:
  Slow() { driver.open(); }
  /// Sends and acks so many other events.
  void traffic(int events) {
    std::vector<Logged> more;
    for (int i = 0; i < events; ++i, ++seq_) more.push_back({seq_, "t" + std::to_string(seq_)});
    const std::string s1 = std::to_string(pair_);
    driver.pair(s1, std::to_string(++pair_), more);
    const auto sent = driver.send_all();
    driver.ack_all(sent);
  }
  void begin(const std::vector<Logged>& events) {
    driver.pair("0", "1", events);
    driver.send_all();
  }

  CoreDriver driver{options(false), drained_at("0"), Window::Limits{.events = 1000}};
  std::int64_t seq_{100};
  int pair_{1};
};

TEST_F(Slow, after_a_second_it_is_set_aside_and_its_key_waits_behind_it) {
  begin({{1, "slow"}, {2, "b"}, {3, "slow"}});
  driver.ack(2);
  driver.pass(milliseconds(900));
  traffic(5);
  driver.pass(milliseconds(110));
  traffic(5);
  EXPECT_THAT(driver.parked, IsEmpty());
  EXPECT_EQ(driver.core.slow(), 0U) << "nothing was acked since the second had passed";
  driver.pass(milliseconds(110));
  traffic(5);
  EXPECT_EQ(driver.core.slow(), 1U);
  driver.settle();
  EXPECT_THAT(shown(driver.parked), ElementsAre("1 retrying 0", "3 waiting 0"));
  EXPECT_THAT(driver.parked[0].error, HasSubstr("no outcome for 1120 ms"));
  EXPECT_EQ(driver.parked[0].due_in, milliseconds(0));
  EXPECT_TRUE(driver.core.idle()) << "the cursor has passed it";
  EXPECT_EQ(driver.sink.in_flight(), 1U) << "its send still runs";
}

TEST_F(Slow, its_outcome_is_taken_once_its_row_is_written) {
  begin({{1, "slow"}});
  driver.pass(milliseconds(1100));
  traffic(1);
  driver.pass(milliseconds(110));
  traffic(2);
  driver.pass(milliseconds(110));
  traffic(2);
  ASSERT_EQ(driver.core.slow(), 1U);
  driver.ack(1);
  EXPECT_EQ(driver.sink.in_flight(), 0U);
  EXPECT_THAT(driver.gate.late.take_ended(), IsEmpty());
  EXPECT_THAT(driver.core.unsettled_acks(), Contains(ref_of(1)))
      << "if the store is lost now, it is not sent again";
  driver.settle();
  const auto ended = driver.gate.late.take_ended();
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended[0].seq, 1);
  EXPECT_THAT(driver.core.unsettled_acks(), IsEmpty());
}

TEST_F(Slow, half_of_the_window_behind_it_is_enough) {
  begin({{1, "slow"}});
  traffic(400);
  EXPECT_EQ(driver.core.slow(), 0U);
  driver.pass(milliseconds(110));
  traffic(150);
  driver.pass(milliseconds(110));
  traffic(1);
  EXPECT_EQ(driver.core.slow(), 1U);
}

TEST_F(Slow, while_nothing_is_acked_nobody_is_slow) {
  begin(keys(1, 3));
  driver.ack(2);
  for (int i = 0; i < 50; ++i) {
    driver.pass(milliseconds(200));
    driver.send_all();
  }
  EXPECT_EQ(driver.core.slow(), 0U);
  EXPECT_EQ(driver.sink.mode(), Mode::delivering);
}

TEST_F(Slow, too_many_at_once_are_the_destinations_fault) {
  begin(keys(1, 5));
  for (int i = 0; i < 12 && driver.sink.mode() == Mode::delivering; ++i) {
    driver.pass(milliseconds(110));
    traffic(6);
  }
  EXPECT_EQ(driver.sink.mode(), Mode::draining);
  EXPECT_THAT(driver.sink.last_failure().message, HasSubstr("takes long for 5 keys at once"));
  EXPECT_EQ(driver.core.slow(), 0U);
  driver.settle();
  EXPECT_THAT(driver.parked, IsEmpty());
}

TEST_F(Slow, those_set_aside_count_until_their_outcome) {
  begin(keys(1, 4));
  for (int i = 0; i < 14; ++i) {
    driver.pass(milliseconds(110));
    traffic(6);
  }
  ASSERT_EQ(driver.core.slow(), 4U);
  driver.settle();
  std::vector<Logged> fifth{{90000, "fifth"}};
  driver.pair(std::to_string(pair_), std::to_string(pair_ + 1), fifth);
  ++pair_;
  driver.send_all();
  seq_ = 90001;
  for (int i = 0; i < 14 && driver.sink.mode() == Mode::delivering; ++i) {
    driver.pass(milliseconds(110));
    traffic(6);
  }
  EXPECT_EQ(driver.sink.mode(), Mode::draining);
}

TEST(SlowGapless, behind_a_slow_one_everything_waits) {
  CoreDriver driver(options(true));
  driver.open();
  driver.pair("0", "1", {{1, "a"}, {2, "b"}, {3, "c"}});
  driver.send_all();
  for (const std::int64_t seq : {2, 3}) {
    driver.pass(std::chrono::seconds(2));
    driver.send_all();
    driver.ack(seq);
  }
  driver.pass(std::chrono::seconds(2));
  driver.send_all();
  EXPECT_EQ(driver.core.slow(), 0U);
  EXPECT_THAT(driver.settle(), IsEmpty());
}

// ---- a replay

TEST(Replayed, what_is_slow_stays_in_its_place) {
  CoreOptions replay = options(false);
  replay.parking->watches_slow = false;
  CoreDriver driver(replay);
  driver.open();
  driver.pair("0", "1", {{1, "a"}, {2, "b"}, {3, "c"}, {4, "d"}});
  driver.send_all();
  driver.ack(2);
  driver.ack(3);
  driver.ack(4);
  driver.pass(std::chrono::seconds(2));
  driver.send_all();
  EXPECT_EQ(driver.core.slow(), 0U);
  EXPECT_THAT(driver.settle(), IsEmpty());
  EXPECT_THAT(driver.parked, IsEmpty());
}

}  // namespace
}  // namespace outbox::relay
