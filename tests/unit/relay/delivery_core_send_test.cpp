// Tests what the delivery core sends, and when: order, gate, failures, rejections and stops.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/relay/core_driver.hpp"

namespace outbox::relay {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using Kind = Outcome::Kind;
using std::chrono::milliseconds;
using std::chrono::seconds;

CoreOptions gapless() { return {.gapless = true}; }
CoreOptions gated() { return {.gapless = false}; }

CoreDriver opened_to_send(CoreOptions options) {
  CoreDriver driver(options);
  driver.open();
  return driver;
}

// ---- for both kinds of sink

class AnySink : public ::testing::TestWithParam<bool> {
 protected:
  [[nodiscard]] CoreOptions options() const { return {.gapless = GetParam()}; }
};

INSTANTIATE_TEST_SUITE_P(DeliveryCore, AnySink, ::testing::Values(true, false),
                         [](const auto& kind) { return kind.param ? "gapless" : "gated"; });

TEST_P(AnySink, nothing_is_sent_before_the_sink_is_open) {
  CoreDriver driver(options());
  driver.pair("0", "1", {{1, "a"}});
  EXPECT_THAT(driver.send_all(), IsEmpty());
  EXPECT_TRUE(driver.sink.wants_open(driver.now));
  driver.open();
  EXPECT_FALSE(driver.sink.wants_open(driver.now));
  EXPECT_THAT(driver.send_all(), ElementsAre(1));
}

TEST_P(AnySink, events_of_different_keys_go_in_the_order_of_the_log) {
  auto driver = opened_to_send(options());
  driver.page({.s1 = "0", .s2 = "1", .bound = 9}, 0, {{3, "a"}, {5, "b"}}, false);
  driver.page({.s1 = "0", .s2 = "1", .bound = 9}, 5, {{6, "c"}, {9, ""}}, true);
  EXPECT_THAT(driver.send_all(), ElementsAre(3, 5, 6, 9));
}

TEST_P(AnySink, an_event_is_sent_once) {
  auto driver = opened_to_send(options());
  driver.pair("0", "1", {{1, "a"}, {2, "b"}});
  EXPECT_THAT(driver.send_all(), ElementsAre(1, 2));
  EXPECT_THAT(driver.send_all(), IsEmpty());
  driver.ack_all({1, 2});
  EXPECT_THAT(driver.send_all(), IsEmpty());
}

TEST_P(AnySink, a_batch_and_what_is_in_flight_are_bounded) {
  CoreOptions bounded = options();
  bounded.max_batch = 2;
  bounded.max_in_flight = 3;
  auto driver = opened_to_send(bounded);
  driver.pair("0", "1", {{1, "a"}, {2, "b"}, {3, "c"}, {4, "d"}, {5, "e"}});
  EXPECT_THAT(driver.send(99), ElementsAre(1, 2));
  EXPECT_THAT(driver.send(99), ElementsAre(3));
  EXPECT_THAT(driver.send(99), IsEmpty());
  EXPECT_EQ(driver.sink.in_flight(), 3U);
  driver.ack(2);
  EXPECT_THAT(driver.send(99), ElementsAre(4));
}

TEST_P(AnySink, what_the_sink_did_not_take_is_offered_again) {
  auto driver = opened_to_send(options());
  driver.pair("0", "1", {{1, "a"}, {2, "b"}, {3, "c"}});
  EXPECT_THAT(driver.send(1), ElementsAre(1));
  EXPECT_THAT(driver.send(0), IsEmpty());
  EXPECT_THAT(driver.send(99), ElementsAre(2, 3));
}

TEST_P(AnySink, what_does_not_match_is_not_sent) {
  auto driver = opened_to_send(options());
  driver.pair("0", "1", {{1, "a", false}, {2, "a"}, {3, "b", false}, {4, "b"}});
  EXPECT_THAT(driver.send_all(), ElementsAre(2, 4));
}

TEST_P(AnySink, an_outcome_that_comes_twice_changes_nothing) {
  auto driver = opened_to_send(options());
  driver.pair("0", "1", {{1, "a"}, {2, "b"}, {3, "c"}});
  driver.send_all();
  driver.ack(1);
  driver.ack(1);
  driver.report(1, Kind::retry);
  EXPECT_EQ(driver.sink.in_flight(), 2U);
  EXPECT_EQ(driver.sink.mode(), Mode::delivering);
  EXPECT_EQ(driver.core.acked(), 1U);
  driver.ack_all({2, 3});
  driver.ack(2);  // Event 2 is no longer in the window.
  EXPECT_EQ(driver.sink.in_flight(), 0U);
  EXPECT_EQ(driver.core.acked(), 3U);
}

TEST_P(AnySink, an_outcome_of_something_never_sent_changes_nothing) {
  auto driver = opened_to_send(options());
  driver.pair("0", "1", {{1, "a"}, {2, "b"}});
  EXPECT_THAT(driver.send(1), ElementsAre(1));
  Outcome invented;
  invented.kind = Kind::acked;
  for (const Token token : {Token{0}, driver.tokens.at(1) + 1, driver.tokens.at(1) + 1000}) {
    invented.token = token;
    driver.core.outcome(invented, driver.now);
  }
  EXPECT_EQ(driver.sink.in_flight(), 1U);
  EXPECT_EQ(driver.core.acked(), 0U);
  EXPECT_THAT(driver.send_all(), ElementsAre(2));
}

TEST_P(AnySink, after_a_failure_nothing_goes_until_everything_in_flight_is_known) {
  for (const Kind kind : {Kind::unknown, Kind::retry, Kind::blocked}) {
    CoreOptions bounded = options();
    bounded.max_in_flight = 3;
    auto driver = opened_to_send(bounded);
    driver.pair("0", "1", {{1, "a"}, {2, "b"}, {3, "c"}, {4, "d"}});
    driver.send_all();
    driver.report(2, kind, "no");
    EXPECT_EQ(driver.sink.mode(), Mode::draining);
    EXPECT_THAT(driver.send_all(), IsEmpty());
    driver.ack(1);
    EXPECT_THAT(driver.send_all(), IsEmpty());
    EXPECT_FALSE(driver.sink.wants_open(driver.now + std::chrono::hours(1)));
    driver.ack(3);
    EXPECT_EQ(driver.sink.mode(), Mode::backing_off);
    EXPECT_EQ(driver.sink.last_failure().message, "no");
    EXPECT_THAT(driver.send_all(), IsEmpty());
    driver.pass_pause();
    EXPECT_EQ(driver.sink.mode(), Mode::delivering);
    EXPECT_THAT(driver.send_all(), ElementsAre(2, 4)) << to_string(kind);
  }
}

TEST_P(AnySink, after_a_failure_it_goes_on_from_the_earliest_that_was_not_acked) {
  auto driver = opened_to_send(options());
  driver.pair("0", "1", {{1, "a"}, {2, "b"}, {3, "c"}, {4, "d"}, {5, "e"}});
  driver.send_all();
  driver.ack(4);  // Outcomes may come in any order.
  driver.report(3, Kind::unknown);
  driver.report(5, Kind::retry);
  driver.report(1, Kind::retry);
  driver.ack(2);
  driver.pass_pause();
  EXPECT_THAT(driver.send_all(), ElementsAre(1, 3, 5));
  driver.ack_all({1, 3, 5});
  EXPECT_EQ(driver.settle().size(), 1U);
  EXPECT_TRUE(driver.core.idle());
}

TEST_P(AnySink, the_pause_grows_with_each_failure_and_starts_again_after_a_success) {
  CoreDriver driver(options(), drained_at("0"), {},
                    {.first = milliseconds(100), .longest = seconds(1)});
  driver.open();
  driver.pair("0", "1", {{1, "a"}, {2, "a"}});
  const auto failing_pause = [&driver](std::int64_t seq) {
    driver.report(seq, Kind::retry);
    return *driver.sink.pause_until() - driver.now;
  };
  driver.send(1);
  const auto first = failing_pause(1);
  driver.pass_pause();
  driver.send(1);
  const auto second = failing_pause(1);
  driver.pass_pause();
  driver.send(1);
  const auto third = failing_pause(1);
  EXPECT_GE(first, milliseconds(75));
  EXPECT_LT(first, milliseconds(125));
  EXPECT_GE(second, milliseconds(150));
  EXPECT_GE(third, milliseconds(300));
  EXPECT_LT(third, milliseconds(500));
  EXPECT_EQ(driver.sink.failures(), 3);
  driver.pass_pause();
  driver.send(1);
  driver.ack(1);
  EXPECT_EQ(driver.sink.failures(), 0);
  driver.send(1);
  const auto again = failing_pause(2);
  EXPECT_GE(again, milliseconds(75));
  EXPECT_LT(again, milliseconds(125));
}

TEST_P(AnySink, the_destination_may_ask_for_a_longer_pause) {
  auto driver = opened_to_send(options());
  driver.pair("0", "1", {{1, "a"}, {2, "b"}});
  driver.send_all();
  Outcome busy;
  busy.kind = Kind::blocked;
  busy.retry_after = seconds(40);
  driver.report(1, busy);
  driver.report(2, Kind::retry);
  EXPECT_GE(*driver.sink.pause_until() - driver.now, seconds(40));
  EXPECT_FALSE(driver.sink.wants_open(driver.now + seconds(39)));
  driver.pass_pause();
  driver.send_all();
  driver.report(1, Kind::retry);
  driver.report(2, Kind::retry);
  EXPECT_LT(*driver.sink.pause_until() - driver.now, seconds(40)) << "what it asks for counts once";
}

TEST_P(AnySink, a_sink_that_does_not_open_is_tried_again_after_a_growing_pause) {
  CoreDriver driver(options());
  driver.pair("0", "1", {{1, "a"}});
  Error error;
  error.message = "no route";
  std::chrono::nanoseconds last{0};
  for (int attempt = 1; attempt <= 4; ++attempt) {
    ASSERT_TRUE(driver.sink.wants_open(driver.now));
    driver.sink.opened(tl::unexpected(error), driver.now);
    EXPECT_EQ(driver.sink.mode(), Mode::backing_off);
    EXPECT_EQ(driver.sink.last_failure().message, "no route");
    EXPECT_FALSE(driver.sink.wants_open(driver.now));
    const auto pause = *driver.sink.pause_until() - driver.now;
    EXPECT_GT(pause, last);
    last = pause;
    driver.now += pause;
  }
  driver.open();
  EXPECT_THAT(driver.send_all(), ElementsAre(1));
}

TEST_P(AnySink, a_rejected_event_stops_everything_and_nothing_is_skipped) {
  auto driver = opened_to_send(options());
  driver.pair("0", "1", {{1, "a"}, {2, "b"}, {3, "c"}, {4, "d"}});
  EXPECT_THAT(driver.send(3), ElementsAre(1, 2, 3));
  driver.ack(1);
  driver.report(2, Kind::rejected, "too large");
  EXPECT_EQ(driver.sink.mode(), Mode::draining);
  driver.ack(3);
  ASSERT_EQ(driver.sink.mode(), Mode::rejected);
  ASSERT_TRUE(driver.sink.rejection());
  EXPECT_EQ(driver.sink.rejection()->seq, 2);
  EXPECT_EQ(driver.sink.rejection()->id, id_of(2));
  EXPECT_EQ(driver.sink.rejection()->error.message, "too large");
  EXPECT_THAT(driver.send_all(), IsEmpty());
  EXPECT_FALSE(driver.sink.wants_open(driver.now + std::chrono::hours(1)));
  const auto rows = driver.settle();
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].position, 1) << "the cursor stays before the rejected event";
  EXPECT_EQ(driver.core.unsettled_acks(), std::vector{ref_of(3)});
}

