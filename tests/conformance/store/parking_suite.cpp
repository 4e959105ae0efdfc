// Parked events are set aside with a settlement, sent again in the order of their keys, and given
// up. The law of docs/design/parking.md is tested row by row.
#include "conformance/store/parking_fixture.hpp"

namespace outbox::conformance {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using store::ParkedState;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

INSTANTIATE_TEST_SUITE_P(Store, ParkingSuite, ::testing::ValuesIn(backends()), backend_name);

// ---- the stream

TEST_P(ParkingSuite, parked_events_are_copied_and_those_that_wait_come_behind_the_first) {
  settle(make_spec("mails"), {"a", "b", "a", "a"}, {retrying(0), waiting(2), waiting(3)});
  ASSERT_TRUE(ok(status_));
  EXPECT_THAT(due(), ElementsAre("0 attempts 1", "2 attempts 0", "3 attempts 0"));
  EXPECT_THAT(states(), ElementsAre("0 retrying 1 too big", "2 waiting 0", "3 waiting 0"));
  EXPECT_THAT(blocked(), ElementsAre("a"));
  EXPECT_EQ(live_, 3U);
  EXPECT_THAT(released_, IsEmpty());
}

TEST_P(ParkingSuite, what_comes_to_a_key_later_changes_nothing_of_what_it_does_next) {
  settle(make_spec("mails"), {"a"}, {retrying(0, seconds(100))});
  settle_more({"a"}, {retrying(1)});
  EXPECT_THAT(due(), IsEmpty());
  EXPECT_THAT(states(), ElementsAre("0 retrying 1 too big", "1 waiting 0"));
}

TEST_P(ParkingSuite, the_order_in_which_events_are_handed_over_does_not_matter) {
  settle(make_spec("mails"), {"a", "a"}, {waiting(1), retrying(0)});
  EXPECT_THAT(due(), ElementsAre("0 attempts 1", "1 attempts 0"));
}

TEST_P(ParkingSuite, an_event_that_is_parked_dead_holds_its_key_only_where_dead_events_block) {
  settle(make_spec("mails"), {"a"}, {parked(0, ParkedState::dead)});
  EXPECT_THAT(states(), ElementsAre("0 dead 1 too big"));
  EXPECT_THAT(blocked(), IsEmpty());
  EXPECT_THAT(released_, ElementsAre("a"));
  settle_more({"a"}, {retrying(1)});
  EXPECT_THAT(due(), ElementsAre("1 attempts 1"));

  settle(blocking("orders"), {"a"}, {parked(0, ParkedState::dead)});
  EXPECT_THAT(blocked(true), ElementsAre("a"));
  EXPECT_EQ(live_, 0U);
  EXPECT_THAT(released_, IsEmpty());
  settle_more({"a"}, {waiting(1)});
  EXPECT_THAT(due(), IsEmpty());
  EXPECT_THAT(states(), ElementsAre("0 dead 1 too big", "1 waiting 0"));
}

TEST_P(ParkingSuite, a_page_has_what_waits_behind_the_first_keys_only) {
  settle(make_spec("mails"), {"a", "b", "c", "a", "b", "a", "c"},
         {retrying(0, seconds(-3)), retrying(1, seconds(-2)), retrying(2, seconds(-1)), waiting(3),
          waiting(4), waiting(5), waiting(6)});
  ASSERT_TRUE(ok(status_));
  limits_ = {.events = 2, .keys = 1, .behind = 1};
  EXPECT_THAT(due(), ElementsAre("0 attempts 1", "1 attempts 1", "3 attempts 0"));
  EXPECT_EQ(next_in_, milliseconds(0)) << "there is more";
  ASSERT_TRUE(
      ok(append({result(0, std::nullopt), result(3, std::nullopt), result(1, std::nullopt)})));
  limits_ = {};
  EXPECT_THAT(due(), ElementsAre("2 attempts 1", "4 attempts 0", "5 attempts 0", "6 attempts 0"));
}

TEST_P(ParkingSuite, what_is_not_due_is_announced) {
  settle(make_spec("mails"), {"a", "b"}, {retrying(0, seconds(100)), retrying(1, seconds(50))});
  EXPECT_THAT(due(), IsEmpty());
  ASSERT_TRUE(next_in_.has_value());
  EXPECT_GT(*next_in_, seconds(10));
  EXPECT_LE(*next_in_, seconds(50));
}

TEST_P(ParkingSuite, what_is_blocked_is_never_due) {
  settle(blocking(), {"a", "a"}, {parked(0, ParkedState::dead), waiting(1)});
  EXPECT_THAT(due(), IsEmpty());
  EXPECT_FALSE(next_in_.has_value());
}

TEST_P(ParkingSuite, events_without_a_key_do_not_wait_for_each_other) {
  settle(make_spec("mails"), {"", "", ""}, {retrying(0), retrying(2)});
  EXPECT_THAT(due(), ElementsAre("0 attempts 1", "2 attempts 1"));
  EXPECT_THAT(blocked(), IsEmpty()) << "the stream has no other event of these keys";
  EXPECT_EQ(live_, 2U);
  ASSERT_TRUE(ok(append({result(0, ParkedState::dead)})));
  EXPECT_THAT(due(), ElementsAre("2 attempts 1"));
}

// ---- results

TEST_P(ParkingSuite, a_delivered_event_goes_counts_and_makes_room_for_the_next_of_its_key) {
  settle(make_spec("mails"), {"a", "a", "b"}, {retrying(0), waiting(1), retrying(2, seconds(100))});
  EXPECT_EQ(delivered(), 0);
  ASSERT_TRUE(ok(append({result(0, std::nullopt)})));
  EXPECT_EQ(delivered(), 1);
  EXPECT_THAT(released_, IsEmpty());
  EXPECT_THAT(due(), ElementsAre("1 attempts 0"));
  EXPECT_THAT(blocked(), ElementsAre("a", "b"));
  ASSERT_TRUE(ok(append({result(1, std::nullopt), result(2, std::nullopt)})));
  EXPECT_EQ(delivered(), 3);
  EXPECT_THAT(released_, ElementsAre("a", "b"));
  EXPECT_THAT(blocked(), IsEmpty());
}

TEST_P(ParkingSuite, one_that_failed_again_is_due_later_and_the_others_of_its_key_wait) {
  settle(make_spec("mails"), {"a", "a"}, {retrying(0), waiting(1)});
  ASSERT_TRUE(ok(append({result(0, ParkedState::retrying, seconds(100))})));
  EXPECT_THAT(due(), IsEmpty());
  EXPECT_THAT(states(), ElementsAre("0 retrying 2 no", "1 waiting 0"));
  EXPECT_THAT(blocked(), ElementsAre("a"));
}

TEST_P(ParkingSuite, a_later_one_of_the_key_that_failed_becomes_the_one_that_is_retried) {
  settle(make_spec("mails"), {"a", "a", "a"}, {retrying(0), waiting(1), waiting(2)});
  ASSERT_TRUE(ok(append({result(0, std::nullopt), result(1, ParkedState::retrying, seconds(0))})));
  EXPECT_THAT(due(), ElementsAre("1 attempts 2", "2 attempts 0"));
}

TEST_P(ParkingSuite, behind_a_dead_event_the_key_goes_on_or_is_blocked) {
  settle(make_spec("mails"), {"a", "a"}, {retrying(0), waiting(1)});
  ASSERT_TRUE(ok(append({result(0, ParkedState::dead)})));
  EXPECT_THAT(due(), ElementsAre("1 attempts 0"));
  EXPECT_THAT(states(), ElementsAre("0 dead 2 no", "1 retrying 0"));
  EXPECT_THAT(blocked(), ElementsAre("a"));
  EXPECT_EQ(live_, 1U);

  settle(blocking("orders"), {"a", "a"}, {retrying(0), waiting(1)});
  ASSERT_TRUE(ok(append({result(0, ParkedState::dead)})));
  EXPECT_THAT(due(), IsEmpty());
  EXPECT_THAT(states(), ElementsAre("0 dead 2 no", "1 waiting 0"));
  EXPECT_THAT(blocked(true), ElementsAre("a"));
  EXPECT_EQ(live_, 1U);
}

TEST_P(ParkingSuite, a_key_whose_last_event_is_dead_is_free_unless_that_one_blocks_it) {
  settle(make_spec("mails"), {"a"}, {retrying(0)});
  ASSERT_TRUE(ok(append({result(0, ParkedState::dead)})));
  EXPECT_THAT(released_, ElementsAre("a"));
  EXPECT_THAT(blocked(), IsEmpty());

  settle(blocking("orders"), {"a"}, {retrying(0)});
  ASSERT_TRUE(ok(append({result(0, ParkedState::dead)})));
  EXPECT_THAT(released_, IsEmpty());
  EXPECT_THAT(blocked(true), ElementsAre("a"));
}

TEST_P(ParkingSuite, a_result_of_an_event_that_is_gone_or_dead_says_nothing) {
  settle(make_spec("mails"), {"a", "b"}, {retrying(0), retrying(1)});
  ASSERT_TRUE(ok(append({result(0, std::nullopt), result(1, ParkedState::dead)})));
  ASSERT_TRUE(ok(append({result(0, ParkedState::retrying), result(1, ParkedState::retrying)})));
  EXPECT_THAT(due(), IsEmpty());
  EXPECT_THAT(states(), ElementsAre("1 dead 2 no"));
  EXPECT_THAT(released_, ElementsAre("a", "b"));
}

TEST_P(ParkingSuite, an_ack_of_a_dead_event_is_a_delivery_all_the_same) {
  settle(blocking(), {"a", "a"}, {retrying(0), waiting(1)});
  ASSERT_TRUE(ok(append({result(0, ParkedState::dead)})));
  ASSERT_TRUE(ok(append({result(0, std::nullopt)})));
  EXPECT_EQ(delivered(), 1);
  EXPECT_THAT(due(), ElementsAre("1 attempts 0")) << "nothing blocks its key any more";
  ASSERT_TRUE(ok(append({result(0, std::nullopt)})));
  EXPECT_EQ(delivered(), 1) << "once";
}

TEST_P(ParkingSuite, what_was_in_flight_when_a_person_sent_an_event_again_decides_nothing) {
  settle(make_spec("mails"), {"a", "b", "c", "d"},
         {retrying(0), retrying(1), retrying(2), retrying(3)});
  EXPECT_EQ(due().size(), 4U);
  const std::vector in_flight{result(0, ParkedState::retrying, seconds(100)),
                              result(1, ParkedState::dead), result(2, ParkedState::ready),
                              result(3, std::nullopt)};
  EXPECT_EQ(retry({0, 1, 2, 3}), 4U);
  ASSERT_TRUE(ok(append(in_flight)));
  EXPECT_THAT(due(), ElementsAre("0 attempts 0", "1 attempts 0", "2 attempts 0"));
  EXPECT_EQ(delivered(), 1) << "but an ack is an ack";
  EXPECT_THAT(released_, ElementsAre("d"));
}

TEST_P(ParkingSuite, a_retry_that_died_in_flight_leaves_the_new_one_as_it_is) {
  settle(make_spec("mails"), {"a"}, {retrying(0)});
  EXPECT_THAT(due(), ElementsAre("0 attempts 1"));
  const auto in_flight = result(0, ParkedState::dead);
  ASSERT_TRUE(ok(append({in_flight})));
  EXPECT_EQ(retry({0}), 1U);
  ASSERT_TRUE(ok(append({in_flight}))) << "a second time, after a doubtful answer";
  EXPECT_THAT(due(), ElementsAre("0 attempts 0"));
}

TEST_P(ParkingSuite, when_dead_events_no_longer_block_what_waits_behind_them_goes) {
  SubscriptionSpec spec = blocking();
  settle(spec, {"a", "a", "b"}, {retrying(0), waiting(1), retrying(2)});
  ASSERT_TRUE(ok(append({result(0, ParkedState::dead), result(2, ParkedState::dead)})));
  spec.on_dead = OnDead::proceed;
  spec.start = Start::now;
  subscribe(spec);
  EXPECT_THAT(blocked(true), ElementsAre("a", "b")) << "not before the relay begins anew";
  EXPECT_THAT(blocked(), ElementsAre("a"));
  EXPECT_THAT(due(), ElementsAre("1 attempts 0"));
}

TEST_P(ParkingSuite, what_died_while_keys_went_on_blocks_nothing_later) {
  SubscriptionSpec spec = make_spec("mails");
  settle(spec, {"a", "a"}, {retrying(0), waiting(1)});
  ASSERT_TRUE(ok(append({result(0, ParkedState::dead)})));
  spec.on_dead = OnDead::block;
  spec.start = Start::now;
  subscribe(spec);
  EXPECT_THAT(blocked(true), ElementsAre("a"));
  EXPECT_THAT(due(), ElementsAre("1 attempts 0"));
}

TEST_P(ParkingSuite, a_relay_that_lost_its_lanes_parks_nothing_and_settles_nothing) {
  settle(make_spec("mails"), {"a", "b"}, {retrying(0)});
  ASSERT_TRUE(ok(relay_->leave()));
  test::LaneOwner other(*store_, "other");
  const auto successor = other.keep(seconds(60));
  ASSERT_TRUE(successor->owns());
  Status late = append({result(0, std::nullopt)});
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Errc::lease_lost);
  EXPECT_THAT(due(successor->generation), ElementsAre("0 attempts 1"));

