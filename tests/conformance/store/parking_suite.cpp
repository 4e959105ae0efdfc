// Parked events: set aside with a settlement, sent again in the order of their keys, given up. The law of docs/design/parking.md, row by
// row.
#include <algorithm>
#include <map>
#include <set>

#include "conformance/store/fixture.hpp"
#include "event/key.hpp"
#include "store/subscription_changes.hpp"
#include "support/lane_owner.hpp"

namespace outbox::conformance {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using store::ParkedState;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// Events are named by their place among those that the test wrote.
class ParkingSuite : public StoreTest {
 protected:
  using Texts = std::vector<std::string>;

  void SetUp() override {
    StoreTest::SetUp();
    relay_ = std::make_unique<test::LaneOwner>(*store_, "relay");
    generation_ = relay_->keep(seconds(60))->generation;
    progress_ = std::move(*store_->progress());
    people_ = std::move(*store_->parked_events());
  }
  /// A new subscription, and events of these keys, all settled; those in `parked` by being parked.
  void settle(SubscriptionSpec spec, const Texts& keys, std::vector<store::ParkedEvent> parked) {
    spec.start = "now";
    row_ = subscribe(spec);
    keys_.clear();
    seqs_.clear();
    ids_.clear();
    versions_.clear();
    settle_more(keys, std::move(parked));
  }
  void settle_more(const Texts& keys, std::vector<store::ParkedEvent> parked) {
    std::vector<Event> events;
    for (const std::string& key : keys) events.push_back(make_event(key));
    for (const EventId& id : write(events)) ids_.push_back(id);
    LogDrive drive(*store_, load(row_.id).cursor);
    const auto page = drive.next();
    ASSERT_EQ(page.events.size(), keys.size());
    for (const EventView& event : page.events) {
      seqs_.push_back(event.seq);
      keys_.push_back(
          store::parked_key(event::key_hash(event.aggregate_type, event.aggregate_id), event.seq));
      names_[keys_.back()] = event.aggregate_id;
    }
    auto settlement = settlement_of(row_, page, generation_);
    settlement.acked = {};
    for (auto& event : parked) {
      event = at(event);
      settlement.parked.add(event::id_hash(event.id));
    }
    status_ = note_released(progress_->append(
        {.settlements = std::span(&settlement, 1), .parked = parked}, store::Durability::flushed));
  }
  /// Its place in what it is called in the log.
  store::ParkedEvent at(store::ParkedEvent event) const {
    const auto place = static_cast<std::size_t>(event.seq);
    event.subscription = row_.id;
    event.generation = generation_;
    event.seq = seqs_.at(place);
    event.id = ids_.at(place);
    event.key = keys_.at(place);
    return event;
  }
  static store::ParkedEvent parked(std::int64_t event, ParkedState state) {
    return {.seq = event, .state = state, .attempts = 1, .error = "too big"};
  }
  static store::ParkedEvent retrying(std::int64_t event, milliseconds due_in = milliseconds(0)) {
    auto one = parked(event, ParkedState::retrying);
    one.due_in = due_in;
    return one;
  }
  static store::ParkedEvent waiting(std::int64_t event) {
    return {.seq = event, .state = ParkedState::waiting};
  }
  /// As its sender saw it when due() was called last.
  store::RetryResult result(std::int64_t event, std::optional<ParkedState> state,
                            milliseconds due_in = milliseconds(0)) {
    const auto place = static_cast<std::size_t>(event);
    return {.subscription = row_.id,
            .generation = generation_,
            .seq = seqs_.at(place),
            .id = ids_.at(place),
            .key = keys_.at(place),
            .version = versions_[keys_.at(place)],
            .state = state,
            .attempts = 2,
            .due_in = due_in,
            .error = state ? "no" : ""};
  }
  Status append(std::vector<store::RetryResult> results) {
    return note_released(
        progress_->append({.settlements = {}, .results = results}, store::Durability::eventual));
  }
  Status note_released(const Result<std::vector<store::ReleasedKey>>& released) {
    released_.clear();
    if (!released) return tl::unexpected(released.error());
    EXPECT_TRUE(std::is_sorted(released->begin(), released->end()));
    for (const auto& key : *released) {
      EXPECT_EQ(key.subscription, row_.id);
      released_.push_back(names_[key.key]);
    }
    std::sort(released_.begin(), released_.end());
    return {};
  }
  std::int64_t place_of(std::int64_t seq) const {
    const auto found = std::find(seqs_.begin(), seqs_.end(), seq);
    EXPECT_NE(found, seqs_.end());
    return found - seqs_.begin();
  }
  /// The events that are due and those behind them, each with its attempts, in the order of their places.
  Texts due() { return due(generation_); }
  Texts due(std::int64_t generation) {
    auto read = progress_->due(row_.id, {store::kAllLanes, generation}, limits_, {});
    EXPECT_TRUE(ok(read));
    std::map<std::int64_t, std::string> all;
    if (!read) return {};
    std::map<std::uint64_t, std::int64_t> last;
    for (const auto& row : read->rows) {
      const std::int64_t place = place_of(row.event.seq);
      EXPECT_EQ(row.event.payload, R"({"n":1})");
      EXPECT_EQ(row.event.headers, "{}");
      EXPECT_EQ(row.event.id, ids_.at(static_cast<std::size_t>(place)));
      EXPECT_EQ(row.key, keys_.at(static_cast<std::size_t>(place)));
      EXPECT_LT(last[row.key], row.event.seq) << "the order of its key";
      last[row.key] = row.event.seq;
      versions_[row.key] = row.version;
      all[place] = std::to_string(place) + " attempts " + std::to_string(row.attempts);
    }
    next_in_ = read->next_in;
    Texts texts;
    for (auto& [place, text] : all) texts.push_back(std::move(text));
    return texts;
  }
  /// The keys that the stream does not send.
  Texts blocked(bool dead_block = false) {
    const auto keys = progress_->parked_keys(row_.id, store::kAllLanes, dead_block).value();
    live_ = keys.live;
    Texts all;
    for (const auto& key : keys.keys) {
      all.push_back(names_[key.key]);
      if (key.run_seq != 0) all.back() += ", " + std::to_string(place_of(key.run_seq)) + " runs";
    }
    std::sort(all.begin(), all.end());
    return all;
  }
  /// What people see.
  std::vector<store::ParkedListing> list() {
    return people_->list({.subscription = row_.id}, 100, true).value();
  }
  Texts states() {
    Texts all;
    for (const auto& event : list()) {
      all.push_back(std::to_string(place_of(event.seq)) + " " + to_string(event.state) + " " +
                    std::to_string(event.attempts));
      if (!event.error.empty()) all.back() += " " + event.error;
    }
    return all;
  }
  std::size_t retry(const std::vector<std::size_t>& places, bool keep_attempts = false) {
    return people_->retry(row_.id, seqs_at(places), keep_attempts).value();
  }
  std::size_t discard(const std::vector<std::size_t>& places) {
    return people_->discard(row_.id, seqs_at(places), "anna", "a test").value();
  }
  std::vector<std::int64_t> seqs_at(const std::vector<std::size_t>& places) const {
    std::vector<std::int64_t> seqs;
    for (const std::size_t place : places) seqs.push_back(seqs_.at(place));
    return seqs;
  }
  /// Under its new id from then on.
  Status edit(std::size_t place) {
    store::ParkedEdit edit{.subscription = row_.id,
                           .seq = seqs_.at(place),
                           .id = ids_.at(place),
                           .new_id = EventId::generate(),
                           .event_type = "OrderPlaced",
                           .payload = R"({"n":1})",
                           .content_type = "application/json",
                           .headers = "{}",
                           .actor = "anna",
                           .reason = "a test"};
    Status status = people_->edit(edit);
    if (status) ids_.at(place) = edit.new_id;
    return status;
  }
  std::int64_t delivered() {
    auto catalog = store_->catalog();
    store::SubscriptionProgress total;
    total.id = row_.id;
    EXPECT_TRUE(ok((*catalog)->add_totals(total)));
    return total.acked;
  }
  static SubscriptionSpec blocking(const std::string& name = "mails") {
    SubscriptionSpec spec = make_spec(name);
    spec.on_dead = "block";
    return spec;
  }