TEST_P(AnySink, of_several_rejected_events_the_earliest_is_named) {
  auto driver = opened_to_send(options());
  driver.pair("0", "1", {{1, "a"}, {2, "b"}, {3, "c"}});
  driver.send_all();
  driver.report(3, Kind::rejected, "third");
  driver.report(1, Kind::rejected, "first");
  driver.report(2, Kind::retry);
  ASSERT_EQ(driver.sink.mode(), Mode::rejected);
  EXPECT_EQ(driver.sink.rejection()->seq, 1);
  EXPECT_EQ(driver.sink.rejection()->error.message, "first");
}

TEST_P(AnySink, a_failure_before_a_rejection_does_not_hide_it) {
  auto driver = opened_to_send(options());
  driver.pair("0", "1", {{1, "a"}, {2, "b"}});
  driver.send_all();
  driver.report(1, Kind::retry);
  driver.report(2, Kind::rejected);
  EXPECT_EQ(driver.sink.mode(), Mode::rejected);
}

TEST_P(AnySink, asked_to_stop_it_sends_nothing_more_and_waits_for_what_is_in_flight) {
  auto driver = opened_to_send(options());
  driver.pair("0", "1", {{1, "a"}, {2, "b"}, {3, "c"}});
  EXPECT_THAT(driver.send(2), ElementsAre(1, 2));
  driver.stop(true);
  EXPECT_THAT(driver.send_all(), IsEmpty());
  EXPECT_FALSE(driver.core.finished());
  EXPECT_THAT(driver.core.settle(driver.now).rows, IsEmpty());
  driver.ack(1);
  driver.report(2, Kind::retry);
  EXPECT_FALSE(driver.sink.wants_open(driver.now + std::chrono::hours(1)));
  EXPECT_THAT(driver.send_all(), IsEmpty());
  const auto rows = driver.core.settle(driver.now).rows;  // A stop does not wait for the interval.
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].position, 1);
  EXPECT_FALSE(driver.core.finished());
  driver.core.settled();
  EXPECT_TRUE(driver.core.finished());
}

