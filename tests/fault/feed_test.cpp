// The feed from the write-ahead log (docs/design/feed.md), on a server of its own: whatever ends
// the stream, the relay polls, says so, and returns to it; nothing is lost, invented or reordered,
// and nothing keeps the server's log.
#include <gmock/gmock.h>

#include <csignal>
#include <fstream>
#include <optional>
#include <random>
#include <utility>

#include "integration/relay/harness.hpp"
#include "support/child_process.hpp"
#include "support/eventually.hpp"
#include "support/ledger_check.hpp"
#include "support/own_postgres.hpp"
#include "support/postgres_database.hpp"
#include "support/relay_process.hpp"
#include "support/shop.hpp"
#include "support/temp_dir.hpp"

namespace outbox::test {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::Not;

const char* const kSlots = "SELECT count(*) FROM pg_replication_slots";
const char* const kSenders = "SELECT count(*) FROM pg_stat_replication";
const char* const kStreams =
    "SELECT count(*) FROM pg_stat_replication WHERE state IN ('catchup', 'streaming')";
const char* const kEndSenders = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_replication";
const char* const kEnqueue = "SELECT outbox.enqueue('Order', 'k', 'Placed', '{}'::jsonb)";

class FeedTest : public ::testing::Test {
 protected:
  void SetUp() override {
    OUTBOX_NEEDS_PGBIN();
    server_.emplace(std::vector<std::string>{"wal_level = logical", "max_replication_slots = 2"});
    database_.emplace(server_->url(), PostgresDatabase::Schema::migrated);
    make_publication();
  }

  void make_publication() const {
    const auto store = store::open_store({.url = database_->url()});
    ASSERT_TRUE(store);
    const auto made = (*store)->make_wal_publication();
    ASSERT_TRUE(made) << made.error().text();
  }
  [[nodiscard]] RelayOptions options(Feed feed = Feed::wal) const {
    return {.store_url = database_->url(), .subscriptions = {custom("all")}, .feed = feed};
  }
  static ::testing::AssertionResult streams(const Relay& relay) {
    if (eventually([&] { return relay.report().feed == "wal"; }))
      return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << relay.report().feed_trouble;
  }
  static ::testing::AssertionResult polls(const Relay& relay, const std::string& trouble) {
    std::string seen;
    if (eventually([&] {
          const RelayReport report = relay.report();
          seen = report.feed + ": " + report.feed_trouble;
          return report.feed == "poll" && report.feed_trouble.starts_with(trouble);
        }))
      return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << seen << " instead of " << trouble;
  }
  /// Enqueues an event, which arrives.
  void expect_delivery(const testing::Recording& recording) {
    const std::size_t before = recording.events().size();
    Pg(database_->url()).exec(kEnqueue);
    EXPECT_TRUE(recording.wait_for(before + 1, seconds(60)));
  }
  /// Enqueues events until one of them has woken the relay.
  void expect_wakes(const Relay& relay, const testing::Recording& recording) {
    const std::uint64_t before = relay.report().wakeups_by_commit;
    for (int i = 0; i < 100 && relay.report().wakeups_by_commit == before; ++i)
      expect_delivery(recording);
    EXPECT_GT(relay.report().wakeups_by_commit, before);
  }