  std::unique_ptr<test::LaneOwner> relay_;
  std::unique_ptr<store::Progress> progress_;
  std::unique_ptr<store::ParkedEvents> people_;
  std::int64_t generation_{0};
  store::DueLimits limits_;
  store::SubscriptionRow row_;
  std::vector<EventId> ids_;
  std::vector<std::int64_t> seqs_;
  std::vector<std::uint64_t> keys_;
  std::map<std::uint64_t, std::string> names_;
  std::map<std::uint64_t, std::int64_t> versions_;
  Texts released_;
  std::size_t live_{0};
  Status status_;
  std::optional<milliseconds> next_in_;
};

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
  spec.on_dead = "continue";
  spec.start = "now";
  subscribe(spec);
  EXPECT_THAT(blocked(true), ElementsAre("a", "b")) << "not before the relay begins anew";
  EXPECT_THAT(blocked(), ElementsAre("a"));
  EXPECT_THAT(due(), ElementsAre("1 attempts 0"));
}

TEST_P(ParkingSuite, what_died_while_keys_went_on_blocks_nothing_later) {
  SubscriptionSpec spec = make_spec("mails");
  settle(spec, {"a", "a"}, {retrying(0), waiting(1)});
  ASSERT_TRUE(ok(append({result(0, ParkedState::dead)})));
  spec.on_dead = "block";
  spec.start = "now";
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
  auto settlement = settlement_of(row_, page, generation_);
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
  const std::int32_t mails = row_of("mails").id;
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
  const auto version = row_of("mails").parked_version;
  EXPECT_EQ(retry({0, 2}, true), 1U);
  EXPECT_THAT(due(), ElementsAre("0 attempts 1", "1 attempts 0"));
  EXPECT_GT(row_of("mails").parked_version, version) << "so that the relay notices";
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
  SubscriptionSpec spec = make_spec("mails");
  settle(spec, {"a", "a", "a"}, {retrying(0), waiting(1), waiting(2)});
  ASSERT_TRUE(ok(append({result(0, ParkedState::dead)})));
  spec.on_dead = "block";
  spec.start = "now";
  subscribe(spec);
  ASSERT_TRUE(ok(append({result(1, ParkedState::dead)})));
  EXPECT_EQ(retry({0}), 1U);
  EXPECT_THAT(due(), ElementsAre("0 attempts 0"));
  EXPECT_THAT(states(), ElementsAre("0 retrying 0", "1 dead 2 no", "2 waiting 0"));
  ASSERT_TRUE(ok(append({result(0, std::nullopt)})));
  EXPECT_THAT(due(), IsEmpty()) << "the one behind waits for the dead one";
  EXPECT_THAT(blocked(true), ElementsAre("a"));
}

