// Tests replays on both stores: events of a subscription are sent again while live delivery waits.
#include <atomic>
#include <map>
#include <outbox/testing.hpp>

#include "integration/relay/both_stores.hpp"
#include "relay/retention.hpp"
#include "subscription/replay_filter.hpp"
#include "support/verifier.hpp"

namespace outbox::test {
namespace {

using std::chrono::milliseconds;
using store::ReplayState;
using ::testing::TestWithParam;

/// Controls a sink that takes nothing while it is closed, counts what it was offered, and rejects
/// events of type "Poison".
struct Switch {
  std::atomic<bool> open{true};
  std::atomic<bool> poison{false};
  std::atomic<std::int64_t> left{1'000'000'000};  ///< After so many events the sink closes.
};

class ReplayTest : public OnBothStores {
 protected:
  void SetUp() override {
    OnBothStores::SetUp();
    options_.store_url = url_;
    options_.page_rows = 10;
    options_.subscriptions = {spec()};
  }

  static SubscriptionSpec spec() {
    SubscriptionSpec spec = custom("mails");
    spec.retry_base = milliseconds(20);
    spec.retry_jitter = 0;
    return spec;
  }
  /// Writes `count` events of each of so many keys.
  void write_many(int keys, int count) const {
    for (int i = 0; i < count; ++i) {
      for (int key = 0; key < keys; ++key)
        write("k" + std::to_string(key), {"T" + std::to_string(i)});
    }
  }
  std::unique_ptr<Relay> start(bool gapless = true) {
    auto relay = make_relay(options_);
    auto sink = std::make_unique<testing::FailingSink>(
        [control = control_](const EventView& event) {
          if (control->poison && event.event_type == "Poison") return Outcome::Kind::rejected;
          if (!control->open) return Outcome::Kind::blocked;
          if (--control->left < 0) {
            control->open = false;
            return Outcome::Kind::blocked;
          }
          return Outcome::Kind::acked;
        },
        SinkTraits{.name = "switch", .gapless = gapless});
    recordings_.push_back(sink->recording());
    EXPECT_TRUE(relay->use("mails", std::move(sink)));
    EXPECT_TRUE(relay->start());
    return relay;
  }

  [[nodiscard]] bool settled() const { return eventually_settled(url_, "mails"); }
  Result<std::int64_t> replay(std::int64_t first = 1, std::int64_t last = 0,
                              const subscription::ReplayChoice& choice = {}) {
    const auto replays = store_->replays().value();
    if (last == 0) last = replays->retained().value().last;
    return replays->start({.subscription = row().id,
                           .first = first,
                           .last = last,
                           .filter = subscription::to_json(choice),
                           .actor = "a test"});
  }
  [[nodiscard]] store::Replay find(std::int64_t id) const {
    return store_->replays().value()->find(id).value().value();
  }
  [[nodiscard]] bool becomes(std::int64_t id, ReplayState state) const {
    return eventually([&] { return find(id).state == state; });
  }
  /// Waits until the destination holds up the replay.
  [[nodiscard]] static bool waits(const Relay& relay) {
    return eventually([&] {
      const auto report = read_report(relay, "mails");
      return report.state == "replaying" && !report.reason.empty();
    });
  }
  [[nodiscard]] std::size_t arrived() const {
    std::size_t all = 0;
    for (const auto& recording : recordings_) all += recording->events().size();
    return all;
  }
  static bool is_replayed(const testing::RecordedEvent& event) {
    return std::any_of(event.headers.begin(), event.headers.end(),
                       [](const Header& header) { return header.first == "outbox-replay"; });
  }
  /// The types of a key's events in the order of arrival. Events that were sent again have a "+".
  [[nodiscard]] std::vector<std::string> of_key(const std::string& key) const {
    std::vector<std::string> types;
    for (const auto& recording : recordings_) {
      for (const auto& event : recording->events()) {
        if (event.aggregate_id == key)
          types.push_back(event.event_type + (is_replayed(event) ? "+" : ""));
      }
    }
    return types;
  }
  /// Expects that the replayed events of each key came in the order of seq. With `repeats`, what
  /// was not settled may come again.
  void expect_order(bool repeats = false) const {
    for (const auto& recording : recordings_) {
      std::map<std::string, std::int64_t> last;
      std::map<std::int64_t, bool> seen;
      for (const auto& event : recording->events()) {
        if (!is_replayed(event)) continue;
        if (std::exchange(seen[event.seq], true) && repeats) continue;
        EXPECT_GT(event.seq, std::exchange(last[event.aggregate_id], event.seq));
      }
    }
  }
  void expect_sound_books() const {
    EXPECT_EQ(Verifier::verify(url_, "mails"), "");
    expect_sound_ledger("mails");
  }