TEST_P(AnySink, asked_to_stop_with_nothing_to_do_it_has_finished) {
  CoreDriver driver(options());
  driver.stop(true);
  EXPECT_TRUE(driver.core.finished());
}

TEST_P(AnySink, tokens_start_where_those_of_the_sinks_earlier_life_ended) {
  CoreOptions later = options();
  later.first_token = 500;
  auto driver = opened_to_send(later);
  driver.pair("0", "1", {{1, "a"}, {2, "a"}, {3, "b"}});
  driver.send_all();
  EXPECT_EQ(driver.tokens.at(1), 500U);
  EXPECT_EQ(driver.tokens.at(3), 502U);
  EXPECT_EQ(driver.core.next_token(), 503U);
  driver.report(1, Kind::acked);
  EXPECT_EQ(driver.core.acked(), 1U);
}

TEST_P(AnySink, an_event_acked_in_an_earlier_life_is_not_sent_again) {
  CoreDriver driver(options());
  driver.core.remember(ref_of(4));
  driver.core.remember(ref_of(2));
  driver.open();
  driver.pair("0", "1", {{1, "a"}, {2, "a"}, {3, "a"}, {4, "b"}});
  auto sent = driver.send_all();
  driver.ack(1);
  const auto rest = driver.send_all();
  sent.insert(sent.end(), rest.begin(), rest.end());
  EXPECT_THAT(sent, ElementsAre(1, 3));
  driver.ack(3);
  const auto rows = driver.settle();
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].acked.count, 4);
}