TEST_P(ParkingSuite, each_dead_event_that_blocks_holds_its_key_until_a_person_decides) {
  SubscriptionSpec spec = make_spec("mails");
  settle(spec, {"a", "a", "a"}, {retrying(0), waiting(1), waiting(2)});
  ASSERT_TRUE(ok(append({result(0, ParkedState::dead)})));
  spec.on_dead = "block";
  spec.start = "now";
  subscribe(spec);
  ASSERT_TRUE(ok(append({result(1, ParkedState::dead)})));
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
  row_ = row_of("mails");
  EXPECT_THAT(states(), ElementsAre("0 retrying 1 too big"));
  EXPECT_THAT(due(), ElementsAre("0 attempts 1"));
  EXPECT_THAT(blocked(), ElementsAre("a")) << "b has nothing to do any more";
  EXPECT_EQ(live_, 1U);
  ASSERT_TRUE(ok((*changes)->reset("mails", {})));
  row_ = row_of("mails");
  EXPECT_THAT(states(), IsEmpty());
  EXPECT_THAT(blocked(), IsEmpty());
}

// ---- tasks that run (docs/design/tasks.md)

class TaskRunsSuite : public ParkingSuite {
 protected:
  void SetUp() override {
    ParkingSuite::SetUp();
    runs_ = std::move(*store_->task_runs());
  }
  store::ParkedEvent running(std::int64_t event) const {
    return {.seq = event, .state = ParkedState::running, .error = "runs", .worker = worker_};
  }
  store::TaskRunEnd end(std::int64_t event, std::optional<ParkedState> state, std::int64_t token) {
    store::TaskRunEnd end{.result = result(event, state), .token = token};
    end.result.generation = 0;
    end.result.worker = worker_;
    return end;
  }
  Status write_end(const store::TaskRunEnd& end) { return runs_->end({&end, 1}, {}); }
  /// What became of these events.
  Texts asked(const std::vector<std::size_t>& places) {
    std::vector<store::AskedRow> rows;
    for (const std::size_t place : places)
      rows.push_back({.seq = seqs_.at(place), .key = keys_.at(place)});
    const auto read = progress_->due(row_.id, {store::kAllLanes, generation_}, {}, rows).value();
    Texts all;
    for (const auto& row : read.asked) {
      all.push_back(std::to_string(place_of(row.seq)) + " " +
                    (row.state ? to_string(*row.state) : "gone"));
      if (!row.key_left) all.back() += ", its key is free";
    }
    std::sort(all.begin(), all.end());
    return all;
  }
  Texts runs_of(const EventId& worker) {
    Texts all;
    const auto runs = runs_->runs_of(worker, std::vector{row_.spec.name}, 10).value();
    for (const auto& run : runs) {
      EXPECT_EQ(run.queue, row_.spec.name);
      const std::int64_t place = place_of(run.seq);
      EXPECT_EQ(run.id, ids_.at(static_cast<std::size_t>(place)));
      all.push_back(std::to_string(place) + " attempts " + std::to_string(run.attempts) +
                    " token " + std::to_string(run.token));
      if (run.cancelled) all.back() += ", cancelled";
    }
    return all;
  }