  const auto event = at(retrying(1));
  const auto before = load(row_.id).cursor;
  store::Settlement settlement{.subscription = row_.id,
                               .generation = generation_,
                               .s1 = before.s1,
                               .s2 = before.s2,
                               .from_position = before.position,
                               .position = event.seq,
                               .bound = event.seq};
  if (before.s2.empty()) settlement.s2 = before.s1;
  const auto later =
      progress_->append({.settlements = std::span(&settlement, 1), .parked = std::span(&event, 1)},
                        store::Durability::flushed);
  ASSERT_FALSE(later);
  EXPECT_EQ(later.error().code, Errc::lease_lost);
  EXPECT_EQ(load(row_.id).cursor, before) << "the settlement is not written either";
}

TEST_P(ParkingSuite, a_relay_that_lost_its_lanes_reads_nothing_that_is_due) {
  settle(make_spec("mails"), {"a", "a", "b"}, {retrying(0), waiting(1), retrying(2)});
  EXPECT_THAT(due(), ElementsAre("0 attempts 1", "1 attempts 0", "2 attempts 1"));
  ASSERT_TRUE(ok(relay_->leave()));
  test::LaneOwner other(*store_, "other");
  const auto successor = other.keep(seconds(60));
  ASSERT_TRUE(successor->owns());
  EXPECT_THAT(due(), IsEmpty());
  EXPECT_THAT(due(successor->generation),
              ElementsAre("0 attempts 1", "1 attempts 0", "2 attempts 1"));
}