TEST_P(AnySink, what_it_remembers_outlives_a_second_loss_of_the_store) {
  CoreDriver driver(options());
  driver.core.remember(ref_of(2));
  driver.core.remember(ref_of(7));
  // The store is lost again before the two events are read.
  EXPECT_THAT(driver.core.unsettled_acks(), UnorderedElementsAre(ref_of(2), ref_of(7)));
  driver.open();
  driver.page({.s1 = "0", .s2 = "1", .bound = 9}, 0, {{1, "a"}, {2, "b"}}, false);
  EXPECT_THAT(driver.core.unsettled_acks(), UnorderedElementsAre(ref_of(2), ref_of(7)));
  driver.send_all();
  driver.ack(1);
  driver.page({.s1 = "0", .s2 = "1", .bound = 9}, 2, {{3, "a"}}, true);
  EXPECT_THAT(driver.core.unsettled_acks(), UnorderedElementsAre(ref_of(1), ref_of(2)))
      << "the seventh was settled after all: it does not come any more";
}

TEST_P(AnySink, the_rest_of_a_begun_pair_may_hold_not_all_of_what_is_remembered) {
  CoreDriver driver(options(), {.s1 = "0", .s2 = "1", .position = 3, .bound = 9});
  driver.core.remember(ref_of(7));
  driver.open();
  driver.page({.s1 = "0", .s2 = "1", .bound = 9}, 3, {{4, "a"}}, true);
  driver.pair("1", "2", {{7, "b"}});
  EXPECT_THAT(driver.send_all(), ElementsAre(4));
}

