// Tests how events are listed, and what became of them in each subscription.
#include <nlohmann/json.hpp>

#include "conformance/store/fixture.hpp"
#include "event/key.hpp"
#include "event/time_text.hpp"
#include "support/lane_owner.hpp"

namespace outbox::conformance {
namespace {

using std::chrono::seconds;
using store::EventLife;
using store::EventListing;
using store::ParkedState;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class EventsSuite : public StoreTest {
 protected:
  void SetUp() override {
    StoreTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    relay_ = std::make_unique<test::LaneOwner>(*store_, "relay");
    generation_ = relay_->keep(seconds(60))->generation;
    progress_ = std::move(*store_->progress());
    events_ = std::move(*store_->events());
  }

  /// Settles what the subscription can read. The events in `parked` are parked, the others acked.
  void settle(const store::SubscriptionRow& row, const std::vector<store::ParkedEvent>& parked = {},
              std::size_t rows = 1000) {
    LogDrive drive(*store_, load(row.id).cursor, rows);
    const auto page = drive.next();
    auto settlement = make_settlement(row, page, generation_);
    std::vector<store::ParkedEvent> events = parked;
    for (auto& event : events) {
      const EventView& view = page.events.at(static_cast<std::size_t>(event.seq));
      event.subscription = row.id;
      event.generation = generation_;
      event.id = view.id;
      event.seq = view.seq;
      event.key =
          store::parked_key(event::key_hash(view.aggregate_type, view.aggregate_id), view.seq);
    }
    ASSERT_TRUE(ok(progress_->append(
        {.settlements = std::span(&settlement, 1), .parked = events, .results = {}},
        store::Durability::flushed)));
  }
  std::vector<EventListing> list(const store::EventFilter& filter, std::size_t limit = 100,
                                 bool whole = false) {
    auto page = events_->list(filter, limit, whole);
    EXPECT_TRUE(ok(page));
    return page ? std::move(page->events) : std::vector<EventListing>{};
  }
  /// The life of the event in the subscription.
  EventLife life(const EventId& id, const std::string& subscription = "mails") {
    for (const auto& event : list({.id = id})) {
      for (const auto& life : event.subscriptions) {
        if (life.subscription == subscription) return life;
      }
    }
    return {.state = "unknown"};
  }
  std::vector<std::string> states(const std::vector<EventId>& ids,
                                  const std::string& subscription = "mails") {
    std::vector<std::string> all;
    for (const EventId& id : ids) all.push_back(life(id, subscription).state);
    return all;
  }
  std::vector<EventId> write_keys(const std::vector<std::string>& keys) {
    std::vector<Event> events;
    for (const std::string& key : keys) events.push_back(make_event(key));
    return write(events);
  }
  static store::ParkedEvent parked(std::int64_t place, ParkedState state,
                                   seconds due_in = seconds(0)) {
    const bool first = state == ParkedState::retrying;
    return {.seq = place,
            .state = state,
            .attempts = first ? 1U : 0U,
            .due_in = due_in,
            .error = first ? "too big" : ""};
  }
  static store::ParkedEdit make_edit(const store::SubscriptionRow& row, std::int64_t seq,
                                     const EventId& id) {
    return {.subscription = row.id,
            .seq = seq,
            .id = id,
            .new_id = EventId::generate(),
            .event_type = "OrderFixed",
            .payload = R"({"n":2})",
            .content_type = "application/json",
            .headers = R"({"outbox-edited-from": ")" + id.str() + R"("})",
            .actor = "anna",
            .reason = "a comma"};
  }

  std::unique_ptr<test::LaneOwner> relay_;
  std::unique_ptr<store::Progress> progress_;
  std::unique_ptr<store::Events> events_;
  std::int64_t generation_{0};
};

INSTANTIATE_TEST_SUITE_P(Store, EventsSuite, ::testing::ValuesIn(backends()), backend_name);

TEST_P(EventsSuite, events_are_listed_newest_first_and_whole_on_request) {
  const auto ids = write_keys({"a", "b", "c"});
  auto page = events_->list({}, 2, false);
  ASSERT_TRUE(ok(page));
  ASSERT_EQ(page->events.size(), 2U);
  EXPECT_EQ(page->events[0].id, ids[2]);
  EXPECT_EQ(page->events[1].id, ids[1]);
  EXPECT_EQ(page->events[0].aggregate_type, "order");
  EXPECT_EQ(page->events[0].aggregate_id, "c");
  EXPECT_EQ(page->events[0].event_type, "OrderPlaced");
  EXPECT_EQ(page->events[0].content_type, "application/json");
  EXPECT_GT(page->events[0].created_at, Timestamp());
  EXPECT_TRUE(page->events[0].in_log);
  EXPECT_EQ(page->events[0].payload, "");
  EXPECT_THAT(page->events[0].subscriptions, IsEmpty());
  EXPECT_TRUE(page->complete);
  const auto whole = list({.id = ids[0]}, 10, true);
  ASSERT_EQ(whole.size(), 1U);
  EXPECT_EQ(whole[0].payload, R"({"n":1})");
  EXPECT_EQ(whole[0].headers, "{}");
}

TEST_P(EventsSuite, an_empty_log_has_none) {
  EXPECT_THAT(list({}), IsEmpty());
  EXPECT_THAT(list({.id = EventId::generate()}), IsEmpty());
  EXPECT_THAT(list({.since_us = 1, .until_us = 2}), IsEmpty());
}

TEST_P(EventsSuite, they_are_chosen_by_key_type_and_time) {
  for (const bool indexed : {false, true}) {
    if (indexed) {
      EXPECT_EQ(store_->make_lookup_indexes().value().size(), 2U);
      EXPECT_THAT(store_->make_lookup_indexes().value(), IsEmpty());
    } else {
      Event other = make_event("a");
      other.event_type = "OrderPaid";
      other.aggregate_type = "invoice";
      (void)write_keys({"a", "b", "a"});
      (void)write({other});
    }
    EXPECT_EQ(list({.aggregate_type = "order", .aggregate_id = "a"}).size(), 2U);
    EXPECT_EQ(list({.aggregate_type = "invoice", .aggregate_id = "a"}).size(), 1U);
    EXPECT_EQ(list({.aggregate_type = "order", .aggregate_id = "x"}).size(), 0U);
    EXPECT_EQ(list({.event_type = "OrderPaid"}).size(), 1U);
    EXPECT_EQ(
        list({.aggregate_type = "order", .aggregate_id = "a", .event_type = "OrderPaid"}).size(),
        0U);
    const auto all = list({});
    ASSERT_EQ(all.size(), 4U);
    const std::int64_t last = event::to_us(all.front().created_at);
    EXPECT_EQ(list({.since_us = last + 1}).size(), 0U);
    EXPECT_EQ(list({.until_us = last + 1}).size(), 4U);
    EXPECT_EQ(list({.since_us = event::to_us(all.back().created_at)}).size(), 4U);
    EXPECT_EQ(list({.until_us = event::to_us(all.back().created_at)}).size(), 0U);
    EXPECT_EQ(list({.since_us = last}).front().id, all.front().id);
  }
}

TEST_P(EventsSuite, an_id_is_found_by_its_time_or_among_the_newest_or_by_an_index) {
  const auto ours = write_keys({"a", "b", "c"});
  Event foreign = make_event("d");
  foreign.id = EventId::parse("3f0f5d2e-8a55-4d0c-9a43-0d6a4ef0a4cb").value();
  Event late = make_event("e");  // Its id was made 20 hours before it was written.
  late.id = EventId::generate();
  std::int64_t ms = 0;
  for (std::size_t i = 0; i < 6; ++i) ms = ms * 256 + late.id->bytes.at(i);
  ms -= 20 * 3600 * 1000;
  for (std::size_t i = 6; i-- > 0; ms /= 256)
    late.id->bytes.at(i) = static_cast<std::uint8_t>(ms % 256);
  (void)write({foreign, late, foreign});
  for (const bool indexed : {false, true}) {
    if (indexed) {
      ASSERT_TRUE(ok(store_->make_lookup_indexes()));
    }
    for (const EventId& id : ours) EXPECT_EQ(list({.id = id}).size(), 1U);
    EXPECT_EQ(list({.id = *late.id}).size(), 1U);
    EXPECT_EQ(list({.id = *foreign.id}).size(), 2U) << "ids need not be unique";
    const auto page = events_->list({.id = EventId::generate()}, 10, false);
    ASSERT_TRUE(ok(page));
    EXPECT_THAT(page->events, IsEmpty());
    EXPECT_EQ(page->complete, indexed);
  }
}

TEST_P(EventsSuite, an_event_is_pending_until_the_cursor_passes_it) {
  const auto row = subscribe(make_spec("mails"));
  const auto ids = write_keys({"a", "b", "c"});
  EXPECT_THAT(states(ids), ElementsAre("pending", "pending", "pending"));
  settle(row, {}, 2);
  EXPECT_THAT(states(ids), ElementsAre("published", "published", "pending"));
  const auto events = list({.id = ids[0]});
  ASSERT_EQ(events.size(), 1U);
  const auto by = events[0].subscriptions.at(0).published_by_us;
  ASSERT_TRUE(by.has_value());
  EXPECT_GE(*by, event::to_us(events[0].created_at));
}

TEST_P(EventsSuite, the_settlement_that_passed_it_says_when) {
  const auto row = subscribe(make_spec("mails"));
  std::vector<EventId> ids;
  std::vector<std::int64_t> passed;
  for (int i = 0; i < 40; ++i) {
    ids.push_back(write_keys({"k" + std::to_string(i % 3)}).front());
    settle(row);
    passed.push_back(life(ids.back()).published_by_us.value_or(0));
    // A new owner comes now and then. Its claims begin where the rows before them ended.
    if (i % 13 == 12) {
      ASSERT_TRUE(ok(relay_->leave()));
      relay_ = std::make_unique<test::LaneOwner>(*store_, "relay");
      generation_ = relay_->keep(seconds(60))->generation;
    }
  }
  for (std::size_t i = 0; i < ids.size(); ++i) {
    EXPECT_EQ(life(ids[i]).published_by_us, passed[i]) << i;
    if (i > 0) {
      EXPECT_GE(passed[i], passed[i - 1]);
    }
  }
}

TEST_P(EventsSuite,
       what_a_filter_does_not_want_is_filtered_and_what_came_before_the_start_is_skipped) {
  auto wants = make_spec("mails");
  wants.event_types = {"Order*"};
  wants.match_headers = {{"Tenant", "7"}};
  const auto row = subscribe(wants);
  Event wanted = make_event("a");
  wanted.headers = {{"tenant", "7"}};
  Event other = make_event("a");
  other.event_type = "Invoice";
  other.headers = wanted.headers;
  auto ids = write({wanted, other, make_event("b")});
  auto late = make_spec("late");
  late.start = Start::now;
  const auto late_row = subscribe(late);
  settle(row);
  EXPECT_THAT(states(ids), ElementsAre("published", "filtered", "filtered"));
  EXPECT_THAT(states(ids, "late"), ElementsAre("skipped", "skipped", "skipped"));
  ids = write({wanted});
  settle(late_row);
  EXPECT_THAT(states(ids, "late"), ElementsAre("published"));
  EXPECT_THAT(states(ids), ElementsAre("pending"));
}

TEST_P(EventsSuite, a_changed_filter_does_not_change_what_was_delivered) {
  const auto row = subscribe(make_spec("mails"));
  const auto ids = write_keys({"a"});
  settle(row);
  auto narrower = make_spec("mails");
  narrower.event_types = {"Nothing"};
  (void)subscribe(narrower);
  EXPECT_THAT(states(ids), ElementsAre("published"));
}

TEST_P(EventsSuite, parked_events_say_why_and_behind_whom_they_wait) {
  const auto row = subscribe(make_spec("mails"));
  const auto ids = write_keys({"a", "b", "a", "a"});
  settle(row, {parked(0, ParkedState::retrying, seconds(100)), parked(2, ParkedState::waiting),
               parked(3, ParkedState::waiting)});
  EXPECT_THAT(states(ids), ElementsAre("retrying", "published", "waiting", "waiting"));
  const EventLife first = life(ids[0]);
  EXPECT_EQ(first.attempts, 1);
  EXPECT_EQ(first.error, "too big");
  EXPECT_TRUE(first.next_attempt_at_us.has_value());
  EXPECT_FALSE(first.published_by_us.has_value());
  const EventLife behind = life(ids[3]);
  EXPECT_EQ(behind.waiting_for, ids[0]);
  EXPECT_TRUE(behind.waiting_for_seq.has_value());
  EXPECT_FALSE(behind.next_attempt_at_us.has_value());
}

TEST_P(EventsSuite, what_left_the_parked_events_says_how) {
  const auto row = subscribe(make_spec("mails"));
  const auto ids = write_keys({"a", "b"});
  settle(row, {parked(0, ParkedState::retrying), parked(1, ParkedState::retrying)});
  const auto seq = [&](std::size_t i) { return list({.id = ids[i]}).at(0).seq; };
  const store::RetryResult delivered{.subscription = row.id,
                                     .generation = generation_,
                                     .seq = seq(0),
                                     .id = ids[0],
                                     .state = std::nullopt,
                                     .attempts = 2};
  ASSERT_TRUE(
      ok(progress_->append({.settlements = {}, .parked = {}, .results = std::span(&delivered, 1)},
                           store::Durability::flushed)));
  const std::int64_t other = seq(1);
  ASSERT_TRUE(
      ok((*store_->parked_events())->discard(row.id, std::span(&other, 1), "anna", "a test")));
  EXPECT_THAT(states(ids), ElementsAre("published", "discarded"));
  EXPECT_EQ(life(ids[0]).attempts, 2);
  EXPECT_TRUE(life(ids[0]).published_by_us.has_value());
  EXPECT_EQ(life(ids[1]).ended_by, "anna");
  EXPECT_EQ(life(ids[1]).reason, "a test");
}

// ---- corrected copies

TEST_P(EventsSuite, a_corrected_copy_takes_the_place_of_a_parked_event) {
  const auto row = subscribe(make_spec("mails"));
  const auto ids = write_keys({"a", "a"});
  settle(row, {parked(0, ParkedState::retrying, seconds(100)), parked(1, ParkedState::waiting)});
  auto parked_events = std::move(*store_->parked_events());
  const auto version = read_row("mails").parked_version;
  const std::int64_t seq = list({.id = ids[0]}).at(0).seq;
  const auto edit = make_edit(row, seq, ids[0]);
  ASSERT_TRUE(ok(parked_events->edit(edit)));
  EXPECT_GT(read_row("mails").parked_version, version) << "so that the relay notices";

  const auto due = progress_->due(row.id, {store::kAllLanes, generation_}, {}, {});
  ASSERT_TRUE(ok(due));
  ASSERT_EQ(due->rows.size(), 2U) << "it is due now, and what waited waits behind it";
  EXPECT_EQ(due->rows[0].event.id, edit.new_id);
  EXPECT_EQ(due->rows[0].event.seq, seq);
  EXPECT_EQ(due->rows[0].event.event_type, "OrderFixed");
  EXPECT_EQ(due->rows[0].event.payload, R"({"n":2})");
  EXPECT_EQ(nlohmann::json::parse(due->rows[0].event.headers)["outbox-edited-from"], ids[0].str());
  EXPECT_EQ(due->rows[0].attempts, 0U);
  EXPECT_EQ(due->rows[1].event.id, ids[1]);

  EXPECT_EQ(life(ids[0]).state, "edited");
  EXPECT_EQ(life(ids[0]).replaced_by, edit.new_id);
  EXPECT_EQ(life(ids[0]).ended_by, "anna");
  EXPECT_EQ(life(ids[1]).waiting_for, edit.new_id);
  const auto copy = list({.id = edit.new_id});
  ASSERT_EQ(copy.size(), 1U);
  EXPECT_FALSE(copy[0].in_log);
  EXPECT_EQ(copy[0].seq, seq);
  EXPECT_EQ(copy[0].event_type, "OrderFixed");
  EXPECT_EQ(copy[0].subscriptions.at(0).state, "retrying");

  const store::RetryResult late{.subscription = row.id,
                                .generation = generation_,
                                .seq = seq,
                                .id = ids[0],
                                .state = std::nullopt,
                                .attempts = 2};
  const auto append = [&](const store::RetryResult& result) {
    return progress_->append({.settlements = {}, .parked = {}, .results = std::span(&result, 1)},
                             store::Durability::flushed);
  };
  ASSERT_TRUE(ok(append(late)));
  EXPECT_EQ(life(edit.new_id).state, "retrying") << "an outcome of the original is not the copy's";
  store::RetryResult delivered = late;
  delivered.id = edit.new_id;
  ASSERT_TRUE(ok(append(delivered)));
  EXPECT_EQ(life(edit.new_id).state, "published");
  EXPECT_EQ(life(ids[0]).state, "edited");
  EXPECT_EQ(life(ids[1]).state, "retrying");

  // The store keeps the outcome of a delivered copy, but not its content. The original's, which
  // stands at the same place of the log, must not be shown for it.
  const auto gone = list({.id = edit.new_id}, 10, true);
  ASSERT_EQ(gone.size(), 1U);
  EXPECT_FALSE(gone[0].in_log);
  EXPECT_FALSE(gone[0].content_kept);
  EXPECT_EQ(gone[0].seq, seq);
  EXPECT_EQ(gone[0].aggregate_id, "a");
  EXPECT_EQ(gone[0].event_type, "");
  EXPECT_EQ(gone[0].payload, "");
  EXPECT_EQ(gone[0].headers, "");
}

TEST_P(EventsSuite, what_waits_what_may_be_in_flight_and_what_is_gone_is_not_edited) {
  const auto row = subscribe(make_spec("mails"));
  const auto ids = write_keys({"a", "a", "b"});
  settle(row, {parked(0, ParkedState::retrying), parked(1, ParkedState::waiting)});
  auto parked_events = std::move(*store_->parked_events());
  const auto seq = [&](std::size_t i) { return list({.id = ids[i]}).at(0).seq; };
  EXPECT_EQ(parked_events->edit(make_edit(row, seq(1), ids[1])).error().code,
            Errc::invalid_argument);
  EXPECT_EQ(parked_events->edit(make_edit(row, seq(2), ids[2])).error().code, Errc::not_found);
  EXPECT_EQ(parked_events->edit(make_edit(row, seq(0), ids[1])).error().code, Errc::not_found);
  const Status due = parked_events->edit(make_edit(row, seq(0), ids[0]));
  EXPECT_EQ(due.error().code, Errc::unavailable);
  EXPECT_EQ(due.error().remedy, Remedy::retry_call);
  EXPECT_THAT(states(ids), ElementsAre("retrying", "waiting", "published"));
  ASSERT_TRUE(ok(relay_->leave()));
  EXPECT_TRUE(ok(parked_events->edit(make_edit(row, seq(0), ids[0]))))
      << "no relay can be sending it";
}

TEST_P(EventsSuite, a_dead_event_that_is_edited_is_first_in_its_key_again) {
  const auto row = subscribe(make_spec("mails"));
  const auto ids = write_keys({"a", "a"});
  settle(row, {parked(0, ParkedState::dead), parked(1, ParkedState::retrying)});
  auto parked_events = std::move(*store_->parked_events());
  const auto edit = make_edit(row, list({.id = ids[0]}).at(0).seq, ids[0]);
  ASSERT_TRUE(ok(parked_events->edit(edit)));
  EXPECT_EQ(life(edit.new_id).state, "retrying");
  EXPECT_EQ(life(ids[1]).state, "waiting");
}

}  // namespace
}  // namespace outbox::conformance