  std::optional<OwnPostgres> server_;
  std::optional<PostgresDatabase> database_;
};

TEST_F(FeedTest, the_log_wakes_a_relay_without_any_notification) {
  RelayOptions with_feed = options();
  with_feed.wake_up = false;
  with_feed.idle_poll = seconds(2);
  const auto relay = make_relay(with_feed);
  const auto recording = record(*relay, "all");
  ASSERT_TRUE(relay->start());
  ASSERT_TRUE(streams(*relay));
  for (int i = 0; i < 5; ++i) expect_wakes(*relay, *recording);
  Pg writer(database_->url());
  const std::size_t before = recording->events().size();
  writer.exec("BEGIN; SELECT outbox.enqueue('a', 'b', 'c', '{}'::jsonb); ROLLBACK");
  writer.exec(
      "BEGIN; SAVEPOINT s; SELECT outbox.enqueue('a', 'b', 'c', '{}'::jsonb); ROLLBACK TO s; COMMIT");
  writer.exec("BEGIN; SAVEPOINT s; SELECT outbox.enqueue('a', 'b', 'c', '{}'::jsonb); COMMIT");
  EXPECT_TRUE(recording->wait_for(before + 1, seconds(60)));
  writer.exec("SET outbox.wake = off; BEGIN; SELECT outbox.enqueue('a', 'b', 'c', '{}'::jsonb)");
  writer.exec("PREPARE TRANSACTION 'feed'");
  writer.exec("COMMIT PREPARED 'feed'");
  EXPECT_TRUE(recording->wait_for(before + 2, seconds(60)));
  EXPECT_EQ(recording->events().size(), before + 2);
}

TEST_F(FeedTest, an_idle_relay_reads_only_at_the_idle_poll) {
  RelayOptions with_feed = options();
  with_feed.idle_poll = std::chrono::hours(1);
  const auto relay = make_relay(with_feed);
  const auto recording = record(*relay, "all");
  ASSERT_TRUE(relay->start());
  ASSERT_TRUE(streams(*relay));
  expect_wakes(*relay, *recording);
  // Commits that wrote no event wake nobody: the second event is the next thing that does.
  Pg writer(database_->url());
  writer.exec("CREATE TABLE other (n int); INSERT INTO other SELECT generate_series(1, 1000)");
  std::uint64_t fetches = 0;
  ASSERT_TRUE(eventually([&] {
    const std::uint64_t before = std::exchange(fetches, relay->report().fetches);
    return before == fetches;
  }));
  expect_delivery(*recording);
  EXPECT_LE(relay->report().fetches - fetches, 30U);
}

TEST_F(FeedTest, a_process_has_one_stream) {
  const auto one = make_relay(options());
  RelayOptions others = options(Feed::automatic);
  others.subscriptions = {custom("more"), custom("most")};
  const auto other = make_relay(others);
  const auto all = record(*one, "all");
  const auto more = record(*other, "more");
  const auto most = record(*other, "most");
  ASSERT_TRUE(one->start());
  ASSERT_TRUE(other->start());
  ASSERT_TRUE(streams(*one));
  ASSERT_TRUE(streams(*other));
  Pg pg(database_->url());
  EXPECT_EQ(pg.value(kSenders), "1");
  EXPECT_TRUE(one->stop(seconds(30)).drained);
  expect_wakes(*other, *more);
  EXPECT_EQ(pg.value(kSenders), "1");
  EXPECT_TRUE(other->stop(seconds(30)).drained);
  EXPECT_TRUE(eventually([&] { return pg.value(kSlots) == "0" && pg.value(kSenders) == "0"; }));
}

TEST_F(FeedTest, it_returns_after_its_sender_was_ended) {
  const auto relay = make_relay(options());
  const auto recording = record(*relay, "all");
  ASSERT_TRUE(relay->start());
  Pg pg(database_->url());
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(streams(*relay));
    pg.exec(kEndSenders);
    ASSERT_TRUE(polls(*relay, "the stream is lost"));
    expect_delivery(*recording);
  }
  ASSERT_TRUE(streams(*relay));
  expect_wakes(*relay, *recording);
}

TEST_F(FeedTest, without_a_free_slot_it_polls_until_there_is_one) {
  Pg pg(database_->url());
  for (const char* name : {"a", "b"})
    pg.exec("SELECT pg_create_physical_replication_slot('" + std::string(name) + "')");
  const auto relay = make_relay(options());
  const auto recording = record(*relay, "all");
  ASSERT_TRUE(relay->start());
  ASSERT_TRUE(polls(*relay, "no free slot"));
  expect_delivery(*recording);
  pg.exec("SELECT pg_drop_replication_slot('a')");
  ASSERT_TRUE(streams(*relay));
  expect_wakes(*relay, *recording);
}

TEST_F(FeedTest, without_the_publication_it_polls_until_it_is_back) {
  const auto relay = make_relay(options());
  const auto recording = record(*relay, "all");
  ASSERT_TRUE(relay->start());
  ASSERT_TRUE(streams(*relay));
  Pg pg(database_->url());
  pg.exec("DROP PUBLICATION outbox_wal");
  expect_delivery(*recording);
  ASSERT_TRUE(polls(*relay, "no publication"));
  expect_delivery(*recording);
  pg.exec("CREATE PUBLICATION outbox_wal FOR TABLE outbox.meta");
  ASSERT_TRUE(polls(*relay, "another publication"));
  pg.exec("DROP PUBLICATION outbox_wal");
  make_publication();
  ASSERT_TRUE(streams(*relay));
  expect_wakes(*relay, *recording);
}