TEST_P(ParkingSuite, an_event_that_is_gone_from_the_log_is_not_passed) {
  row_ = subscribe(make_spec("mails"));
  ids_ = write({make_event("a")});
  LogDrive drive(*store_, load(row_.id).cursor);
  const auto page = drive.next();
  auto settlement = make_settlement(row_, page, generation_);
  auto event = retrying(0);
  event.subscription = row_.id;
  event.generation = generation_;
  event.seq = page.events.front().seq + 1000;
  event.key = store::parked_key(0, event.seq);
  const auto before = load(row_.id).cursor;
  const auto status =
      progress_->append({.settlements = std::span(&settlement, 1), .parked = std::span(&event, 1)},
                        store::Durability::flushed);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Errc::not_found);
  EXPECT_EQ(status.error().remedy, Remedy::reconnect);
  EXPECT_EQ(load(row_.id).cursor, before);
}

// ---- people

TEST_P(ParkingSuite, people_see_what_is_parked) {
  settle(make_spec("mails"), {"a", "b", "a"}, {retrying(0, seconds(100)), retrying(1), waiting(2)});
  const auto all = list();
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].seq, seqs_[0]);
  EXPECT_EQ(all[0].id, ids_[0]);
  EXPECT_EQ(all[0].error, "too big");
  EXPECT_EQ(all[0].payload, R"({"n":1})");
  EXPECT_EQ(all[0].headers, "{}");
  EXPECT_GT(all[0].next_attempt_at_us, all[0].parked_at_us);
  EXPECT_EQ(all[2].state, ParkedState::waiting);
  EXPECT_EQ(people_->list({}, 2, false)->size(), 2U);
  const auto count = [&](const store::ParkedFilter& filter) {
    return people_->list(filter, 100, false).value().size();
  };
  EXPECT_EQ(count({.subscription = row_.id}), 3U);
  EXPECT_EQ(count({.subscription = row_.id + 1}), 0U);
  EXPECT_EQ(count({.state = ParkedState::waiting}), 1U);
  EXPECT_EQ(count({.aggregate_id = "a"}), 2U);
  EXPECT_EQ(count({.error = "big"}), 2U);
  EXPECT_EQ(count({.error = "%"}), 0U) << "it is no pattern";
  EXPECT_EQ(count({.id = ids_[1]}), 1U);
  EXPECT_EQ(count({.seq = seqs_[2]}), 1U);
}