  std::unique_ptr<store::TaskRuns> runs_;
  const EventId worker_{EventId::generate()};
  const EventId other_{EventId::generate()};
};

INSTANTIATE_TEST_SUITE_P(Store, TaskRunsSuite, ::testing::ValuesIn(backends()), backend_name);

TEST_P(TaskRunsSuite, what_runs_is_not_due_and_holds_its_key) {
  settle(make_spec("mails"), {"a", "a", "b", "c"}, {running(0), waiting(1), retrying(2)});
  ASSERT_TRUE(ok(status_));
  EXPECT_THAT(due(), ElementsAre("2 attempts 1"));
  EXPECT_THAT(states(), ElementsAre("0 running 0 runs", "1 waiting 0", "2 retrying 1 too big"));
  EXPECT_THAT(blocked(), ElementsAre("a, 0 runs", "b"));
  EXPECT_EQ(live_, 3U);
  EXPECT_THAT(asked({0, 1, 2, 3}),
              ElementsAre("0 running", "1 waiting", "2 retrying", "3 gone, its key is free"));
  EXPECT_THAT(runs_of(worker_), ElementsAre("0 attempts 0 token 1"));
  EXPECT_THAT(runs_of(other_), IsEmpty());
}

TEST_P(TaskRunsSuite, its_end_is_written_by_its_worker_whoever_owns_the_lane) {
  settle(make_spec("mails"), {"a", "a"}, {running(0), waiting(1)});
  test::LaneOwner successor(*store_, "successor");
  ASSERT_TRUE(ok(relay_->leave()));
  const auto standing = successor.keep(seconds(60));
  ASSERT_TRUE(standing.has_value());
  ASSERT_TRUE(ok(write_end(end(0, std::nullopt, 1))));
  EXPECT_EQ(delivered(), 1);
  EXPECT_THAT(due(standing->generation), ElementsAre("1 attempts 0"));
  ASSERT_TRUE(ok(write_end(end(0, std::nullopt, 1)))) << "a second time, after a doubtful answer";
  EXPECT_EQ(delivered(), 1);
}

