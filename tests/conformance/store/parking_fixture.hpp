// The suites of parked events share this fixture. It parks events of a new subscription, reads them
// back, and writes what their relay and people write.
#pragma once

#include <algorithm>
#include <map>
#include <set>

#include "conformance/store/fixture.hpp"
#include "event/key.hpp"
#include "store/subscriptions.hpp"
#include "support/lane_owner.hpp"

namespace outbox::conformance {

/// Events are named by their place among those that the test wrote.
class ParkingSuite : public StoreTest {
 protected:
  using Texts = std::vector<std::string>;

  void SetUp() override {
    StoreTest::SetUp();
    relay_ = std::make_unique<test::LaneOwner>(*store_, "relay");
    generation_ = relay_->keep(std::chrono::seconds(60))->generation;
    progress_ = std::move(*store_->progress());
    people_ = std::move(*store_->parked_events());
  }
  /// Makes a subscription and events of these keys, and settles all, with those in `parked` parked.
  void settle(SubscriptionSpec spec, const Texts& keys, std::vector<store::ParkedEvent> parked) {
    spec.start = Start::now;
    row_ = subscribe(spec);
    keys_.clear();
    seqs_.clear();
    ids_.clear();
    versions_.clear();
    settle_more(keys, std::move(parked));
  }
  /// Makes three events of a key: the first died before dead events blocked, the second afterwards,
  /// and the third waits behind it.
  void settle_with_a_block_in_the_middle() {
    SubscriptionSpec spec = make_spec("mails");
    settle(spec, {"a", "a", "a"}, {retrying(0), waiting(1), waiting(2)});
    ASSERT_TRUE(ok(append({result(0, store::ParkedState::dead)})));
    spec.on_dead = OnDead::block;
    spec.start = Start::now;
    subscribe(spec);
    ASSERT_TRUE(ok(append({result(1, store::ParkedState::dead)})));
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
    auto settlement = make_settlement(row_, page, generation_);
    settlement.acked = {};
    for (auto& event : parked) {
      event = at(event);
      settlement.parked.add(event::id_hash(event.id));
    }
    status_ = note_released(progress_->append(
        {.settlements = std::span(&settlement, 1), .parked = parked}, store::Durability::flushed));
  }
  /// Replaces the event's place by its seq, and adds its id, its key and the subscription.
  store::ParkedEvent at(store::ParkedEvent event) const {
    const auto place = static_cast<std::size_t>(event.seq);
    event.subscription = row_.id;
    event.generation = generation_;
    event.seq = seqs_.at(place);
    event.id = ids_.at(place);
    event.key = keys_.at(place);
    return event;
  }
  static store::ParkedEvent parked(std::int64_t event, store::ParkedState state) {
    return {.seq = event, .state = state, .attempts = 1, .error = "too big"};
  }
  static store::ParkedEvent retrying(
      std::int64_t event, std::chrono::milliseconds due_in = std::chrono::milliseconds(0)) {
    auto one = parked(event, store::ParkedState::retrying);
    one.due_in = due_in;
    return one;
  }
  static store::ParkedEvent waiting(std::int64_t event) {
    return {.seq = event, .state = store::ParkedState::waiting};
  }
  /// The result of sending the event as it was when due() was last called.
  store::RetryResult result(std::int64_t event, std::optional<store::ParkedState> state,
                            std::chrono::milliseconds due_in = std::chrono::milliseconds(0)) {
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
  std::int64_t find_place(std::int64_t seq) const {
    const auto found = std::find(seqs_.begin(), seqs_.end(), seq);
    EXPECT_NE(found, seqs_.end());
    return found - seqs_.begin();
  }
  /// The events that are due and those behind them, with their attempts, in order of places.
  Texts due() { return due(generation_); }
  Texts due(std::int64_t generation) {
    auto read = progress_->due(row_.id, {store::kAllLanes, generation}, limits_, {});
    EXPECT_TRUE(ok(read));
    std::map<std::int64_t, std::string> all;
    if (!read) return {};
    std::map<std::uint64_t, std::int64_t> last;
    for (const auto& row : read->rows) {
      const std::int64_t place = find_place(row.event.seq);
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
      if (key.run_seq != 0) all.back() += ", " + std::to_string(find_place(key.run_seq)) + " runs";
    }
    std::sort(all.begin(), all.end());
    return all;
  }
  /// The events as people see them.
  std::vector<store::ParkedListing> list() {
    return people_->list({.subscription = row_.id}, 100, true).value();
  }
  Texts states() {
    Texts all;
    for (const auto& event : list()) {
      all.push_back(std::to_string(find_place(event.seq)) + " " + to_string(event.state) + " " +
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
  /// Edits the event, which has its new id from then on.
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
    spec.on_dead = OnDead::block;
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
  std::optional<std::chrono::milliseconds> next_in_;
};

}  // namespace outbox::conformance
