// Tests what the stream of events parks.
#include "unit/relay/parking.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "event/key.hpp"
#include "unit/relay/core_driver.hpp"

namespace outbox::relay {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Kind = Outcome::Kind;
using std::chrono::milliseconds;

class ParkingStream : public ::testing::TestWithParam<bool> {
 protected:
  [[nodiscard]] static bool is_gapless() { return GetParam(); }
  [[nodiscard]] static CoreOptions options(ParkingRules parking) {
    CoreOptions options{.gapless = is_gapless()};
    options.row.subscription = 4;
    options.row.generation = 9;
    options.parking = std::move(parking);
    return options;
  }
  static CoreDriver opened(ParkingRules parking = rules()) {
    CoreDriver driver(options(std::move(parking)));
    driver.open();
    return driver;
  }
  /// After a rejection a gapless sink has stopped itself: the events behind come back unsent, and
  /// the sink is opened again without a pause.
  static void reopen(CoreDriver& driver, const std::vector<std::int64_t>& behind) {
    if (!is_gapless()) return;
    for (const std::int64_t seq : behind) driver.report(seq, Kind::retry);
    ASSERT_EQ(driver.sink.mode(), Mode::reopening);
    driver.open();
  }
};

INSTANTIATE_TEST_SUITE_P(Parking, ParkingStream, ::testing::Values(true, false),
                         [](const auto& kind) { return kind.param ? "gapless" : "gated"; });

TEST_P(ParkingStream, a_settlement_parks_no_more_than_its_share_and_the_rest_follows) {
  auto few = rules();
  few.max_at_once = 2;
  auto driver = opened(few);
  driver.pair("0", "1", {{1, "a"}, {2, "a"}, {3, "a"}, {4, "b"}, {5, "a"}, {6, "c"}});
  (void)driver.send_all();
  driver.report(1, Kind::rejected, "too big");
  reopen(driver, {2, 3, 4, 5, 6});
  (void)driver.send_all();
  driver.ack(4);
  driver.ack(6);
  (void)driver.send_all();
  std::int64_t position = 0;
  std::vector<std::size_t> parked;
  while (!driver.core.idle()) {
    const std::size_t before = driver.parked.size();
    const auto rows = driver.settle();
    ASSERT_EQ(rows.size(), 1U);
    EXPECT_EQ(rows[0].from_position, position);
    position = rows[0].position.value_or(0);
    parked.push_back(driver.parked.size() - before);
  }
  EXPECT_THAT(parked, ElementsAre(2, 2, 0));
  EXPECT_THAT(shown(driver.parked),
              ElementsAre("1 retrying 1", "2 waiting 0", "3 waiting 0", "5 waiting 0"));
}

TEST_P(ParkingStream, a_rejected_event_is_parked_its_key_waits_behind_it_and_the_others_go_on) {
  auto driver = opened();
  driver.pair("0", "1", {{1, "a"}, {2, "b"}, {3, "b"}, {4, "c"}, {5, "b"}});
  const auto sent = driver.send_all();
  driver.ack(1);
  driver.report(2, Kind::rejected, "too big");
  if (is_gapless()) {
    reopen(driver, {3, 4, 5});
    EXPECT_THAT(driver.send_all(), ElementsAre(4));
  }
  driver.ack(4);
  EXPECT_THAT(driver.send_all(), IsEmpty());
  const auto rows = driver.settle();
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].acked.count, 2);
  EXPECT_EQ(rows[0].parked.count, 3);
  EXPECT_EQ(rows[0].parked.hash,
            event::id_hash(id_of(2)) + event::id_hash(id_of(3)) + event::id_hash(id_of(5)));
  EXPECT_EQ(rows[0].end(), drained_at("1")) << "the cursor passes them";
  EXPECT_THAT(shown(driver.parked), ElementsAre("2 retrying 1", "3 waiting 0", "5 waiting 0"));
  EXPECT_EQ(driver.parked[0].subscription, 4);
  EXPECT_EQ(driver.parked[0].generation, 9);
  EXPECT_EQ(driver.parked[0].due_in, milliseconds(1000));
  EXPECT_EQ(driver.parked[0].error, "too big");
  EXPECT_TRUE(driver.core.idle());
}