TEST_P(TaskRunsSuite, an_end_with_another_token_or_worker_writes_nothing) {
  settle(make_spec("mails"), {"a"}, {running(0)});
  ASSERT_TRUE(ok(write_end(end(0, std::nullopt, 2))));
  auto of_other = end(0, std::nullopt, 1);
  of_other.result.worker = other_;
  ASSERT_TRUE(ok(write_end(of_other)));
  EXPECT_THAT(runs_of(worker_), ElementsAre("0 attempts 0 token 1"));
  EXPECT_EQ(delivered(), 0);
}

TEST_P(TaskRunsSuite, each_run_of_a_row_has_a_token_of_its_own) {
  settle(make_spec("mails"), {"a"}, {running(0)});
  ASSERT_TRUE(ok(write_end(end(0, ParkedState::retrying, 1))));
  EXPECT_THAT(due(), ElementsAre("0 attempts 2"));
  auto again = result(0, ParkedState::running);
  again.worker = other_;
  ASSERT_TRUE(ok(append({again})));
  EXPECT_THAT(runs_of(other_), ElementsAre("0 attempts 2 token 2"));
  ASSERT_TRUE(ok(write_end(end(0, std::nullopt, 1)))) << "the first worker wakes up";
  EXPECT_THAT(runs_of(other_), ElementsAre("0 attempts 2 token 2"));
  auto last = end(0, ParkedState::dead, 2);
  last.result.worker = other_;
  ASSERT_TRUE(ok(write_end(last)));
  EXPECT_THAT(asked({0}), ElementsAre("0 dead, its key is free"));
}

TEST_P(TaskRunsSuite, a_worker_is_seen_by_its_runs_and_heartbeats) {
  settle(make_spec("mails"), {"a"}, {running(0)});
  const std::vector<std::string> names{"mails"};
  auto seen = runs_->others(other_, names).value();
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_EQ(seen[0].id, worker_);
  EXPECT_FALSE(seen[0].beat.has_value());
  ASSERT_TRUE(ok(runs_->beat(worker_, "host:1", "{}")));
  const auto first = runs_->others(other_, names).value().at(0).beat;
  ASSERT_TRUE(ok(runs_->beat(worker_, "host:1", "{}")));
  EXPECT_NE(runs_->others(other_, names).value().at(0).beat, first);
  EXPECT_THAT(runs_->others(worker_, names).value(), IsEmpty()) << "not itself";
  EXPECT_THAT(runs_->others(other_, std::vector<std::string>{"reports"}).value(), IsEmpty());
  ASSERT_TRUE(ok(runs_->leave(worker_)));
  EXPECT_FALSE(runs_->others(other_, names).value().at(0).beat.has_value());
}

TEST_P(TaskRunsSuite, queues_are_counted_and_workers_are_shown_with_what_they_say) {
  SubscriptionSpec spec = make_spec("task.mail");
  spec.aggregate_types = {"outbox-task:mail"};
  settle(spec, {"a", "a", "b"}, {running(0), waiting(1)});
  Event task = make_event("k");
  task.aggregate_type = "outbox-task:mail";
  task.event_type = "send";
  write({make_event("c"), task, task});
  const store::WorkerNote note{.heartbeat = seconds(10),
                               .types = {{.queue = "mail", .name = "send", .runs = {{9, 4}}}}};
  ASSERT_TRUE(ok(runs_->beat(worker_, "host:1", store::to_json(note))));
  const auto queues = store_->task_queues().value();
  const auto report = queues->look({&row_, 1}, 10).value();
  std::map<TaskState, std::int64_t> counts;
  for (const auto& count : report.counts) {
    EXPECT_EQ(count.subscription, row_.id);
    counts[count.state] += count.tasks;
  }
  EXPECT_EQ(counts,
            (std::map<TaskState, std::int64_t>{
                {TaskState::pending, 2}, {TaskState::running, 1}, {TaskState::waiting, 1}}));
  EXPECT_TRUE(report.more.empty());
  EXPECT_THAT(queues->look({&row_, 1}, 2).value().more, ElementsAre(row_.id))
      << "one more is there";
  ASSERT_EQ(report.workers.size(), 1U);
  const store::WorkerRow& worker = report.workers[0];
  EXPECT_EQ(worker.name, "host:1");
  EXPECT_EQ(worker.running, 1);
  EXPECT_TRUE(worker.is_alive());
  ASSERT_EQ(worker.note.types.size(), 1U);
  EXPECT_EQ(worker.note.types[0].runs, note.types[0].runs);
  EXPECT_EQ(queues->pending(row_, {}, 10).value().size(), 2U);
  EXPECT_EQ(queues->pending(row_, {.type = "send", .key = "k"}, 1).value().size(), 1U);
  EXPECT_TRUE(queues->pending(row_, {.type = "other"}, 10).value().empty());
  EXPECT_TRUE(queues->pending(row_, {.key = "other"}, 10).value().empty());
  ASSERT_TRUE(ok(runs_->leave(worker_)));
  EXPECT_TRUE(queues->look({&row_, 1}, 10).value().workers.empty());
}