TEST_P(AnySink, an_id_that_the_caller_used_twice_is_two_events) {
  CoreDriver driver(options());
  driver.core.remember({.seq = 1, .id = id_of(2)});
  driver.open();
  driver.pair("0", "1", {{2, "a"}});
  EXPECT_THAT(driver.send_all(), ElementsAre(2));
}

TEST_P(AnySink, what_was_acked_and_not_settled_is_listed) {
  auto driver = opened_to_send(options());
  driver.page({.s1 = "0", .s2 = "1", .bound = 9}, 0, {{1, "a"}, {2, "b"}}, false);
  driver.page({.s1 = "0", .s2 = "1", .bound = 9}, 2, {{3, "c"}, {4, "d"}}, true);
  driver.send_all();
  driver.ack(1);
  driver.ack(4);
  EXPECT_THAT(driver.core.unsettled_acks(), UnorderedElementsAre(ref_of(1), ref_of(4)));
  driver.pass(seconds(1));
  ASSERT_EQ(driver.core.settle(driver.now).rows.size(), 1U);
  EXPECT_THAT(driver.core.unsettled_acks(), UnorderedElementsAre(ref_of(1), ref_of(4)))
      << "being written is not written";
  driver.core.settled();
  driver.ack_all({2, 3});
  EXPECT_EQ(driver.settle().size(), 1U);
  EXPECT_THAT(driver.core.unsettled_acks(), IsEmpty());
}

// ---- where the kinds of sink differ

TEST(GaplessSink, many_events_of_a_key_are_in_flight_in_order) {
  auto driver = opened_to_send(gapless());
  driver.pair("0", "1", {{1, "a"}, {2, "b"}, {3, "a"}, {4, "a"}});
  EXPECT_THAT(driver.send_all(), ElementsAre(1, 2, 3, 4));
}

TEST(GaplessSink, what_failed_and_all_behind_it_go_again_in_order) {
  auto driver = opened_to_send(gapless());
  driver.pair("0", "1", {{1, "a"}, {2, "a"}, {3, "a"}});
  driver.send_all();
  driver.ack(1);
  driver.report(2, Kind::unknown);
  driver.report(3, Kind::retry);
  driver.pair("1", "2", {{4, "a"}});
  driver.pass_pause();
  EXPECT_THAT(driver.send_all(), ElementsAre(2, 3, 4));
}

TEST(GatedSink, one_event_of_a_key_is_in_flight) {
  auto driver = opened_to_send(gated());
  driver.pair("0", "1", {{1, "a"}, {2, "b"}, {3, "a"}, {4, "a"}, {5, "b"}});
  EXPECT_THAT(driver.send_all(), ElementsAre(1, 2));
  driver.ack(1);
  EXPECT_THAT(driver.send_all(), ElementsAre(3));
  driver.ack(2);
  EXPECT_THAT(driver.send_all(), ElementsAre(5));
  driver.ack(3);
  EXPECT_THAT(driver.send_all(), ElementsAre(4));
}