TEST_P(ParkingStream, nothing_is_parked_before_another_event_was_acked_or_nothing_else_is_left) {
  auto driver = opened();
  driver.pair("0", "1", {{1, "a"}, {2, "b"}});
  driver.send_all();
  driver.report(1, Kind::rejected);
  reopen(driver, {2});
  if (is_gapless()) {
    EXPECT_THAT(driver.send_all(), ElementsAre(2));
  }
  EXPECT_THAT(driver.settle(), IsEmpty());
  driver.ack(2);
  driver.send_all();
  EXPECT_EQ(driver.settle().size(), 1U);
  EXPECT_THAT(shown(driver.parked), ElementsAre("1 retrying 1"));

  driver.pair("1", "2", {{3, "c"}});
  EXPECT_THAT(driver.send_all(), ElementsAre(3));
  driver.report(3, Kind::rejected);
  reopen(driver, {});
  EXPECT_THAT(driver.send_all(), IsEmpty());
  EXPECT_EQ(driver.settle().size(), 1U);
  EXPECT_THAT(shown(driver.parked), ElementsAre("1 retrying 1", "3 retrying 1"));
}

TEST_P(ParkingStream, later_pages_are_parked_behind_until_the_key_is_free_again) {
  auto driver = opened();
  driver.gate.found(event::key_hash("order", "b"));
  driver.pair("0", "1", {{1, "a"}, {2, "b"}, {3, ""}});
  EXPECT_THAT(driver.send_all(), ElementsAre(1, 3));
  driver.ack_all({1, 3});
  driver.settle();
  EXPECT_THAT(shown(driver.parked), ElementsAre("2 waiting 0"));
  EXPECT_TRUE(driver.gate.blocked(event::key_hash("order", "b")));
  driver.gate.released(event::key_hash("order", "b"));
  driver.pair("1", "2", {{4, "b"}});
  EXPECT_THAT(driver.send_all(), ElementsAre(4));
}

TEST_P(ParkingStream, with_one_attempt_the_event_is_dead_and_its_key_goes_on_once_that_is_written) {
  auto driver = opened(rules(1));
  driver.pair("0", "1", {{1, "a"}, {2, "b"}, {3, "a"}});
  driver.send_all();
  driver.report(1, Kind::rejected);
  if (is_gapless()) {
    reopen(driver, {2, 3});
    EXPECT_THAT(driver.send_all(), ElementsAre(2));
  }
  driver.ack(2);
  EXPECT_THAT(driver.send_all(), IsEmpty());
  EXPECT_EQ(driver.gate.live(), 1U);
  driver.settle();
  EXPECT_THAT(shown(driver.parked), ElementsAre("1 dead 1", "3 waiting 0"));
  EXPECT_EQ(driver.gate.live(), 1U);
  EXPECT_TRUE(driver.gate.blocked(event::key_hash("order", "a")))
      << "the store says when it is free";
}

TEST_P(ParkingStream, a_destination_that_rejects_everything_is_at_fault_and_nothing_is_parked) {
  auto driver = opened();
  std::vector<Logged> events;
  for (std::int64_t seq = 1; seq <= 40; ++seq) events.push_back({seq, "k" + std::to_string(seq)});
  driver.pair("0", "1", events);
  int rejected = 0;
  for (int round = 0; round < 100 && driver.sink.mode() != Mode::backing_off; ++round) {
    const auto sent = driver.send_all();
    for (const std::int64_t seq : sent) {
      const bool first = !is_gapless() || seq == sent.front();
      driver.report(seq, first ? Kind::rejected : Kind::retry, "no");
      rejected += first ? 1 : 0;
    }
    driver.open();
  }
  EXPECT_EQ(driver.sink.mode(), Mode::backing_off);
  EXPECT_EQ(rejected, is_gapless() ? 16 : 40);
  EXPECT_THAT(driver.sink.last_failure().message, ::testing::HasSubstr("rejected 16 events"));
  EXPECT_THAT(driver.settle(), IsEmpty());
  EXPECT_THAT(driver.parked, IsEmpty());

  driver.pass_pause();
  const auto again = driver.send_all();
  EXPECT_EQ(again.size(), 40U) << "all of them go again";
  driver.ack_all(again);
  EXPECT_EQ(driver.settle().size(), 1U);
  EXPECT_TRUE(driver.gate.empty());
}

TEST_P(ParkingStream, beyond_max_waiting_the_stream_pauses) {
  ParkingRules few = rules();
  few.max_waiting = 2;
  auto driver = opened(few);
  driver.gate.replace_stored({.keys = {{.key = event::key_hash("order", "x")}}, .live = 2});
  driver.pair("0", "1", {{1, "a"}});
  EXPECT_THAT(driver.send_all(), IsEmpty());
  driver.gate.left();
  EXPECT_THAT(driver.send_all(), ElementsAre(1));
}