TEST_P(TaskRunsSuite, progress_is_written_only_by_the_run_itself) {
  settle(make_spec("mails"), {"a"}, {running(0)});
  store::TaskProgress progress{
      .subscription = row_.id, .seq = seqs_[0], .token = 1, .percent = 40, .text = "page 2 of 5"};
  ASSERT_TRUE(ok(runs_->report(worker_, {&progress, 1})));
  EXPECT_THAT(runs_of(worker_), ElementsAre("0 attempts 0 token 1"));
  progress.token = 2;
  progress.text = "page 3 of 5";
  ASSERT_TRUE(ok(runs_->report(worker_, {&progress, 1})));
  progress.token = 1;
  ASSERT_TRUE(ok(runs_->report(other_, {&progress, 1})));
  EXPECT_EQ(list().at(0).percent, 40);
  EXPECT_EQ(list().at(0).progress, "page 2 of 5");
  settle_more({"a"}, {waiting(1)});
  EXPECT_EQ(list().at(0).percent, 40) << "as long as it runs";
  ASSERT_TRUE(ok(write_end(end(0, ParkedState::retrying, 1))));
  EXPECT_FALSE(list().at(0).percent.has_value());
  EXPECT_FALSE(list().at(0).begun_at_us.has_value());
}

TEST_P(TaskRunsSuite, that_an_event_runs_is_a_fact_whatever_a_person_did_meanwhile) {
  settle(make_spec("mails"), {"a", "a"}, {retrying(0), waiting(1)});
  EXPECT_EQ(due().size(), 2U);
  auto begun = result(0, ParkedState::running);
  begun.worker = worker_;
  EXPECT_EQ(retry({0}), 1U);
  ASSERT_TRUE(ok(append({begun})));
  EXPECT_THAT(states(), ElementsAre("0 running 2 no", "1 waiting 0"));
  EXPECT_THAT(runs_of(worker_), ElementsAre("0 attempts 2 token 1"));
}

TEST_P(TaskRunsSuite, of_one_key_one_event_runs) {
  settle(make_spec("mails"), {"a", "a"}, {running(0), waiting(1)});
  auto begun = result(1, ParkedState::running);
  begun.worker = other_;
  ASSERT_TRUE(ok(append({begun})));
  EXPECT_THAT(runs_of(worker_), ElementsAre("0 attempts 0 token 1"));
  EXPECT_THAT(runs_of(other_), IsEmpty());
}

TEST_P(TaskRunsSuite, one_that_runs_when_its_key_is_parked_already_runs_all_the_same) {
  settle(make_spec("mails"), {"a"}, {retrying(0)});
  settle_more({"a"}, {running(1)});
  EXPECT_THAT(runs_of(worker_), ElementsAre("1 attempts 1 token 1"));
  EXPECT_THAT(due(), IsEmpty()) << "one of a key at a time";
  ASSERT_TRUE(ok(write_end(end(1, std::nullopt, 1))));
  EXPECT_THAT(due(), ElementsAre("0 attempts 1"));
}