TEST_P(ParkingSuite, people_read_page_after_page) {
  settle(make_spec("mails"), {"a", "b", "c"}, {retrying(0), retrying(1), retrying(2)});
  settle(make_spec("orders"), {"a"}, {retrying(0)});
  store::ParkedFilter filter;
  std::vector<std::int64_t> seen;
  for (;;) {
    const auto page = people_->list(filter, 2, false).value();
    if (page.empty()) break;
    for (const auto& event : page) seen.push_back(event.seq);
    filter.after.emplace(page.back().subscription, page.back().seq);
  }
  EXPECT_EQ(seen.size(), 4U);
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
  const std::int32_t mails = read_row("mails").id;
  EXPECT_EQ(people_->list({.subscription = mails, .after = {{mails, seen[1]}}}, 9, false)->size(),
            1U);
}

TEST_P(ParkingSuite, events_are_counted_by_whose_turn_it_is) {
  auto running = parked(5, ParkedState::running);
  running.worker = EventId::generate();
  settle(blocking(), {"a", "a", "b", "b", "", "c", "c"},
         {retrying(0, seconds(100)), waiting(1), retrying(2), waiting(3), retrying(4), running,
          waiting(6)});
  ASSERT_TRUE(ok(append({result(2, ParkedState::dead)})));
  const auto counts = people_->counts(row_.id).value();
  EXPECT_EQ(counts.retrying, 2);
  EXPECT_EQ(counts.waiting, 3) << "behind one that is retried, dead, or runs";
  EXPECT_EQ(counts.dead, 1);
}