/// Otherwise the parked events behind it could never be written, and nothing would make room.
TEST_P(ParkingStream, beyond_max_waiting_what_stands_before_parked_events_is_sent) {
  ParkingRules few = rules();
  few.max_waiting = 2;
  auto driver = opened(few);
  driver.gate.found(event::key_hash("order", "b"));
  driver.pair("0", "1", {{1, "a"}, {2, "b"}, {3, "b"}, {4, "c"}});
  EXPECT_THAT(driver.send_all(), ElementsAre(1));
  EXPECT_EQ(driver.gate.live(), 2U);
  driver.report(1, Kind::blocked);  // Event 1 will be sent again.
  driver.pass_pause();
  EXPECT_THAT(driver.send_all(), ElementsAre(1)) << "and not 4";
  driver.ack(1);
  driver.settle();
  EXPECT_THAT(shown(driver.parked), ElementsAre("2 waiting 0", "3 waiting 0"));
  EXPECT_THAT(driver.send_all(), IsEmpty());
  driver.gate.left();
  EXPECT_THAT(driver.send_all(), ElementsAre(4));
}

TEST_P(ParkingStream, beyond_max_waiting_a_stop_fills_gaps_all_the_same) {
  ParkingRules few = rules();
  few.max_waiting = 2;
  auto driver = opened(few);
  driver.pair("0", "1", {{1, "a"}, {2, "b"}, {3, "c"}});
  EXPECT_THAT(driver.send_all(), ElementsAre(1, 2, 3));
  driver.report(1, Kind::retry);
  driver.ack(2);
  driver.report(3, Kind::retry);
  driver.gate.replace_stored({.keys = {{.key = event::key_hash("order", "x")}}, .live = 2});
  driver.stop(true);
  if (is_gapless()) {
    EXPECT_THAT(driver.send_all(), IsEmpty()) << "the sink has stopped itself";
  } else {
    EXPECT_THAT(driver.send_all(), ElementsAre(1)) << "2 is settled only after it";
    driver.ack(1);
  }
  (void)driver.settle();
  EXPECT_TRUE(driver.core.finished());
}

TEST_P(ParkingStream, a_stop_parks_what_is_held_so_that_everything_behind_it_is_settled) {
  auto driver = opened();
  driver.pair("0", "1", {{1, "a"}, {2, "b"}, {3, "c"}});
  driver.send_all();
  driver.report(1, Kind::rejected);
  driver.stop(true);
  driver.report(2, is_gapless() ? Kind::retry : Kind::acked);
  driver.report(3, is_gapless() ? Kind::retry : Kind::rejected);
  const auto rows = driver.settle();
  ASSERT_FALSE(rows.empty());
  EXPECT_TRUE(driver.core.finished());
  EXPECT_EQ(driver.parked.size(), is_gapless() ? 1U : 2U);
}

TEST_P(ParkingStream, events_without_a_key_block_nothing) {
  auto driver = opened();
  driver.pair("0", "1", {{1, ""}, {2, ""}});
  driver.send_all();
  driver.report(1, Kind::rejected);
  reopen(driver, {2});
  if (is_gapless()) {
    EXPECT_THAT(driver.send_all(), ElementsAre(2));
  }
  driver.ack(2);
  driver.send_all();
  driver.settle();
  EXPECT_THAT(shown(driver.parked), ElementsAre("1 retrying 1"));
  driver.pair("1", "2", {{3, ""}});
  EXPECT_THAT(driver.send_all(), ElementsAre(3));
}

// ---- events that the sink refuses by itself

Outcome refused(std::string why = "an illegal name") {
  Outcome outcome{.kind = Kind::rejected, .unsent = true};
  outcome.error.message = std::move(why);
  return outcome;
}

/// Keeps these events back, as Offering does for a gapless sink. To any other sink the core hands
/// only the first event of a key, so that there is nothing to keep back.
void keep_back(CoreDriver& driver, const std::vector<std::int64_t>& seqs, bool gapless) {
  if (!gapless) return;
  for (const std::int64_t seq : seqs) driver.core.kept_back(driver.tokens.at(seq), driver.now);
}