TEST(GatedSink, the_gate_holds_across_pages_and_pairs) {
  auto driver = opened_to_send(gated());
  driver.page({.s1 = "0", .s2 = "1", .bound = 9}, 0, {{1, "a"}}, false);
  EXPECT_THAT(driver.send_all(), ElementsAre(1));
  driver.page({.s1 = "0", .s2 = "1", .bound = 9}, 1, {{2, "a"}}, true);
  driver.pair("1", "2", {{3, "a"}, {4, "b"}});
  EXPECT_THAT(driver.send_all(), ElementsAre(4));
  driver.ack(1);
  EXPECT_THAT(driver.send_all(), ElementsAre(2));
  driver.ack(2);
  EXPECT_THAT(driver.send_all(), ElementsAre(3));
  driver.ack(3);
  driver.ack(4);
  driver.pair("2", "3", {{5, "a"}});
  EXPECT_THAT(driver.send_all(), ElementsAre(5)) << "the key is free again";
}

TEST(GatedSink, events_without_a_key_do_not_wait_for_each_other) {
  auto driver = opened_to_send(gated());
  driver.pair("0", "1", {{1, ""}, {2, ""}, {3, ""}});
  EXPECT_THAT(driver.send_all(), ElementsAre(1, 2, 3));
}

TEST(GatedSink, a_failed_event_goes_again_before_the_later_ones_of_its_key) {
  auto driver = opened_to_send(gated());
  driver.pair("0", "1", {{1, "a"}, {2, "b"}, {3, "a"}, {4, "b"}});
  driver.send_all();
  driver.report(1, Kind::unknown);
  driver.ack(2);
  driver.pass_pause();
  EXPECT_THAT(driver.send_all(), ElementsAre(1, 4));
  driver.ack(1);
  EXPECT_THAT(driver.send_all(), ElementsAre(3));
}

TEST(GatedSink, the_next_of_a_key_released_while_draining_goes_after_the_pause_in_its_place) {
  auto driver = opened_to_send(gated());
  driver.pair("0", "1", {{1, "a"}, {2, "b"}, {3, "b"}, {4, "c"}});
  driver.send_all();
  driver.report(4, Kind::retry);
  driver.ack(2);  // Event 3 is now the next of its key.
  driver.ack(1);
  driver.pass_pause();
  EXPECT_THAT(driver.send_all(), ElementsAre(3, 4));
}

TEST(GatedSink, asked_to_stop_it_still_sends_what_lies_before_something_acked) {
  auto driver = opened_to_send(gated());
  driver.pair("0", "1", {{1, "a"}, {2, "a"}, {3, "b"}, {4, "a"}, {5, "b"}, {6, ""}});
  EXPECT_THAT(driver.send(2), ElementsAre(1, 3));
  driver.ack(3);
  EXPECT_THAT(driver.send(1), ElementsAre(6));
  // Event 6 is in flight. Events 1, 2, 4 and 5 are gaps before it.
  driver.stop(true);
  driver.ack(6);
  driver.ack(1);
  EXPECT_FALSE(driver.core.finished());
  EXPECT_THAT(driver.core.settle(driver.now).rows, IsEmpty()) << "more is to come";
  EXPECT_THAT(driver.send_all(), ElementsAre(5, 2));
  driver.ack_all({2, 5});
  EXPECT_THAT(driver.send_all(), ElementsAre(4));
  driver.ack(4);
  EXPECT_EQ(driver.settle().size(), 1U);
  EXPECT_TRUE(driver.core.finished());
  EXPECT_THAT(driver.core.unsettled_acks(), IsEmpty());
}

TEST(GatedSink, asked_to_stop_it_sends_nothing_behind_the_last_acked) {
  auto driver = opened_to_send(gated());
  driver.pair("0", "1", {{1, "a"}, {2, "b"}, {3, "a"}, {4, "b"}, {5, "c"}});
  EXPECT_THAT(driver.send(2), ElementsAre(1, 2));
  driver.stop(true);
  driver.ack_all({1, 2});
  EXPECT_THAT(driver.send_all(), IsEmpty());
  EXPECT_EQ(driver.settle().size(), 1U);
  EXPECT_TRUE(driver.core.finished());
}

