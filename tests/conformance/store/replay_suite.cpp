// Tests which replays may start, what relays read and write for them, and when they end.
#include "conformance/store/fixture.hpp"
#include "event/time_text.hpp"
#include "support/lane_owner.hpp"

namespace outbox::conformance {
namespace {

using std::chrono::seconds;
using store::ReplayState;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ReplaySuite : public StoreTest {
 protected:
  void SetUp() override {
    StoreTest::SetUp();
    relay_ = std::make_unique<test::LaneOwner>(*store_, "relay");
    generation_ = relay_->keep(seconds(60))->generation;
    progress_ = std::move(*store_->progress());
    replays_ = std::move(*store_->replays());
    row_ = subscribe(make_spec("mails"));
  }
  [[nodiscard]] store::Replay wanted(std::int64_t first, std::int64_t last) const {
    return {.subscription = row_.id, .first = first, .last = last, .filter = "{}", .actor = "anna"};
  }
  std::int64_t start(std::int64_t first, std::int64_t last) {
    const auto id = replays_->start(wanted(first, last));
    EXPECT_TRUE(ok(id));
    return id.value_or(0);
  }
  [[nodiscard]] store::Replay find(std::int64_t id) { return replays_->find(id).value().value(); }
  Status settle(std::int64_t id, std::int64_t position, std::int64_t sent,
                store::LaneMask lanes = store::kAllLanes,
                std::vector<store::ReplaySkip> skips = {}) {
    return settle_as(generation_, id, position, sent, lanes, std::move(skips));
  }
  Status settle_as(std::int64_t generation, std::int64_t id, std::int64_t position,
                   std::int64_t sent, store::LaneMask lanes = store::kAllLanes,
                   std::vector<store::ReplaySkip> skips = {}) {
    const store::ReplayProgress progress{.replay = id,
                                         .subscription = row_.id,
                                         .generation = generation,
                                         .lanes = lanes,
                                         .position = position,
                                         .sent = sent,
                                         .skips = std::move(skips)};
    const auto written = progress_->append({.settlements = {}, .replays = std::span(&progress, 1)},
                                           store::Durability::eventual);
    return written ? Status{} : tl::unexpected(written.error());
  }
  /// A request for everything that `live` has passed.
  [[nodiscard]] store::ReplayRequest request(const store::Cursor& live,
                                             std::int64_t last = 1'000'000) const {
    return {.subscription = row_.id, .live = live, .position = 0, .last = last};
  }
  store::ReplayPage page(const store::ReplayRequest& request) {
    auto page = replays_->page(request);
    EXPECT_TRUE(ok(page));
    return std::move(page).value_or(store::ReplayPage{});
  }
  [[nodiscard]] std::vector<std::int64_t> seqs(const store::ReplayPage& page) const {
    std::vector<std::int64_t> all;
    for (const auto& event : page.events) all.push_back(event.seq - first_ + 1);
    return all;
  }
  /// Writes events of these keys and returns the cursor behind the first `passed` of them.
  store::Cursor pass(const std::vector<std::string>& keys, std::size_t passed) {
    std::vector<Event> events;
    for (const auto& key : keys) events.push_back(make_event(key));
    ids_ = write(events);
    LogDrive drive(*store_, load(row_.id).cursor, passed);
    const auto page = drive.next();
    first_ = page.events.front().seq;
    EXPECT_EQ(page.events.size(), passed);
    return page.end();
  }

  std::unique_ptr<test::LaneOwner> relay_;
  std::unique_ptr<store::Progress> progress_;
  std::unique_ptr<store::Replays> replays_;
  std::int64_t generation_{0};
  store::SubscriptionRow row_;
  std::vector<EventId> ids_;
  std::int64_t first_{1};
};

INSTANTIATE_TEST_SUITE_P(Store, ReplaySuite, ::testing::ValuesIn(backends()), backend_name);

TEST_P(ReplaySuite, a_running_one_is_known_with_its_subscription) {
  EXPECT_EQ(read_row("mails").replay, 0);
  const auto id = start(1, 10);
  EXPECT_EQ(read_row("mails").replay, id);
  const auto replay = find(id);
  EXPECT_EQ(replay.subscription, row_.id);
  EXPECT_EQ(replay.first, 1);
  EXPECT_EQ(replay.last, 10);
  EXPECT_EQ(replay.position, 0);
  EXPECT_EQ(replay.state, ReplayState::running);
  EXPECT_EQ(replay.actor, "anna");
  EXPECT_GT(replay.started_at_us, 0);
  EXPECT_EQ(replay.ended_at_us, 0);
  EXPECT_EQ(replays_->list(row_.id, 10).value().size(), 1U);
  EXPECT_THAT(replays_->list(row_.id + 1, 10).value(), IsEmpty());
  EXPECT_FALSE(replays_->find(id + 1).value().has_value());
}

TEST_P(ReplaySuite, a_subscription_has_one_at_a_time) {
  const auto id = start(1, 10);
  const auto second = replays_->start(wanted(1, 5));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Errc::already_exists);
  EXPECT_EQ(replays_->stop(id, "enough").value(), true);
  EXPECT_EQ(find(id).reason, "enough");
  EXPECT_EQ(replays_->stop(id, "again").value(), false);
  const auto other = start(1, 5);
  EXPECT_EQ(read_row("mails").replay, other);
  EXPECT_FALSE(replays_->resume(id));
  EXPECT_EQ(replays_->stop(other, "").value(), true);
  EXPECT_TRUE(ok(replays_->resume(id)));
  EXPECT_EQ(read_row("mails").replay, id);
  EXPECT_EQ(find(id).reason, "");
  const auto again = replays_->resume(id);
  ASSERT_FALSE(again);
  EXPECT_EQ(replays_->resume(id + 100).error().code, Errc::not_found);
}

TEST_P(ReplaySuite, its_progress_adds_up_and_the_last_seq_ends_it) {
  const auto id = start(5, 10);
  EXPECT_EQ(find(id).position, 4);
  ASSERT_TRUE(ok(settle(id, 7, 2)));
  ASSERT_TRUE(ok(settle(id, 9, 1)));
  EXPECT_EQ(find(id).position, 9);
  EXPECT_EQ(find(id).sent, 3);
  const auto places = replays_->places(find(id), store::kAllLanes).value();
  ASSERT_EQ(places.size(), 1U);
  EXPECT_EQ(places[0].position, 9);
  EXPECT_EQ(places[0].lanes, store::kAllLanes);
  ASSERT_TRUE(ok(settle(id, 10, 1)));
  EXPECT_EQ(find(id).state, ReplayState::done);
  EXPECT_GT(find(id).ended_at_us, 0);
  EXPECT_EQ(read_row("mails").replay, 0);
  EXPECT_FALSE(replays_->resume(id));
}

TEST_P(ReplaySuite, one_that_is_stopped_at_its_last_event_is_done) {
  const auto id = start(1, 10);
  ASSERT_EQ(replays_->stop(id, "too late").value(), true);
  ASSERT_TRUE(ok(settle(id, 10, 10)));
  EXPECT_EQ(find(id).state, ReplayState::done);
}

TEST_P(ReplaySuite, progress_of_a_former_owner_is_refused) {
  const auto id = start(1, 10);
  const auto refused = settle_as(generation_ - 1, id, 10, 10);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::lease_lost) << refused.error().text();
  EXPECT_EQ(find(id).position, 0);
  EXPECT_EQ(find(id).sent, 0);
}