TEST_P(ParkingSuite, a_person_sends_the_first_event_again) {
  settle(make_spec("mails"), {"a", "a", "b"}, {retrying(0, seconds(100)), waiting(1)});
  const auto version = read_row("mails").parked_version;
  EXPECT_EQ(retry({0, 2}, true), 1U);
  EXPECT_THAT(due(), ElementsAre("0 attempts 1", "1 attempts 0"));
  EXPECT_GT(read_row("mails").parked_version, version) << "so that the relay notices";
  EXPECT_EQ(retry({0, 2}), 1U);
  EXPECT_THAT(due(), ElementsAre("0 attempts 0", "1 attempts 0"));
}

TEST_P(ParkingSuite, one_that_waits_is_sent_when_it_is_its_turn_whoever_wants_it_sent_again) {
  settle(make_spec("mails"), {"a", "a"}, {retrying(0, seconds(100)), waiting(1)});
  EXPECT_EQ(retry({1}), 1U);
  EXPECT_THAT(due(), IsEmpty());
  EXPECT_THAT(states(), ElementsAre("0 retrying 1 too big", "1 waiting 0"));
  ASSERT_TRUE(ok(append({result(0, ParkedState::retrying)}))) << "which its sender may still say";
  EXPECT_THAT(due(), ElementsAre("0 attempts 2", "1 attempts 0"));
}