TEST(GatedSink, a_failure_ends_the_filling_of_gaps) {
  auto driver = opened_to_send(gated());
  driver.pair("0", "1", {{1, "a"}, {2, "a"}, {3, "b"}});
  driver.send_all();
  driver.ack(3);
  driver.stop(true);
  driver.report(1, Kind::retry);
  EXPECT_THAT(driver.send_all(), IsEmpty());
  EXPECT_TRUE(driver.core.finished());
  EXPECT_THAT(driver.core.unsettled_acks(), ElementsAre(ref_of(3)));
}

TEST(GatedSink, past_the_lease_it_fills_no_gaps) {
  auto driver = opened_to_send(gated());
  driver.pair("0", "1", {{1, "a"}, {2, "a"}, {3, "b"}});
  driver.send_all();
  driver.ack(3);
  driver.stop(true);
  driver.stop(false);  // The lease has ended.
  driver.ack(1);
  EXPECT_THAT(driver.send_all(), IsEmpty());
  EXPECT_EQ(driver.settle().size(), 1U);
  EXPECT_TRUE(driver.core.finished());
}

TEST(GatedSink, while_it_pauses_it_fills_no_gaps) {
  auto driver = opened_to_send(gated());
  driver.pair("0", "1", {{1, "a"}, {2, "b"}});
  driver.send_all();
  driver.ack(2);
  driver.report(1, Kind::retry);
  driver.stop(true);
  EXPECT_THAT(driver.send_all(), IsEmpty());
  EXPECT_TRUE(driver.core.finished());
}

// ---- misuse

using DeliveryCoreDeathTest = ::testing::Test;

TEST(DeliveryCoreDeathTest, a_gap_between_pages_ends_the_process) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  auto driver = opened_to_send(gapless());
  driver.page({.s1 = "0", .s2 = "1", .bound = 9}, 0, {{1, "a"}, {2, "a"}}, false);
  EXPECT_DEATH(driver.page({.s1 = "0", .s2 = "1", .bound = 9}, 3, {{4, "a"}}, true), "");
  EXPECT_DEATH(driver.page({.s1 = "0", .s2 = "2", .bound = 9}, 2, {{4, "a"}}, true), "");
}

// ---- strands that share a sink

TEST(Strands, a_failure_of_one_stops_them_all_until_the_sink_is_open_again) {
  for (const bool is_gapless : {true, false}) {
    CoreDriver one({.gapless = is_gapless});
    DeliveryCore other({.gapless = is_gapless}, drained_at("0"), one.sink, one.window, one.gate);
    one.open();
    one.pair("0", "1", {{1, "a"}, {2, "b"}});
    const auto page =
        page_of({.s1 = "0", .s2 = "1", .bound = 9}, 0, {{3, "c"}, {4, "d"}, {5, "e"}}, true);
    one.window.add(*page);
    other.page_read(page, {}, one.now);
    const auto sends = other.to_send(one.now);
    ASSERT_EQ(sends.size(), 3U);
    const std::vector<Token> tokens{sends[0].token, sends[1].token};
    other.handed_over(2);
    ASSERT_EQ(one.send(1).size(), 1U);
    EXPECT_EQ(one.sink.in_flight(), 3U);

    one.report(1, Kind::retry);
    EXPECT_THAT(other.to_send(one.now), IsEmpty());
    other.outcome({.token = tokens[0], .kind = Kind::acked}, one.now);
    EXPECT_EQ(one.sink.mode(), Mode::draining) << "one of the other strand is in flight";
    other.outcome({.token = tokens[1], .kind = Kind::unknown}, one.now);
    EXPECT_EQ(one.sink.mode(), Mode::backing_off);

    one.pass_pause();
    EXPECT_THAT(one.send_all(), ElementsAre(1, 2));
    ASSERT_EQ(other.to_send(one.now).size(), 2U);
    EXPECT_EQ(other.to_send(one.now)[0].event->seq, 4);
    EXPECT_EQ(other.to_send(one.now)[1].event->seq, 5);
  }
}

}  // namespace
}  // namespace outbox::relay