TEST_P(ParkingStream, a_refused_event_is_parked_at_once_and_stops_only_its_key) {
  auto driver = opened();
  driver.pair("0", "1", {{1, "b"}, {2, "b"}, {3, "c"}, {4, "b"}});
  driver.send_all();
  keep_back(driver, {2, 4}, is_gapless());
  driver.report(1, refused());
  EXPECT_EQ(driver.sink.mode(), Mode::delivering) << "nothing is waited for";
  EXPECT_THAT(driver.send_all(), IsEmpty());
  ASSERT_EQ(driver.settle().size(), 1U) << "while another one is in flight";
  EXPECT_THAT(shown(driver.parked), ElementsAre("1 retrying 1", "2 waiting 0"));
  EXPECT_EQ(driver.parked[0].error, "an illegal name");
  driver.pair("1", "2", {{5, "d"}, {6, "b"}});
  EXPECT_THAT(driver.send_all(), ElementsAre(5));
  driver.ack_all({3, 5});
  driver.settle();
  EXPECT_THAT(shown(driver.parked),
              ElementsAre("1 retrying 1", "2 waiting 0", "4 waiting 0", "6 waiting 0"));
  EXPECT_TRUE(driver.core.idle());
}

TEST_P(ParkingStream, however_many_are_refused_the_destination_is_not_suspected) {
  auto driver = opened();
  std::vector<Logged> events;
  for (std::int64_t seq = 1; seq <= 40; ++seq) events.push_back({seq, "k" + std::to_string(seq)});
  driver.pair("0", "1", events);
  for (const std::int64_t seq : driver.send_all()) driver.report(seq, refused());
  EXPECT_EQ(driver.sink.mode(), Mode::delivering);
  EXPECT_EQ(driver.sink.suspicions(), 0U);
  EXPECT_EQ(driver.sink.openings(), 1U) << "the sink is not opened again";
  driver.settle();
  EXPECT_EQ(driver.parked.size(), 40U);
}

TEST_P(ParkingStream, refused_events_between_rejected_ones_do_not_clear_the_destination) {
  auto driver = opened();
  std::vector<Logged> events;
  for (std::int64_t seq = 1; seq <= 40; ++seq) events.push_back({seq, "k" + std::to_string(seq)});
  driver.pair("0", "1", events);
  int rejected = 0;
  for (int round = 0; round < 100 && driver.sink.mode() != Mode::backing_off; ++round) {
    bool stopped = false;
    for (const std::int64_t seq : driver.send_all()) {
      if (seq % 2 == 0) {
        driver.report(seq, refused());
      } else {
        driver.report(seq, stopped ? Kind::retry : Kind::rejected, "no");
        rejected += stopped ? 0 : 1;
        stopped = is_gapless();
      }
    }
    driver.open();
  }
  EXPECT_EQ(driver.sink.mode(), Mode::backing_off);
  EXPECT_EQ(rejected, is_gapless() ? 16 : 20);
  driver.settle();
  EXPECT_THAT(driver.parked, IsEmpty()) << "the cursor does not pass what is held";
}

TEST_P(ParkingStream, at_a_stop_a_refused_event_is_parked) {
  auto driver = opened();
  driver.pair("0", "1", {{1, "a"}, {2, "b"}});
  driver.send_all();
  driver.stop(true);
  driver.report(1, refused());
  driver.ack(2);
  driver.settle();
  EXPECT_THAT(shown(driver.parked), ElementsAre("1 retrying 1"));
  EXPECT_TRUE(driver.core.finished());
}

TEST(GaplessStream, an_event_in_flight_before_a_refused_one_of_its_key_may_be_sent_again) {
  CoreOptions options{.gapless = true};
  options.parking = rules();
  CoreDriver driver(options);
  driver.open();
  driver.pair("0", "1", {{1, "b"}, {2, "b"}, {3, "b"}, {4, "c"}});
  driver.send_all();
  keep_back(driver, {3}, true);
  driver.report(2, refused());
  driver.report(1, Kind::retry);
  driver.report(4, Kind::retry);
  EXPECT_EQ(driver.sink.mode(), Mode::backing_off);
  driver.pass_pause();
  EXPECT_THAT(driver.send_all(), ElementsAre(1, 4)) << "it precedes what is parked";
  EXPECT_THAT(driver.settle(), IsEmpty());
  driver.ack_all({1, 4});
  driver.settle();
  EXPECT_THAT(shown(driver.parked), ElementsAre("2 retrying 1", "3 waiting 0"));
}

TEST(GaplessStream, a_refused_event_waits_behind_an_earlier_one_of_its_key_that_is_parked) {
  CoreOptions options{.gapless = true};
  options.parking = rules();
  CoreDriver driver(options);
  driver.open();
  driver.pair("0", "1", {{1, "b"}, {2, "b"}, {3, "b"}, {4, "c"}});
  driver.send_all();
  keep_back(driver, {3}, true);
  driver.report(2, refused());
  driver.report(1, Kind::rejected, "too large");
  driver.report(4, Kind::retry);
  driver.open();
  EXPECT_THAT(driver.send_all(), ElementsAre(4));
  driver.ack(4);
  driver.send_all();
  driver.settle();
  EXPECT_THAT(shown(driver.parked), ElementsAre("1 retrying 1", "2 waiting 0", "3 waiting 0"));
  EXPECT_EQ(driver.parked[1].error, "") << "it was not tried in its place";
  EXPECT_EQ(driver.parked[1].due_in, milliseconds(0));
}