TEST_P(ParkingSuite, a_dead_event_that_is_sent_again_is_at_its_own_place_in_its_key) {
  settle(make_spec("mails"), {"a", "a"}, {retrying(0), waiting(1)});
  ASSERT_TRUE(ok(append({result(0, ParkedState::dead)})));
  EXPECT_THAT(due(), ElementsAre("1 attempts 0"));
  const auto in_flight = result(1, ParkedState::retrying, seconds(100));
  EXPECT_EQ(retry({0}), 1U);
  EXPECT_THAT(due(), ElementsAre("0 attempts 0", "1 attempts 0"));
  ASSERT_TRUE(ok(append({in_flight})));
  EXPECT_THAT(due(), ElementsAre("0 attempts 0", "1 attempts 0"));
}

TEST_P(ParkingSuite, a_dead_event_whose_key_is_free_makes_it_busy_again) {
  settle(make_spec("mails"), {"a", ""}, {retrying(0), retrying(1)});
  ASSERT_TRUE(ok(append({result(0, ParkedState::dead), result(1, ParkedState::dead)})));
  EXPECT_THAT(blocked(), IsEmpty());
  EXPECT_EQ(retry({0, 1}, true), 2U);
  EXPECT_THAT(due(), ElementsAre("0 attempts 2", "1 attempts 2")) << "with its attempts kept";
  EXPECT_THAT(blocked(), ElementsAre("a"));
  EXPECT_EQ(live_, 2U);
}

TEST_P(ParkingSuite, a_dead_event_that_is_not_the_first_waits_when_it_is_sent_again) {
  settle(make_spec("mails"), {"a", "a"}, {retrying(0), waiting(1)});
  ASSERT_TRUE(ok(append({result(0, ParkedState::dead), result(1, ParkedState::dead)})));
  EXPECT_EQ(retry({0}), 1U);
  EXPECT_EQ(retry({1}), 1U);
  EXPECT_THAT(states(), ElementsAre("0 retrying 0", "1 waiting 0"));
  EXPECT_THAT(due(), ElementsAre("0 attempts 0", "1 attempts 0"));
}

TEST_P(ParkingSuite, a_dead_event_blocks_its_key_until_it_is_sent_again_or_discarded) {
  settle(blocking(), {"a", "a", "b", "b"}, {retrying(0), waiting(1), retrying(2), waiting(3)});
  ASSERT_TRUE(ok(append({result(0, ParkedState::dead), result(2, ParkedState::dead)})));
  EXPECT_THAT(due(), IsEmpty());
  EXPECT_EQ(retry({0}), 1U);
  EXPECT_THAT(due(), ElementsAre("0 attempts 0", "1 attempts 0"));
  EXPECT_EQ(discard({2}), 1U);
  EXPECT_THAT(due(), ElementsAre("0 attempts 0", "1 attempts 0", "3 attempts 0"));
}

TEST_P(ParkingSuite, what_is_behind_a_dead_event_that_blocks_is_not_sent_with_what_is_before_it) {
  settle_with_a_block_in_the_middle();
  EXPECT_EQ(retry({0}), 1U);
  EXPECT_THAT(due(), ElementsAre("0 attempts 0"));
  EXPECT_THAT(states(), ElementsAre("0 retrying 0", "1 dead 2 no", "2 waiting 0"));
  ASSERT_TRUE(ok(append({result(0, std::nullopt)})));
  EXPECT_THAT(due(), IsEmpty()) << "the one behind waits for the dead one";
  EXPECT_THAT(blocked(true), ElementsAre("a"));
}

TEST_P(ParkingSuite, each_dead_event_that_blocks_holds_its_key_until_a_person_decides) {
  settle_with_a_block_in_the_middle();
  EXPECT_EQ(retry({0}), 1U);
  ASSERT_TRUE(ok(append({result(0, ParkedState::dead)})));
  EXPECT_EQ(discard({0}), 1U);
  EXPECT_THAT(due(), IsEmpty()) << "the second one is dead, too";
  EXPECT_THAT(blocked(true), ElementsAre("a"));
  EXPECT_EQ(discard({1}), 1U);
  EXPECT_THAT(due(), ElementsAre("2 attempts 0"));
}