TEST_P(TaskRunsSuite, one_that_any_worker_may_take_is_ready_and_not_due) {
  settle(make_spec("mails"), {"", ""}, {parked(0, ParkedState::ready), retrying(1)});
  ASSERT_TRUE(ok(append({result(1, ParkedState::ready)})));
  EXPECT_THAT(states(), ElementsAre("0 ready 1 too big", "1 ready 2 no"));
  EXPECT_THAT(due(), IsEmpty());
  EXPECT_THAT(blocked(), ElementsAre(", 0 runs", ", 1 runs"));
  EXPECT_EQ(discard({0}), 1U) << "nobody runs it";
  EXPECT_THAT(states(), ElementsAre("1 ready 2 no"));
}

TEST_P(TaskRunsSuite, the_end_of_a_run_counts_whatever_a_person_did_meanwhile) {
  settle(make_spec("mails"), {"a", "a"}, {running(0), waiting(1)});
  EXPECT_EQ(retry({0, 1}), 2U);
  EXPECT_THAT(runs_of(worker_), ElementsAre("0 attempts 0 token 1")) << "what runs goes on";
  ASSERT_TRUE(ok(write_end(end(0, ParkedState::retrying, 1))));
  EXPECT_THAT(due(), ElementsAre("0 attempts 2", "1 attempts 0"));
}

TEST_P(TaskRunsSuite, a_person_puts_a_dead_one_before_one_that_runs) {
  settle(make_spec("mails"), {"a", "a"}, {retrying(0)});
  ASSERT_TRUE(ok(append({result(0, ParkedState::dead)})));
  settle_more({"a"}, {running(2)});
  EXPECT_EQ(retry({0}), 1U);
  EXPECT_THAT(due(), IsEmpty()) << "it waits for the one that runs";
  EXPECT_THAT(runs_of(worker_), ElementsAre("2 attempts 0 token 1"));
  ASSERT_TRUE(ok(write_end(end(2, std::nullopt, 1))));
  EXPECT_THAT(due(), ElementsAre("0 attempts 0"));
}

TEST_P(TaskRunsSuite, a_person_discards_one_that_runs_and_it_stays_until_its_worker_has_ended_it) {
  settle(make_spec("mails"), {"a", "a"}, {running(0), waiting(1)});
  EXPECT_EQ(discard({0}), 1U);
  EXPECT_THAT(runs_of(worker_), ElementsAre("0 attempts 0 token 1, cancelled"));
  EXPECT_THAT(due(), IsEmpty());
  ASSERT_TRUE(ok(write_end(end(0, ParkedState::retrying, 1))));
  EXPECT_THAT(asked({0}), ElementsAre("0 gone"));
  EXPECT_EQ(delivered(), 0);
  EXPECT_THAT(due(), ElementsAre("1 attempts 0"));
}

TEST_P(TaskRunsSuite, one_that_is_done_all_the_same_is_delivered) {
  settle(make_spec("mails"), {"a"}, {running(0)});
  EXPECT_EQ(discard({0}), 1U);
  ASSERT_TRUE(ok(write_end(end(0, std::nullopt, 1))));
  EXPECT_EQ(delivered(), 1);
  EXPECT_THAT(asked({0}), ElementsAre("0 gone, its key is free"));
}

TEST_P(TaskRunsSuite, a_run_that_ends_dead_blocks_its_key_where_dead_events_do) {
  settle(blocking(), {"a", "a"}, {running(0), waiting(1)});
  ASSERT_TRUE(ok(write_end(end(0, ParkedState::dead, 1))));
  EXPECT_THAT(due(), IsEmpty());
  EXPECT_THAT(asked({0, 1}), ElementsAre("0 dead", "1 waiting"));
  EXPECT_EQ(retry({0}), 1U);
  auto again = result(0, ParkedState::running);
  again.worker = other_;
  ASSERT_TRUE(ok(append({again})));
  EXPECT_THAT(runs_of(other_), ElementsAre("0 attempts 2 token 2")) << "a run of its own";
}

}  // namespace
}  // namespace outbox::conformance