  RelayOptions options_;
  std::shared_ptr<Switch> control_{std::make_shared<Switch>()};
  std::vector<std::shared_ptr<const testing::Recording>> recordings_;
};

INSTANTIATE_TEST_SUITE_P(Store, ReplayTest, ::testing::Values(true, false),
                         [](const auto& store) { return store.param ? "Postgres" : "Sqlite"; });

TEST_P(ReplayTest, what_was_delivered_is_sent_again_with_a_header_and_live_delivery_goes_on) {
  write_many(5, 8);
  auto relay = start();
  ASSERT_TRUE(settled());
  const auto id = replay();
  ASSERT_TRUE(id) << id.error().text();
  ASSERT_TRUE(becomes(*id, ReplayState::done));
  write("k0", {"After"});
  ASSERT_TRUE(eventually([&] { return arrived() == 81; }));
  EXPECT_EQ(find(*id).sent, 40);
  EXPECT_EQ(of_key("k0"),
            (std::vector<std::string>{"T0", "T1", "T2", "T3", "T4", "T5", "T6", "T7", "T0+", "T1+",
                                      "T2+", "T3+", "T4+", "T5+", "T6+", "T7+", "After"}));
  const auto events = recordings_.front()->events();
  EXPECT_EQ(events.at(0).id, events.at(40).id);
  EXPECT_EQ(events.at(0).body, events.at(40).body);
  ASSERT_TRUE(settled());
  (void)relay->stop(std::chrono::seconds(10));
  expect_sound_books();
}

TEST_P(ReplayTest, live_delivery_waits_until_the_replay_is_done) {
  write_many(3, 10);
  const auto relay = start();
  ASSERT_TRUE(settled());
  control_->left = 7;
  const auto id = replay();
  ASSERT_TRUE(id) << id.error().text();
  ASSERT_TRUE(eventually([&] { return !control_->open; }));
  write("k0", {"New"});
  EXPECT_EQ(arrived(), 37U);
  EXPECT_EQ(row().replay, *id);
  EXPECT_EQ(Verifier::verify(url_, "mails"), "");
  control_->left = 1000;
  control_->open = true;
  ASSERT_TRUE(becomes(*id, ReplayState::done));
  ASSERT_TRUE(eventually([&] { return arrived() == 61; }));
  EXPECT_EQ(of_key("k0").back(), "New");
  expect_order();
}

TEST_P(ReplayTest, only_a_range_and_what_the_filters_match_is_sent) {
  write("a", {"A", "B", "A", "B", "A"});
  write("b", {"A", "B"});
  const auto relay = start();
  ASSERT_TRUE(settled());
  const auto first = recordings_.front()->events().front().seq;
  const auto id = replay(first + 1, first + 5, {.event_types = {"A"}});
  ASSERT_TRUE(id) << id.error().text();
  ASSERT_TRUE(becomes(*id, ReplayState::done));
  EXPECT_EQ(of_key("a"), (std::vector<std::string>{"A", "B", "A", "B", "A", "A+", "A+"}));
  EXPECT_EQ(of_key("b"), (std::vector<std::string>{"A", "B", "A+"}));
  const auto one = replay(1, 0, {.ids = {recordings_.front()->events().at(1).id}});
  ASSERT_TRUE(one) << one.error().text();
  ASSERT_TRUE(becomes(*one, ReplayState::done));
  EXPECT_EQ(find(*one).sent, 1);
  EXPECT_EQ(of_key("a").back(), "B+");
}

TEST_P(ReplayTest, nothing_that_was_not_delivered_yet_is_sent_again) {
  write("a", {"A1", "A2", "A3", "A4"});
  control_->left = 2;
  const auto relay = start();
  ASSERT_TRUE(eventually([&] { return !control_->open && arrived() == 2; }));
  const auto id = replay();
  ASSERT_TRUE(id) << id.error().text();
  // The destination is down, so live delivery rests before the third event; the replay waits, too.
  ASSERT_TRUE(waits(*relay));
  control_->left = 1000;
  control_->open = true;
  ASSERT_TRUE(becomes(*id, ReplayState::done));
  ASSERT_TRUE(eventually([&] { return arrived() >= 6; }));
  EXPECT_EQ(of_key("a"), (std::vector<std::string>{"A1", "A2", "A1+", "A2+", "A3", "A4"}));
}

TEST_P(ReplayTest, it_is_stopped_and_resumed) {
  write_many(2, 20);
  auto relay = start();
  ASSERT_TRUE(settled());
  control_->left = 15;
  const auto id = replay();
  ASSERT_TRUE(id) << id.error().text();
  ASSERT_TRUE(eventually([&] { return !control_->open; }));
  const auto replays = store_->replays().value();
  ASSERT_TRUE(eventually([&] { return find(*id).sent == 15; }));
  EXPECT_EQ(replays->stop(*id, "by a test").value(), true);
  ASSERT_TRUE(eventually([&] { return read_report(*relay, "mails").state != "replaying"; }));
  control_->left = 1000;
  control_->open = true;
  write("k0", {"New"});
  ASSERT_TRUE(eventually([&] { return of_key("k0").back() == "New"; }));
  EXPECT_EQ(arrived(), 56U);
  ASSERT_TRUE(settled());
  ASSERT_TRUE(replays->resume(*id));
  ASSERT_TRUE(becomes(*id, ReplayState::done));
  EXPECT_EQ(find(*id).sent, 40);
  EXPECT_EQ(arrived(), 81U);
  expect_order();
  (void)relay->stop(std::chrono::seconds(10));
  expect_sound_books();
}

TEST_P(ReplayTest, a_rejected_event_is_skipped_with_what_follows_of_its_key) {
  write("a", {"A1", "Poison", "A3", "A4"});
  write("b", {"B1", "B2"});
  for (const bool gapless : {true, false}) {
    auto relay = start(gapless);
    ASSERT_TRUE(settled());
    const std::size_t before = arrived();
    control_->poison = true;
    const auto id = replay();
    ASSERT_TRUE(id) << id.error().text();
    ASSERT_TRUE(becomes(*id, ReplayState::done));
    control_->poison = false;
    EXPECT_EQ(arrived(), before + 3) << gapless;
    EXPECT_EQ(find(*id).sent, 3);
    const auto skips = store_->replays().value()->skips(*id, 10).value();
    ASSERT_EQ(skips.size(), 3U);
    EXPECT_NE(skips[0].error, "");
    EXPECT_EQ(skips[1].error, "");
    EXPECT_EQ(skips[2].aggregate_id, "a");
    const auto parked = store_->parked_events().value()->counts(row().id).value();
    EXPECT_EQ(parked.retrying + parked.waiting + parked.dead, 0);
    (void)relay->stop(std::chrono::seconds(10));
    recordings_.pop_back();
  }
  expect_sound_books();
}

TEST_P(ReplayTest, the_keys_of_skipped_events_are_known_to_the_next_relay) {
  write("a", {"Poison", "A2"});
  write("b", {"B1", "B2"});
  write("a", {"A3"});
  auto relay = start();
  ASSERT_TRUE(settled());
  control_->poison = true;
  control_->left = 1;
  const auto id = replay();
  ASSERT_TRUE(id) << id.error().text();
  ASSERT_TRUE(eventually([&] { return find(*id).skipped == 2 && find(*id).sent == 1; }));
  (void)relay->stop(std::chrono::seconds(10));
  control_->poison = false;
  control_->left = 1000;
  control_->open = true;
  relay = start();
  ASSERT_TRUE(becomes(*id, ReplayState::done));
  EXPECT_EQ(find(*id).skipped, 3);
  EXPECT_EQ(find(*id).sent, 2);
}

TEST_P(ReplayTest, where_a_rejected_event_stops_the_subscription_it_stops_the_replay_only) {
  options_.subscriptions.front().on_reject = OnReject::stop;
  write("a", {"A1", "Poison", "A3"});
  const auto relay = start();
  ASSERT_TRUE(settled());
  control_->poison = true;
  const auto id = replay();
  ASSERT_TRUE(id) << id.error().text();
  ASSERT_TRUE(becomes(*id, ReplayState::stopped));
  EXPECT_NE(find(*id).reason.find("was rejected"), std::string::npos) << find(*id).reason;
  write("a", {"A4"});
  ASSERT_TRUE(eventually([&] { return of_key("a").back() == "A4"; }));
  EXPECT_EQ(row().state, store::SubscriptionState::active);
}

TEST_P(ReplayTest, what_is_parked_is_left_out_and_its_retries_wait) {
  options_.subscriptions.front().retry_base = milliseconds(1);
  options_.subscriptions.front().max_attempts = 1000;
  write("a", {"A1", "Poison", "A3"});
  write("b", {"B1"});
  control_->poison = true;
  const auto relay = start();
  ASSERT_TRUE(eventually([&] {
    const auto parked = store_->parked_events().value()->counts(row().id).value();
    return parked.retrying == 1 && parked.waiting == 1;
  }));
  ASSERT_TRUE(settled());
  control_->left = 0;  // so that the replay lasts
  const auto id = replay();
  ASSERT_TRUE(id) << id.error().text();
  ASSERT_TRUE(waits(*relay));
  control_->poison = false;
  control_->left = 1000;
  control_->open = true;
  ASSERT_TRUE(becomes(*id, ReplayState::done));
  ASSERT_TRUE(eventually([&] { return of_key("a").size() == 4; }));
  EXPECT_EQ(of_key("a"), (std::vector<std::string>{"A1", "A1+", "Poison", "A3"}));
  EXPECT_EQ(find(*id).sent, 2);
  EXPECT_EQ(find(*id).skipped, 0);
}

TEST_P(ReplayTest, a_paused_subscription_sends_nothing_again_until_it_is_resumed) {
  write_many(2, 5);
  const auto relay = start();
  ASSERT_TRUE(settled());
  const auto catalog = store_->catalog().value();
  ASSERT_TRUE(catalog->pause("mails", "a test"));
  ASSERT_TRUE(eventually([&] { return read_report(*relay, "mails").state == "paused"; }));
  const auto id = replay();
  ASSERT_TRUE(id) << id.error().text();
  write("k0", {"New"});
  // The pause makes the relay look at the table again. It notices the change and sends nothing.
  ASSERT_TRUE(catalog->pause("mails", "still a test"));
  ASSERT_TRUE(eventually([&] { return read_report(*relay, "mails").reason == "still a test"; }));
  EXPECT_EQ(arrived(), 10U);
  ASSERT_TRUE(catalog->resume("mails"));
  ASSERT_TRUE(becomes(*id, ReplayState::done));
  ASSERT_TRUE(eventually([&] { return arrived() == 21; }));
  EXPECT_EQ(of_key("k0").back(), "New");
}

TEST_P(ReplayTest, a_second_one_is_refused) {
  write("a", {"A"});
  const auto relay = start();
  ASSERT_TRUE(settled());
  control_->left = 0;
  const auto id = replay();
  ASSERT_TRUE(id) << id.error().text();
  const auto second = replay();
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Errc::already_exists) << second.error().text();
  ASSERT_EQ(store_->replays().value()->stop(*id, "a test").value(), true);
  EXPECT_TRUE(replay());
  const auto resumed = store_->replays().value()->resume(*id);
  ASSERT_FALSE(resumed);
  EXPECT_EQ(resumed.error().code, Errc::already_exists) << resumed.error().text();
}

TEST_P(ReplayTest, a_relay_that_starts_goes_on_with_what_another_left) {
  write_many(4, 30);
  auto relay = start();
  ASSERT_TRUE(settled());
  control_->left = 37;
  const auto id = replay();
  ASSERT_TRUE(id) << id.error().text();
  ASSERT_TRUE(eventually([&] { return find(*id).sent == 37; }));
  (void)relay->stop(std::chrono::seconds(10));
  control_->left = 1'000'000;
  control_->open = true;
  relay = start();
  ASSERT_TRUE(becomes(*id, ReplayState::done));
  EXPECT_EQ(find(*id).sent, 120);
  EXPECT_EQ(arrived(), 240U);
  expect_order();
}

TEST_P(ReplayTest, a_changed_subscription_goes_on_with_its_replay) {
  write_many(2, 20);
  const auto relay = start();
  ASSERT_TRUE(settled());
  control_->left = 15;
  const auto id = replay();
  ASSERT_TRUE(id) << id.error().text();
  ASSERT_TRUE(waits(*relay));
  ASSERT_TRUE(eventually([&] { return find(*id).sent == 15; }));
  SubscriptionSpec changed = spec();
  changed.event_types = {"T?"};
  const auto catalog = store_->catalog().value();
  ASSERT_TRUE(catalog->apply(changed).value_or(false));
  ASSERT_TRUE(eventually([&] { return read_report(*relay, "mails").delivered == 0; }));
  control_->left = 1000;
  control_->open = true;
  ASSERT_TRUE(becomes(*id, ReplayState::done));
  // The events T0 to T9 of both keys match. Of these, 15 were sent before.
  EXPECT_EQ(find(*id).sent, 20);
  EXPECT_EQ(arrived(), 60U);
  expect_order();
}

#ifdef OUTBOX_WITH_POSTGRES
class PostgresReplayTest : public ReplayTest {};

INSTANTIATE_TEST_SUITE_P(Store, PostgresReplayTest, ::testing::Values(true));

TEST_P(PostgresReplayTest, it_goes_on_after_all_connections_were_lost) {
  write_many(4, 50);
  auto relay = start();
  ASSERT_TRUE(settled());
  control_->left = 60;
  const auto id = replay();
  ASSERT_TRUE(id) << id.error().text();
  ASSERT_TRUE(eventually([&] { return find(*id).sent == 60; }));
  write("k0", {"New"});
  Pg admin(database_->url());
  admin.run(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
      "WHERE datname = current_database() AND pid <> pg_backend_pid()");
  control_->left = 1000;
  control_->open = true;
  const auto done = [&] {
    return admin.value("SELECT state FROM outbox.replay") == "done" && of_key("k0").back() == "New";
  };
  ASSERT_TRUE(eventually(done));
  EXPECT_EQ(admin.value("SELECT sum(sent) FROM outbox.replay_progress"), "200");
  expect_order(true);
  (void)relay->stop(std::chrono::seconds(10));
  EXPECT_EQ(ledger_fault(admin, "mails"), "");
}

/// An event whose transaction ends late has a lower seq than the cursor, and still is not delivered
/// yet.
TEST_P(PostgresReplayTest, an_event_that_commits_late_is_delivered_before_it_can_be_sent_again) {
  const std::string insert = "SELECT outbox.enqueue('order', $1, $2, '{}')";
  Pg late(database_->url());
  const auto relay = start();
  late.run("BEGIN");
  (void)late.value(insert, "late", "L1");
  write("early", {"E1"});
  ASSERT_TRUE(eventually([&] { return arrived() == 1; }));
  ASSERT_TRUE(settled());
  control_->left = 0;
  const auto id = replay();
  ASSERT_TRUE(id) << id.error().text();
  ASSERT_TRUE(waits(*relay));
  late.run("COMMIT");
  control_->left = 1000;
  control_->open = true;
  ASSERT_TRUE(becomes(*id, ReplayState::done));
  ASSERT_TRUE(eventually([&] { return arrived() == 3; }));
  EXPECT_EQ(of_key("late"), (std::vector<std::string>{"L1"}));
  EXPECT_EQ(of_key("early"), (std::vector<std::string>{"E1", "E1+"}));
}
#endif

/// These tests are for SQLite only. PostgreSQL removes whole partitions, which
/// retention_postgres_test tests.
class SqliteReplayTest : public ReplayTest {};

INSTANTIATE_TEST_SUITE_P(Store, SqliteReplayTest, ::testing::Values(false));

TEST_P(SqliteReplayTest, retention_keeps_what_a_running_replay_reads_and_what_is_gone_is_refused) {
  write_many(2, 5);
  auto relay = start();
  ASSERT_TRUE(settled());
  control_->left = 0;
  const auto id = replay();
  ASSERT_TRUE(id) << id.error().text();
  ASSERT_TRUE(eventually([&] { return row().replay == *id && !control_->open; }));
  const auto prune = [&] {
    const auto retention = store_->retention().value();
    const auto pass = relay::remove_history(*retention, EventId::generate(),
                                            {.keep = milliseconds(0), .archive = {}},
                                            [](const auto&, const auto&) {}, {});
    EXPECT_TRUE(pass) << pass.error().text();
    return pass ? pass->events : -1;
  };
  EXPECT_EQ(prune(), 0);
  control_->left = 1000;
  control_->open = true;
  ASSERT_TRUE(becomes(*id, ReplayState::done));
  EXPECT_EQ(prune(), 10);
  const auto late = replay();
  ASSERT_FALSE(late);
  EXPECT_NE(late.error().text().find("--archive"), std::string::npos) << late.error().text();
  write("k0", {"New"});
  ASSERT_TRUE(settled());
  EXPECT_TRUE(replay(11));
}

}  // namespace
}  // namespace outbox::test