TEST_P(ParkingSuite, a_person_discards_an_event_and_its_key_goes_on) {
  settle(make_spec("mails"), {"a", "a"}, {retrying(0, seconds(100)), waiting(1)});
  EXPECT_EQ(discard({0}), 1U);
  EXPECT_EQ(discard({0}), 0U);
  EXPECT_THAT(due(), ElementsAre("1 attempts 0"));
  ASSERT_TRUE(ok(append({result(0, std::nullopt)})))
      << "its outcome comes too late, and counts nothing";
  EXPECT_EQ(delivered(), 0);
  EXPECT_EQ(discard({1}), 1U);
  EXPECT_THAT(blocked(), IsEmpty());
}

TEST_P(ParkingSuite, an_event_that_is_discarded_while_another_is_in_flight_leaves_that_as_it_is) {
  settle(make_spec("mails"), {"a", "a", "a"}, {retrying(0), waiting(1), waiting(2)});
  EXPECT_EQ(due().size(), 3U);
  const auto in_flight = result(0, ParkedState::retrying);
  EXPECT_EQ(discard({1}), 1U);
  ASSERT_TRUE(ok(append({in_flight})));
  EXPECT_THAT(due(), ElementsAre("0 attempts 2", "2 attempts 0"));
}

TEST_P(ParkingSuite, what_was_in_flight_when_a_person_discarded_the_first_decides_nothing) {
  settle(make_spec("mails"), {"a", "a"}, {retrying(0), waiting(1)});
  EXPECT_EQ(due().size(), 2U);
  const auto in_flight = result(1, ParkedState::retrying, seconds(100));
  EXPECT_EQ(discard({0}), 1U);
  ASSERT_TRUE(ok(append({in_flight})));
  EXPECT_THAT(due(), ElementsAre("1 attempts 0"));
}

TEST_P(ParkingSuite, a_corrected_copy_takes_the_place_of_the_first_event_and_is_due) {
  settle(make_spec("mails"), {"a", "a"}, {retrying(0, seconds(100)), waiting(1)});
  const auto of_original =
      std::vector{result(0, ParkedState::retrying, seconds(100)), result(0, std::nullopt)};
  EXPECT_FALSE(edit(1)) << "one is before it";
  ASSERT_TRUE(ok(edit(0)));
  EXPECT_THAT(due(), ElementsAre("0 attempts 0", "1 attempts 0"));
  EXPECT_THAT(states(), ElementsAre("0 retrying 0", "1 waiting 0"));
  ASSERT_TRUE(ok(append(of_original))) << "the original is gone";
  EXPECT_THAT(due(), ElementsAre("0 attempts 0", "1 attempts 0"));
  EXPECT_EQ(delivered(), 0);
}

TEST_P(ParkingSuite, a_corrected_copy_of_a_dead_event_is_due_at_its_place_in_the_key) {
  settle(blocking(), {"a", "a"}, {retrying(0), waiting(1)});
  ASSERT_TRUE(ok(append({result(0, ParkedState::dead)})));
  ASSERT_TRUE(ok(edit(0)));
  EXPECT_THAT(due(), ElementsAre("0 attempts 0", "1 attempts 0"));
  EXPECT_THAT(blocked(true), ElementsAre("a"));
}

TEST_P(ParkingSuite, a_subscription_that_begins_anew_keeps_what_it_does_not_send_again) {
  settle(make_spec("mails"), {"a", "b", "a", "b"},
         {retrying(0), retrying(1), waiting(2), waiting(3)});
  ASSERT_TRUE(ok(append({result(1, std::nullopt)})));
  auto changes = store::open_subscription_changes({.url = database_->url()});
  ASSERT_TRUE(ok(changes));
  ASSERT_TRUE(
      ok((*changes)->reset("mails", {.kind = store::NewStart::Kind::after, .after = seqs_[1]})));
  row_ = read_row("mails");
  EXPECT_THAT(states(), ElementsAre("0 retrying 1 too big"));
  EXPECT_THAT(due(), ElementsAre("0 attempts 1"));
  EXPECT_THAT(blocked(), ElementsAre("a")) << "b has nothing to do any more";
  EXPECT_EQ(live_, 1U);
  ASSERT_TRUE(ok((*changes)->reset("mails", {})));
  row_ = read_row("mails");
  EXPECT_THAT(states(), IsEmpty());
  EXPECT_THAT(blocked(), IsEmpty());
}

}  // namespace
}  // namespace outbox::conformance