TEST(GaplessStream, that_stops_at_a_rejected_event_stops_at_a_refused_one) {
  CoreDriver driver(CoreOptions{.gapless = true});
  driver.open();
  driver.pair("0", "1", {{1, "a"}, {2, "b"}});
  driver.send_all();
  driver.report(2, refused());
  driver.ack(1);
  EXPECT_EQ(driver.sink.mode(), Mode::rejected);
  ASSERT_TRUE(driver.sink.rejection());
  EXPECT_EQ(driver.sink.rejection()->seq, 2);
}

// ---- outcomes that concern one event only

TEST_P(ParkingStream, what_is_postponed_is_set_aside_at_once_with_no_attempt_counted) {
  auto driver = opened();
  driver.pair("0", "1", {{1, "a"}, {2, "a"}, {3, "b"}});
  driver.send_all();
  Outcome later{.kind = Kind::postponed, .retry_after = std::chrono::microseconds(2500)};
  later.error.message = "not yet";
  driver.report(1, later);
  reopen(driver, {2, 3});
  EXPECT_EQ(driver.sink.failures(), 0);
  if (is_gapless()) {
    EXPECT_THAT(driver.send_all(), ElementsAre(3));
  }
  driver.ack(3);
  (void)driver.settle();
  EXPECT_THAT(shown(driver.parked), ElementsAre("1 retrying 0", "2 waiting 0"));
  EXPECT_EQ(driver.parked[0].due_in, milliseconds(3)) << "rounded up";
  EXPECT_EQ(driver.parked[0].error, "not yet");
}

TEST_P(ParkingStream, one_that_cannot_succeed_is_dead_at_once) {
  auto driver = opened();
  driver.pair("0", "1", {{1, "a"}});
  driver.send_all();
  driver.report(1, {.kind = Kind::rejected, .error = {}, .final = true});
  (void)driver.settle();
  EXPECT_THAT(shown(driver.parked), ElementsAre("1 dead 1"));
}

TEST_P(ParkingStream, a_rejection_may_say_when_to_try_again) {
  auto driver = opened();
  driver.pair("0", "1", {{1, "a"}});
  driver.send_all();
  driver.report(1, {.kind = Kind::rejected, .error = {}, .retry_after = std::chrono::minutes(7)});
  reopen(driver, {});
  driver.send_all();
  (void)driver.settle();
  ASSERT_THAT(shown(driver.parked), ElementsAre("1 retrying 1"));
  EXPECT_EQ(driver.parked[0].due_in, std::chrono::minutes(7));
}

class IndependentSink : public ::testing::Test {
 protected:
  IndependentSink() : driver_(options()) { driver_.open(); }
  static CoreOptions options() {
    CoreOptions options{.gapless = false, .independent = true};
    options.parking = rules();
    return options;
  }
  CoreDriver driver_;
};

TEST_F(IndependentSink, is_not_suspected_however_many_are_rejected) {
  std::vector<Logged> events;
  for (int i = 1; i <= 40; ++i) events.push_back({i, "k" + std::to_string(i)});
  driver_.pair("0", "1", events);
  driver_.send_all();
  for (int i = 1; i <= 39; ++i) driver_.report(i, Kind::rejected);
  EXPECT_EQ(driver_.sink.mode(), Mode::delivering);
  driver_.ack(40);
  (void)driver_.settle();
  EXPECT_EQ(driver_.parked.size(), 39U);
}

TEST_F(IndependentSink, all_that_run_for_a_second_are_set_aside_though_nothing_else_ends) {
  std::vector<Logged> events;
  for (int i = 1; i <= 20; ++i) events.push_back({i, "k" + std::to_string(i)});
  driver_.pair("0", "1", events);
  driver_.send_all();
  driver_.pass(milliseconds(900));
  driver_.send_all();
  (void)driver_.core.settle(driver_.now);
  EXPECT_TRUE(driver_.parked.empty());
  driver_.pass(milliseconds(200));
  driver_.send_all();
  (void)driver_.settle();
  EXPECT_EQ(driver_.parked.size(), 20U);
  EXPECT_EQ(driver_.sink.mode(), Mode::delivering);
}

}  // namespace
}  // namespace outbox::relay