TEST_P(ReplaySuite, what_was_skipped_is_kept_with_its_key) {
  (void)pass({"a", "b"}, 2);
  const auto id = start(1, 100);
  const store::ReplaySkip skip{.seq = first_ + 1, .id = ids_[1], .error = "too large"};
  ASSERT_TRUE(ok(settle(id, first_ + 1, 1, store::kAllLanes, {skip})));
  // After a crash of the relay the same skip may be written again.
  ASSERT_TRUE(ok(settle(id, first_ + 1, 0, store::kAllLanes, {skip})));
  const auto skips = replays_->skips(id, 10).value();
  ASSERT_EQ(skips.size(), 1U);
  EXPECT_EQ(skips[0].seq, first_ + 1);
  EXPECT_EQ(skips[0].id, ids_[1]);
  EXPECT_EQ(skips[0].error, "too large");
  EXPECT_EQ(skips[0].aggregate_type, make_event("b").aggregate_type);
  EXPECT_EQ(skips[0].aggregate_id, "b");
  EXPECT_EQ(find(id).skipped, 1);
}

TEST_P(ReplaySuite, too_many_skipped_events_stop_it) {
  const auto most = static_cast<std::size_t>(store::kMostSkipped);
  (void)pass(std::vector<std::string>(most, "a"), 1);
  const auto id = start(1, 100'000);
  std::vector<store::ReplaySkip> skips;
  for (std::size_t i = 0; i < most; ++i)
    skips.push_back({.seq = first_ + static_cast<std::int64_t>(i), .id = ids_[i]});
  store::ReplaySkip last = skips.back();
  skips.pop_back();
  ASSERT_TRUE(ok(settle(id, 5000, 0, store::kAllLanes, skips)));
  EXPECT_EQ(find(id).state, ReplayState::running);
  ASSERT_TRUE(ok(settle(id, 5001, 0, store::kAllLanes, {last})));
  EXPECT_EQ(find(id).state, ReplayState::stopped);
  EXPECT_NE(find(id).reason.find("10000 events were skipped"), std::string::npos);
}

TEST_P(ReplaySuite, only_what_live_delivery_has_passed_is_read) {
  const auto cursor = pass({"a", "b", "c", "d", "e"}, 3);
  const auto read = page(request(cursor));
  EXPECT_THAT(seqs(read), ElementsAre(1, 2, 3));
  EXPECT_TRUE(read.ended);
  EXPECT_EQ(read.events[0].payload, R"({"n":1})");
  EXPECT_EQ(read.events[0].headers, "{}");
  EXPECT_EQ(read.events[0].id, ids_[0]);
  EXPECT_THAT(seqs(page(request(load(row_.id).cursor))), IsEmpty());
}

TEST_P(ReplaySuite, pages_continue_where_the_last_one_ended) {
  const auto cursor = pass({"a", "b", "c", "d"}, 4);
  auto next = request(cursor, first_ + 2);
  next.rows = 2;
  const auto first = page(next);
  EXPECT_THAT(seqs(first), ElementsAre(1, 2));
  EXPECT_FALSE(first.ended);
  next.position = first.position;
  const auto second = page(next);
  EXPECT_THAT(seqs(second), ElementsAre(3));
  EXPECT_TRUE(second.ended);
  next = request(cursor);
  next.bytes = 1;
  const auto cut = page(next);
  EXPECT_THAT(seqs(cut), ElementsAre(1));
  EXPECT_FALSE(cut.ended);
}

TEST_P(ReplaySuite, what_is_parked_or_was_given_up_is_marked) {
  (void)pass({"a", "b", "c"}, 3);
  LogDrive drive(*store_, load(row_.id).cursor);
  const auto all = drive.next();
  auto settlement = make_settlement(row_, all, generation_);
  std::vector<store::ParkedEvent> parked;
  for (const std::size_t i : {0U, 1U}) {
    parked.push_back({.subscription = row_.id,
                      .generation = generation_,
                      .seq = all.events[i].seq,
                      .id = ids_[i],
                      .attempts = 1,
                      .error = "no",
                      .key = store::parked_key(0, all.events[i].seq)});
  }
  ASSERT_TRUE(ok(progress_->append({.settlements = std::span(&settlement, 1), .parked = parked},
                                   store::Durability::flushed)));
  const std::vector<std::int64_t> given_up{all.events[1].seq};
  ASSERT_EQ(store_->parked_events().value()->discard(row_.id, given_up, "anna", "why").value(), 1U);
  EXPECT_THAT(page(request(load(row_.id).cursor)).held, ElementsAre(1, 1, 0));
  const store::RetryResult delivered{.subscription = row_.id,
                                     .generation = generation_,
                                     .seq = all.events[0].seq,
                                     .id = ids_[0],
                                     .attempts = 2};
  ASSERT_TRUE(ok(progress_->append({.settlements = {}, .results = std::span(&delivered, 1)},
                                   store::Durability::flushed)));
  EXPECT_THAT(page(request(load(row_.id).cursor)).held, ElementsAre(0, 1, 0));
}

TEST_P(ReplaySuite, times_lead_to_seqs) {
  (void)pass({"a", "b"}, 2);
  const auto log = replays_->retained().value();
  EXPECT_EQ(log.first, 1);
  EXPECT_FALSE(log.removed);
  EXPECT_EQ(log.last, first_ + 1);
  EXPECT_GT(log.first_us, 0);
  EXPECT_EQ(replays_->seq_at(log.first_us).value(), first_);
  EXPECT_EQ(replays_->seq_at(log.first_us + std::int64_t{3'600'000'000}).value(), first_ + 2);
}

TEST_P(ReplaySuite, of_an_archive_it_reads_what_was_loaded_and_the_log_has_no_more) {
  (void)pass({"a"}, 1);
  auto archived = wanted(1, 2'000'000);
  archived.archived = true;
  const auto id = replays_->start(archived);
  ASSERT_TRUE(ok(id));
  EXPECT_EQ(find(*id).state, ReplayState::loading);
  EXPECT_EQ(read_row("mails").replay, 0);
  std::vector<EventView> events;
  for (const std::int64_t seq :
       {first_ + 1'000'001, first_ + 1'000'000, first_, first_ + 1'000'000}) {
    events.push_back({.seq = seq,
                      .id = ids_[0],
                      .aggregate_type = "order",
                      .aggregate_id = "7",
                      .event_type = "Placed",
                      .payload = "\xff",
                      .content_type = "text/plain",
                      .headers = R"({"a": "b"})",
                      .created_at = event::timestamp(5'000'000),
                      .occurred_at = event::timestamp(4'000'000)});
  }
  EXPECT_EQ(replays_->load(*id, events).value(), 2);
  EXPECT_EQ(replays_->load(*id, events).value(), 0);
  ASSERT_TRUE(ok(replays_->loaded(*id)));
  EXPECT_EQ(read_row("mails").replay, *id);
  auto of_archive = request(load(row_.id).cursor, 2'000'000);
  of_archive.replay = *id;
  of_archive.archived = true;
  const auto read = page(of_archive);
  EXPECT_THAT(seqs(read), ElementsAre(1'000'001, 1'000'002));
  ASSERT_EQ(read.events.size(), 2U);
  const EventView& event = read.events[0];
  EXPECT_EQ(event.id, ids_[0]);
  EXPECT_EQ(event.aggregate_id, "7");
  EXPECT_EQ(event.payload, "\xff");
  EXPECT_EQ(event.content_type, "text/plain");
  EXPECT_EQ(event.headers, R"({"a": "b"})");
  EXPECT_EQ(event.created_at, event::timestamp(5'000'000));
  EXPECT_EQ(event.occurred_at, event::timestamp(4'000'000));
}

}  // namespace
}  // namespace outbox::conformance
