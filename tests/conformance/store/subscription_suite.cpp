// Tests that subscriptions are created with their first cursor, changed, paused and stopped.
#include <tuple>

#include "conformance/store/fixture.hpp"
#include "support/lane_owner.hpp"

namespace outbox::conformance {

using SubscriptionSuite = StoreTest;
INSTANTIATE_TEST_SUITE_P(Store, SubscriptionSuite, ::testing::ValuesIn(backends()), backend_name);

TEST_P(SubscriptionSuite, apply_creates_then_changes_then_does_nothing) {
  auto catalog = store_->catalog();
  ASSERT_TRUE(ok(catalog));
  SubscriptionSpec spec = make_spec("mails");
  spec.event_types = {"Order*"};
  spec.sink_settings["path"] = "/tmp/x \"quoted\"";
  EXPECT_EQ((*catalog)->apply(spec).value_or(false), true);
  EXPECT_EQ((*catalog)->apply(spec).value_or(true), false);
  const auto created = read_row("mails");
  EXPECT_EQ(created.config_version, 1);
  EXPECT_EQ(created.state, store::SubscriptionState::active);
  EXPECT_EQ(created.spec.sink_settings, spec.sink_settings);
  EXPECT_EQ(created.spec.event_types, spec.event_types);

  spec.event_types = {"Order*", "Invoice*"};
  EXPECT_EQ((*catalog)->apply(spec).value_or(false), true);
  const auto changed = read_row("mails");
  EXPECT_EQ(changed.id, created.id);
  EXPECT_EQ(changed.config_version, 2);
  EXPECT_EQ(changed.spec.event_types, spec.event_types);
}

TEST_P(SubscriptionSuite, a_change_keeps_the_cursor) {
  SubscriptionSpec spec = make_spec("mails");
  const auto before = subscribe(spec);
  write(make_events(3));
  LogDrive drive(*store_, load(before.id).cursor);
  const auto page = drive.next();
  auto progress = store_->progress();
  ASSERT_TRUE(ok(progress));
  const auto settlement = make_settlement(before, page, 0);
  ASSERT_TRUE(ok(
      (*progress)->append({.settlements = std::span(&settlement, 1)}, store::Durability::flushed)));
  spec.event_types = {"Other*"};
  const auto changed = subscribe(spec);
  EXPECT_EQ(load(changed.id).cursor, after(page));
}

TEST_P(SubscriptionSuite, refuses_a_bad_name) {
  auto catalog = store_->catalog();
  ASSERT_TRUE(ok(catalog));
  auto applied = (*catalog)->apply(make_spec("not a name"));
  ASSERT_FALSE(applied);
  EXPECT_EQ(applied.error().code, Errc::invalid_argument);
}

TEST_P(SubscriptionSuite, starts_at_the_beginning_or_now) {
  write(make_events(3, "old"));
  const auto all = subscribe(make_spec("all"));
  SubscriptionSpec late_spec = make_spec("late");
  late_spec.start = Start::now;
  const auto late = subscribe(late_spec);
  write(make_events(2, "new"));
  LogDrive from_beginning(*store_, load(all.id).cursor);
  EXPECT_THAT(list_keys(from_beginning.rest()),
              ::testing::ElementsAre("old0", "old1", "old2", "new0", "new1"));
  LogDrive from_now(*store_, load(late.id).cursor);
  EXPECT_THAT(list_keys(from_now.rest()), ::testing::ElementsAre("new0", "new1"));
}

TEST_P(SubscriptionSuite, pauses_stops_and_resumes) {
  const auto created = subscribe(make_spec("mails"));
  auto catalog = store_->catalog();
  ASSERT_TRUE(ok(catalog));
  ASSERT_TRUE(ok((*catalog)->pause("mails", "maintenance of the mail server")));
  auto row = read_row("mails");
  EXPECT_EQ(row.state, store::SubscriptionState::paused);
  EXPECT_EQ(row.reason, "maintenance of the mail server");
  ASSERT_TRUE(ok((*catalog)->resume("mails")));
  EXPECT_EQ(read_row("mails").state, store::SubscriptionState::active);

  test::LaneOwner relay(*store_, "relay");
  const std::int64_t generation = relay.keep().value().generation;
  const EventId event = EventId::generate();
  EXPECT_EQ(
      (*catalog)->stop(created.id, generation, "rejected: too large", 17, event).value_or(false),
      true);
  EXPECT_EQ((*catalog)->stop(created.id + 1, 0, "rejected", 17, event).value_or(true), false);
  row = read_row("mails");
  EXPECT_EQ(row.state, store::SubscriptionState::stopped);
  EXPECT_EQ(row.reason, "rejected: too large");
  EXPECT_EQ(row.stopped_seq, 17);
  EXPECT_EQ(row.stopped_event, event.str());
  ASSERT_TRUE(ok((*catalog)->pause("mails", "maintenance of the mail server")));
  row = read_row("mails");
  EXPECT_EQ(row.state, store::SubscriptionState::stopped);
  EXPECT_EQ(row.reason, "rejected: too large") << "why it stopped would be lost";
  EXPECT_EQ(row.stopped_seq, 17);
  ASSERT_TRUE(ok((*catalog)->resume("mails")));
  row = read_row("mails");
  EXPECT_EQ(row.state, store::SubscriptionState::active);
  EXPECT_EQ(row.reason, "");
  EXPECT_FALSE(row.stopped_seq.has_value());
}

TEST_P(SubscriptionSuite, trouble_is_told_since_when_it_began_and_taken_back) {
  const auto created = subscribe(make_spec("mails"));
  auto catalog = store_->catalog();
  ASSERT_TRUE(ok(catalog));
  test::LaneOwner relay(*store_, "relay");
  const std::int64_t generation = relay.keep().value().generation;
  EXPECT_EQ(read_row("mails").trouble, "");
  EXPECT_EQ(read_row("mails").trouble_since, "");
  ASSERT_TRUE(
      ok((*catalog)->report_trouble(created.id, generation, "no broker answers", relay.id())));
  const auto first = read_row("mails");
  EXPECT_EQ(first.trouble, "no broker answers");
  EXPECT_THAT(first.trouble_since, ::testing::MatchesRegex("....-..-..T..:..:......Z"));
  EXPECT_EQ(first.state, store::SubscriptionState::active);
  ASSERT_TRUE(ok((*catalog)->report_trouble(created.id, generation, "wrong password", relay.id())));
  EXPECT_EQ(read_row("mails").trouble, "wrong password");
  EXPECT_EQ(read_row("mails").trouble_since, first.trouble_since);
  ASSERT_TRUE(ok((*catalog)->report_trouble(created.id, generation, "", relay.id())));
  EXPECT_EQ(read_row("mails").trouble, "");
  EXPECT_EQ(read_row("mails").trouble_since, "");
}

TEST_P(SubscriptionSuite, what_a_relay_says_that_lost_its_lanes_does_not_count) {
  const auto created = subscribe(make_spec("mails"));
  auto catalog = store_->catalog();
  ASSERT_TRUE(ok(catalog));
  test::LaneOwner relay(*store_, "relay");
  const auto standing = relay.keep();
  ASSERT_TRUE(ok(standing));
  ASSERT_TRUE(standing->owns());
  const EventId event = EventId::generate();
  for (const std::int64_t over : {standing->generation - 1, standing->generation + 1}) {
    EXPECT_FALSE((*catalog)->stop(created.id, over, "rejected", 17, event).value_or(true));
    ASSERT_TRUE(ok((*catalog)->report_trouble(created.id, over, "no broker answers", relay.id())));
    EXPECT_EQ(read_row("mails").state, store::SubscriptionState::active);
    EXPECT_EQ(read_row("mails").trouble, "");
  }
  ASSERT_TRUE(ok((*catalog)->report_trouble(created.id, standing->generation, "no broker answers",
                                            relay.id())));
  EXPECT_EQ(read_row("mails").trouble, "no broker answers");
  EXPECT_TRUE(
      (*catalog)->stop(created.id, standing->generation, "rejected", 17, event).value_or(false));
  EXPECT_EQ(read_row("mails").state, store::SubscriptionState::stopped);
}

TEST_P(SubscriptionSuite, an_outbox_has_an_identity_that_no_other_has) {
  auto catalog = store_->catalog();
  ASSERT_TRUE(ok(catalog));
  const auto identity = (*catalog)->identity();
  ASSERT_TRUE(ok(identity));
  EXPECT_NE(*identity, "");
  ASSERT_TRUE(ok(store_->migrate()));
  EXPECT_EQ((*store_->catalog())->identity().value_or(""), *identity);
  const auto other = GetParam().create(Begin::empty);
  auto store = store::open_store({.url = other->url()});
  ASSERT_TRUE(ok(store));
  ASSERT_TRUE(ok((*store)->migrate()));
  EXPECT_NE((*(*store)->catalog())->identity().value_or(*identity), *identity);
}

TEST_P(SubscriptionSuite, an_unknown_subscription_is_an_error) {
  auto catalog = store_->catalog();
  ASSERT_TRUE(ok(catalog));
  for (const Status& status : {(*catalog)->pause("nobody", ""), (*catalog)->resume("nobody")}) {
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, Errc::not_found) << status.error().text();
  }
  auto progress = store_->progress();
  ASSERT_TRUE(ok(progress));
  auto strands = (*progress)->load(12345, store::kAllLanes);
  ASSERT_FALSE(strands) << "never a start";
  EXPECT_EQ(strands.error().remedy, Remedy::fix) << strands.error().text();
}