TEST_F(FeedTest, a_login_without_the_right_polls_until_it_has_it) {
  Pg pg(database_->url());
  pg.exec("CREATE ROLE feeder LOGIN IN ROLE outbox_relay");
  std::string url = database_->url();
  url.replace(url.find("postgres@"), 8, "feeder");
  RelayOptions with_feed = options();
  with_feed.store_url = url;
  const auto relay = make_relay(with_feed);
  const auto recording = record(*relay, "all");
  ASSERT_TRUE(relay->start());
  ASSERT_TRUE(polls(*relay, "no REPLICATION right"));
  expect_delivery(*recording);
  pg.exec("ALTER ROLE feeder REPLICATION");
  ASSERT_TRUE(streams(*relay));
  expect_wakes(*relay, *recording);
  EXPECT_TRUE(relay->stop(seconds(30)).drained);
  pg.exec("DROP ROLE feeder");
}

TEST_F(FeedTest, a_slot_that_waits_for_a_transaction_names_it_and_delays_nothing) {
  Pg late(database_->url());
  late.exec("BEGIN; SELECT pg_current_xact_id()");
  const std::string pid = late.value("SELECT pg_backend_pid()");
  Pg pg(database_->url());
  {
    const auto relay = make_relay(options());
    const auto recording = record(*relay, "all");
    ASSERT_TRUE(relay->start());
    ASSERT_TRUE(polls(*relay, "waits for pid " + pid));
    // The session's name, which `outbox status` reads.
    EXPECT_TRUE(eventually([&] {
      return pg.value(
                 "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE "
                 "'outbox feed % poll: waits for pid " +
                 pid + "'") == "1";
    }));
    expect_delivery(*recording);
    EXPECT_TRUE(relay->stop(seconds(30)).drained) << "a stop waits for no slot";
    EXPECT_TRUE(eventually([&] { return pg.value(kSlots) == "0"; })) << "and leaves none";
  }
  const auto relay = make_relay(options());
  const auto recording = record(*relay, "all");
  ASSERT_TRUE(relay->start());
  ASSERT_TRUE(polls(*relay, "waits for pid " + pid));
  late.exec("COMMIT");
  ASSERT_TRUE(streams(*relay));
  expect_wakes(*relay, *recording);
}

TEST_F(FeedTest, a_server_that_restarts_or_stops_is_not_held_up) {
  const auto relay = make_relay(options());
  const auto recording = record(*relay, "all");
  ASSERT_TRUE(relay->start());
  for (const bool immediately : {true, false, true}) {
    ASSERT_TRUE(streams(*relay));
    expect_delivery(*recording);
    immediately ? server_->stop_immediate() : server_->stop();
    EXPECT_THAT(server_->log(), Not(HasSubstr("replication timeout"))) << "it waited for us";
    server_->start();
    EXPECT_TRUE(eventually([&] { return relay->report().owner; })) << relay->report().last_error;
    expect_delivery(*recording);
  }
  ASSERT_TRUE(streams(*relay));
  expect_wakes(*relay, *recording);
}

/// Writes about 16 MB of log that has nothing to do with the outbox.
const char* const kNoise =
    "CREATE TABLE noise (text text); INSERT INTO noise SELECT (SELECT string_agg(md5(random()::text || "
    "i || j), '') FROM generate_series(1, 60) j) FROM generate_series(1, 8000) i; DROP TABLE noise";

void write_log(Pg& pg) { pg.exec(kNoise); }

TEST_F(FeedTest, a_sink_that_takes_nothing_keeps_no_log) {
  const auto relay = make_relay(options());
  auto sink = std::make_unique<testing::FailingSink>(
      [](const EventView&) { return Outcome::Kind::blocked; });
  ASSERT_TRUE(relay->use("all", std::move(sink)));
  ASSERT_TRUE(relay->start());
  ASSERT_TRUE(streams(*relay));
  Pg pg(database_->url());
  for (int i = 0; i < 3; ++i) {
    pg.exec(kEnqueue);
    write_log(pg);
  }
  // A position in the middle of the log is passed with the next list of running transactions, which
  // a checkpoint writes.
  const char* const kept =
      "SELECT max(pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn))::bigint FROM pg_replication_slots";
  EXPECT_TRUE(eventually([&] {
    pg.exec("CHECKPOINT");
    return std::stoll(pg.value(kept)) < 16'000'000;
  })) << pg.value(kept);
  EXPECT_TRUE(streams(*relay));
}