TEST_P(SubscriptionSuite, counts_what_is_pending_and_done) {
  const auto row = subscribe(make_spec("mails"));
  write(make_events(5));
  LogDrive drive(*store_, load(row.id).cursor, 3);
  const auto page = drive.next();
  ASSERT_EQ(page.events.size(), 3U);
  auto settlement = make_settlement(row, page, 0);
  settlement.filtered = store::Tally{.count = 1, .hash = 7};
  settlement.acked.count = 2;
  auto progress = store_->progress();
  auto catalog = store_->catalog();
  ASSERT_TRUE(ok(progress));
  ASSERT_TRUE(ok(catalog));
  auto counts = (*catalog)->progress(row, 100);
  ASSERT_TRUE(ok(counts));
  ASSERT_TRUE(ok((*catalog)->add_totals(*counts)));
  EXPECT_EQ(counts->last_settled_at, "") << "nothing was settled yet";
  ASSERT_TRUE(ok((*progress)->append({.settlements = std::span(&settlement, 1)},
                                     store::Durability::eventual)));

  counts = (*catalog)->progress(row, 100);
  ASSERT_TRUE(ok(counts));
  ASSERT_TRUE(ok((*catalog)->add_totals(*counts)));
  EXPECT_EQ(counts->pending, 2);
  EXPECT_FALSE(counts->pending_capped);
  EXPECT_EQ(counts->acked, 2);
  EXPECT_EQ(counts->filtered, 1);
  EXPECT_THAT(counts->last_settled_at, ::testing::MatchesRegex("20..-..-..T..:..:...*"));
  EXPECT_THAT(counts->oldest_pending_at, ::testing::MatchesRegex("20..-..-..T..:..:...*"));

  counts = (*catalog)->progress(row, 2);
  ASSERT_TRUE(ok(counts));
  EXPECT_EQ(counts->pending, 2);
  EXPECT_FALSE(counts->pending_capped) << "so many are not more";

  counts = (*catalog)->progress(row, 1);
  ASSERT_TRUE(ok(counts));
  ASSERT_TRUE(ok((*catalog)->add_totals(*counts)));
  EXPECT_EQ(counts->pending, 1);
  EXPECT_TRUE(counts->pending_capped);

  LogDrive rest(*store_, load(row.id).cursor);
  const auto last = rest.next();
  const auto settled = make_settlement(row, last, 0);
  ASSERT_TRUE(
      ok((*progress)->append({.settlements = std::span(&settled, 1)}, store::Durability::flushed)));
  counts = (*catalog)->progress(row, 100);
  ASSERT_TRUE(ok(counts));
  ASSERT_TRUE(ok((*catalog)->add_totals(*counts)));
  EXPECT_EQ(counts->pending, 0);
  EXPECT_EQ(counts->oldest_pending_at, "");
}