TEST_F(FeedTest, a_huge_transaction_is_told_as_any_other) {
  const auto relay = make_relay(options());
  const auto recording = record(*relay, "all");
  ASSERT_TRUE(relay->start());
  ASSERT_TRUE(streams(*relay));
  Pg pg(database_->url());
  pg.exec(
      "INSERT INTO outbox.new_event (aggregate_type, aggregate_id, event_type, payload) SELECT 'a', "
      "i::text, 'b', '{}' FROM generate_series(1, 50000) i");
  EXPECT_TRUE(recording->wait_for(50'000, seconds(120)));
  write_log(pg);
  expect_wakes(*relay, *recording);
  EXPECT_TRUE(streams(*relay));
}

std::unique_ptr<ChildProcess> start_relay_with_feed(const PostgresDatabase& database,
                                                    const TempDir& folder) {
  std::ofstream(folder.file("outbox.toml"))
      << "[store]\nurl = \"" << database.url() << "\"\n[relay]\nfeed = \"wal\"\nlease = \"5s\"\n"
      << "[subscription.lines]\nsink = \"file\"\n[subscription.lines.file]\npath = \""
      << folder.file("lines") << "\"\n";
  return start_outbox_relay(folder.file("outbox.toml"), folder.file("log"));
}

TEST_F(FeedTest, a_relay_that_is_stopped_loses_its_slot_and_comes_back) {
  const TempDir folder;
  const auto relay = start_relay_with_feed(*database_, folder);
  Pg pg(database_->url());
  ASSERT_TRUE(eventually([&] { return pg.value(kStreams) == "1"; }));
  relay->signal(SIGSTOP);
  write_log(pg);
  for (int i = 0; i < 10; ++i) pg.exec(kEnqueue);
  EXPECT_TRUE(eventually([&] { return pg.value(kSlots) == "0"; }));
  relay->signal(SIGCONT);
  EXPECT_TRUE(eventually([&] { return pg.value(kStreams) == "1"; }));
  const auto written =
      static_cast<std::size_t>(std::stoul(pg.value("SELECT count(*) FROM outbox.event")));
  EXPECT_TRUE(eventually([&] { return lines_in(folder.file("lines")) >= written; }));
  relay->signal(SIGKILL);
  (void)relay->wait();
  EXPECT_TRUE(eventually([&] { return pg.value(kSlots) == "0"; }));
}

TEST_F(FeedTest, a_relay_that_is_stopped_while_its_slot_waits_keeps_no_log_either) {
  const TempDir folder;
  Pg late(database_->url());
  late.exec("BEGIN; SELECT pg_current_xact_id()");
  const auto relay = start_relay_with_feed(*database_, folder);
  Pg pg(database_->url());
  ASSERT_TRUE(eventually([&] { return pg.value(kSlots) == "1"; }));
  relay->signal(SIGSTOP);
  late.exec("COMMIT");
  write_log(pg);
  EXPECT_TRUE(eventually([&] { return pg.value(kSlots) == "0"; }));
  relay->signal(SIGCONT);
  EXPECT_TRUE(eventually([&] { return pg.value(kStreams) == "1"; }));
}

/// Does something to the stream, with which the relay must cope.
void disturb(int what, OwnPostgres& server, const PostgresDatabase& database) {
  const auto run = [&](const std::string& sql) {
    try {
      Pg(database.url()).exec(sql);
    } catch (const PgError&) {  // the server may be starting, or there is nothing to disturb
    }
  };
  switch (what) {
    case 0: return run(kEndSenders);
    case 1: return run("DROP PUBLICATION IF EXISTS outbox_wal");
    case 2:
      run(kEndSenders);
      return run(
          "SELECT pg_create_physical_replication_slot('s' || i) FROM generate_series(1, 2) i");
    case 3:
      return run(
          "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE NOT active");
    case 4:
      return run(
          "CREATE PUBLICATION outbox_wal FOR TABLE outbox.event WITH (publish = 'insert', publish_via_partition_root)");
    case 5: server.stop_immediate(); return server.start();
    case 6:  // more log than a slot may keep
      run(kNoise);
      return run("CHECKPOINT");
    default: return;
  }
}

TEST_F(FeedTest, in_a_storm_nothing_is_lost_invented_or_reordered) {
  RelayOptions with_feed = options();
  with_feed.subscriptions = {custom("all"), custom("scattered")};
  const auto relay = make_relay(with_feed);
  const auto all = record(*relay, "all");
  const auto scattered = std::make_shared<Arrivals>();
  ASSERT_TRUE(relay->use("scattered", std::make_unique<ScatterSink>(scattered, ScatterOptions{})));
  OpenSale late(database_->url(), "late");
  OpenSale prepared(database_->url(), "prepared");
  prepared.prepare("storm");
  ASSERT_TRUE(relay->start());
  ASSERT_TRUE(polls(*relay, "waits for"));
  Shop shop(database_->url(), {.transactions = 150 * soak_factor(), .asynchronous_percent = 20});
  shop.start();
  ASSERT_TRUE(eventually([&] { return all->events().size() > 100; }));
  late.add();
  late.commit();
  Pg(database_->url()).exec("COMMIT PREPARED 'storm'");
  ASSERT_TRUE(streams(*relay));
  shop.join();
  ASSERT_EQ(shop.trouble(), "");
  auto attempts = shop.attempts();
  append(attempts, late.attempts());
  append(attempts, prepared.attempts());
  const std::size_t count = committed(attempts);
  EXPECT_TRUE(
      eventually([&] { return all->events().size() >= count && scattered->count() >= count; }));
  EXPECT_TRUE(relay->stop(seconds(60)).drained);
  expect_exactly_once(attempts, to_deliveries(*all), "all");
  expect_exactly_once(attempts, scattered->all(), "scattered");
}

TEST_F(FeedTest, whatever_happens_to_the_stream_the_promises_are_kept) {
  const auto relay = make_relay(options());
  const auto arrivals = std::make_shared<Arrivals>();
  ASSERT_TRUE(relay->use("all", std::make_unique<ScatterSink>(arrivals, ScatterOptions{})));
  ASSERT_TRUE(relay->start());
  Pg admin(database_->url());
  admin.exec("ALTER SYSTEM SET max_slot_wal_keep_size = '16MB'");
  admin.exec("SELECT pg_reload_conf()");
  Shop shop(database_->url(), {.writers = 8,
                               .transactions = 0,
                               .longest_pause = std::chrono::milliseconds(5),
                               .reconnect = true});
  shop.start();
  std::mt19937 random(7);
  const int rounds = 25 * soak_factor();
  for (int round = 0; round < rounds; ++round) {
    const std::size_t seen = arrivals->count();
    ASSERT_TRUE(eventually([&] { return arrivals->count() > seen + 50; }))
        << round << ' ' << relay->report().last_error << server_->log();
    disturb(static_cast<int>(random() % 7), *server_, *database_);
  }
  for (const int repair : {3, 1, 4}) disturb(repair, *server_, *database_);
  EXPECT_TRUE(streams(*relay)) << relay->report().last_error;
  shop.stop();
  ASSERT_EQ(shop.trouble(), "");
  const auto attempts = shop.attempts();
  EXPECT_TRUE(eventually([&] { return judge(attempts, arrivals->all()).lost == 0; }))
      << relay->report().last_error;
  EXPECT_TRUE(relay->stop(seconds(60)).drained);
  const Verdict verdict = judge(attempts, arrivals->all());
  EXPECT_TRUE(verdict.kept()) << verdict;
}

TEST_F(FeedTest, the_place_of_a_slot_holds_only_for_the_server_it_was_read_from) {
  const store::StoreOptions where{.url = database_->url()};
  {
    const auto opened = store::open_store(where);
    ASSERT_TRUE(opened);
    ASSERT_TRUE((*opened)->catalog().value()->create(custom("all")));
  }
  Pg(database_->url()).exec("SELECT pg_create_logical_replication_slot('place', 'pgoutput')");
  for (int i = 0; i < 3; ++i) Pg(database_->url()).exec(kEnqueue);
  const auto find = [&] {
    return store::open_subscription_changes(where).value()->find_slot("place");
  };
  const auto reset = [&](const store::NewStart& start) {
    return store::open_subscription_changes(where).value()->reset("all", start);
  };
  const auto before = find();
  ASSERT_TRUE(before) << before.error().text();
  server_->stop_immediate();
  server_->start();
  const auto refused = reset(*before);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text(),
              HasSubstr("crashed or was replaced since its place was read"));
  const auto after = find();
  ASSERT_TRUE(after) << after.error().text();
  const auto done = reset(*after);
  ASSERT_TRUE(done) << done.error().text();
  const auto relay = make_relay(options(Feed::poll));
  const auto recording = record(*relay, "all");
  ASSERT_TRUE(relay->start());
  EXPECT_TRUE(recording->wait_for(3, seconds(60)));
  EXPECT_TRUE(relay->stop(seconds(60)).drained);
  EXPECT_EQ(recording->events().size(), 3U);
}

}  // namespace
}  // namespace outbox::test