TEST_P(SubscriptionSuite, the_overview_is_what_is_known_of_each) {
  const auto first = subscribe(make_spec("mails"));
  (void)subscribe(make_spec("audit"));
  (void)write(make_events(5));
  auto late = make_spec("late");
  late.start = Start::now;
  (void)subscribe(late);
  test::LaneOwner relay(*store_, "relay");
  const auto generation = relay.keep()->generation;
  LogDrive drive(*store_, load(first.id).cursor, 2);
  const auto page = drive.next();
  const auto settlement = make_settlement(first, page, generation);
  auto progress = store_->progress();
  ASSERT_TRUE(ok(
      (*progress)->append({.settlements = std::span(&settlement, 1)}, store::Durability::flushed)));

  auto catalog = store_->catalog();
  auto all = (*catalog)->overview(4);
  ASSERT_TRUE(ok(all));
  ASSERT_EQ(all->size(), 3U);
  const auto& [audit, later, mails] = std::tie((*all)[0], (*all)[1], (*all)[2]);
  EXPECT_EQ(audit.row.spec.name, "audit");
  EXPECT_EQ(audit.progress.pending, 4);
  EXPECT_TRUE(audit.progress.pending_capped);
  EXPECT_EQ(later.row.spec.name, "late");
  EXPECT_EQ(later.progress.pending, 0);
  EXPECT_EQ(mails.progress.pending, 3);
  EXPECT_FALSE(mails.progress.pending_capped);
  EXPECT_EQ(mails.progress.acked, 2);
  EXPECT_EQ(mails.progress.generation, generation);
  EXPECT_NE(mails.progress.last_settled_at, "");
  EXPECT_EQ(mails.parked.dead, 0);
  for (const auto& one : *all) {
    auto alone = (*catalog)->progress(one.row, 4);
    ASSERT_TRUE(ok(alone));
    EXPECT_EQ(alone->pending, one.progress.pending);
    EXPECT_EQ(alone->oldest_pending_at, one.progress.oldest_pending_at);
  }
}

}  // namespace outbox::conformance
