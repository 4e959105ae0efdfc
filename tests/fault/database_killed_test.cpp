// Tests that the database may crash under load and lose asynchronous commits. What was delivered
// must have survived.
#include <csignal>

#include "integration/relay/harness.hpp"
#include "support/child_process.hpp"
#include "support/eventually.hpp"
#include "support/ledger_check.hpp"
#include "support/own_pgbouncer.hpp"
#include "support/own_postgres.hpp"
#include "support/postgres_database.hpp"
#include "support/relay_process.hpp"
#include "support/shop.hpp"
#include "support/temp_dir.hpp"

namespace outbox::test {
namespace {

/// With these settings only commits flush the WAL: asynchronous commits stay in memory for long.
const std::vector<std::string> kLazyLog = {
    "wal_writer_delay = '10s'", "wal_writer_flush_after = '1GB'", "checkpoint_timeout = '1h'"};

const ShopOptions kLazyShop{.writers = 8,
                            .transactions = 0,
                            .asynchronous_percent = 100,
                            .longest_pause = std::chrono::milliseconds(3),
                            .reconnect = true};

/// Ends the writers, lets the relay deliver and settle the rest, and compares what it delivered
/// with what survived.
void expect_kept(Shop& shop, ChildProcess& relay, const std::string& url, const std::string& file) {
  shop.stop();
  ASSERT_EQ(shop.trouble(), "");
  const auto attempts = shop.attempts();
  EXPECT_TRUE(eventually([&] { return judge(attempts, deliveries_in(file)).lost == 0; }))
      << judge(attempts, deliveries_in(file));
  EXPECT_TRUE(eventually_settled(url, "lines"));
  relay.signal(SIGTERM);
  EXPECT_EQ(relay.wait(), 0);
  const Verdict verdict = judge(attempts, deliveries_in(file));
  EXPECT_TRUE(verdict.kept()) << verdict;
  const auto vanished = std::count_if(attempts.begin(), attempts.end(), [](const Attempt& attempt) {
    return attempt.acknowledged && attempt.end == Attempt::End::rolled_back;
  });
  EXPECT_GT(vanished, 0) << "the crashes took nothing back: this proves nothing";
  ::testing::Test::RecordProperty("vanished", std::to_string(vanished));
  ::testing::Test::RecordProperty("duplicates", std::to_string(verdict.duplicates));
}

class DatabaseKilled : public ::testing::Test {
 protected:
  void SetUp() override { OUTBOX_NEEDS_PGBIN(); }
};

TEST_F(DatabaseKilled,
       under_load_nothing_that_survived_is_lost_and_nothing_that_vanished_was_delivered) {
  OwnPostgres server(kLazyLog);
  const PostgresDatabase database(server.url(), PostgresDatabase::Schema::migrated);
  const TempDir folder;
  const std::string file = folder.file("lines");
  Shop shop(database.url(), kLazyShop);
  const auto relay = start_relay(
      {.store_url = database.url(), .file = file, .page_rows = 100, .log = folder.file("log")});
  shop.start();
  for (int round = 0; round < 10 * soak_factor(); ++round) {
    const std::size_t seen = lines_in(file);
    ASSERT_TRUE(eventually([&] { return lines_in(file) > seen + 100; }))
        << "round " << round << '\n'
        << server.log();
    const bool asleep = round % 2 == 1;
    if (asleep) {
      // The suspended relay does not see the last events before the crash, and holds a snapshot
      // from before the crash.
      relay->signal(SIGSTOP);
      const std::size_t tried = shop.tried();
      ASSERT_TRUE(eventually([&] { return shop.tried() > tried + 100; }));
    }
    server.stop_immediate();
    server.start();
    if (asleep) {
      // The server issues transaction ids a second time before the relay wakes up.
      const std::size_t tried = shop.tried();
      ASSERT_TRUE(eventually([&] { return shop.tried() > tried + 300; }));
      relay->signal(SIGCONT);
    }
  }
  expect_kept(shop, *relay, database.url(), file);
}

/// Kills a backend, so that the server ends all the others and recovers. The pooler's clients do
/// not notice.
void kill_a_backend(const PostgresDatabase& database) {
  Pg victim = database.connect();
  ASSERT_EQ(kill(std::stoi(victim.value("SELECT pg_backend_pid()")), SIGKILL), 0);
}

TEST_F(DatabaseKilled,
       behind_a_pooler_a_relay_that_slept_through_a_crash_neither_loses_nor_invents) {
  OUTBOX_NEEDS("OUTBOX_TEST_PGBOUNCER", "pgbouncer in transaction mode");
  OwnPostgres server(kLazyLog);
  const PostgresDatabase database(server.url(), PostgresDatabase::Schema::migrated);
  const OwnPgBouncer pooler(server.port());
  const TempDir folder;
  const std::string file = folder.file("lines");
  Shop shop(database.url(), kLazyShop);
  const auto relay = start_relay({.store_url = pooler.url(database.name()),
                                  .file = file,
                                  .page_rows = 100,
                                  .log = folder.file("log")});
  shop.start();
  for (int round = 0; round < 5 * soak_factor(); ++round) {
    const std::size_t seen = lines_in(file);
    ASSERT_TRUE(eventually([&] { return lines_in(file) > seen + 100; }))
        << "round " << round << '\n'
        << server.log();
    // The signal most likely comes between a fetch and its barrier. Only the relay flushes the log.
    relay->signal(SIGSTOP);
    kill_a_backend(database);
    const std::size_t tried = shop.tried();
    ASSERT_TRUE(eventually([&] { return shop.tried() > tried + 300; }));  // ids are issued again
    relay->signal(SIGCONT);
  }
  expect_kept(shop, *relay, database.url(), file);
}

TEST_F(DatabaseKilled, at_the_moment_of_delivery_the_event_is_on_the_disk) {
  OwnPostgres server(kLazyLog);
  const PostgresDatabase database(server.url(), PostgresDatabase::Schema::migrated);
  RelayOptions options;
  options.store_url = database.url();
  options.subscriptions = {custom("crashing")};
  options.wake_up = false;
  options.idle_poll = std::chrono::milliseconds(2);
  const auto relay = make_relay(options);
  const auto crashed = std::make_shared<std::atomic<int>>(0);
  // The sink crashes the database before it returns an outcome.
  auto sink = std::make_unique<testing::FailingSink>([&server, crashed](const EventView& event) {
    if (event.event_type == "Crash" && crashed->load() % 2 == 0) {
      server.stop_immediate();
      ++*crashed;
    }
    return Outcome::Kind::acked;
  });
  const auto recording = sink->recording();
  ASSERT_TRUE(relay->use("crashing", std::move(sink)));
  ASSERT_TRUE(relay->start());
  for (int round = 0; round < 4; ++round) {
    // Waits until the relay is idle. Its start flushes the WAL, so that a crash right behind it
    // would prove nothing.
    const std::uint64_t generation = static_cast<std::uint64_t>(round);
    ASSERT_TRUE(eventually([&] {
      const RelayReport report = relay->report();
      return report.owner && report.fetches > 300 &&
             static_cast<std::uint64_t>(report.generation) > generation;
    }));
    Pg writer(database.url());
    writer.exec("SET synchronous_commit = off");
    writer.exec("SELECT outbox.enqueue('Order', 'k', 'Crash', '{}'::jsonb)");
    ASSERT_TRUE(eventually([&] { return *crashed == 2 * round + 1; }))
        << relay->report().last_error;
    server.start();
    ASSERT_TRUE(recording->wait_for(static_cast<std::size_t>(round) + 1, std::chrono::seconds(120)))
        << "it writes down what it has let through after it has pulled the plug";
    const auto events = recording->events();
    ASSERT_FALSE(events.empty());
    EXPECT_EQ(database.connect().value("SELECT count(*) FROM outbox.event WHERE id = $1::uuid",
                                       events.back().id.str()),
              "1")
        << "delivered, and gone";
    ++*crashed;
  }
  // Waits until the relay has read and settled again what the last crash lost.
  EXPECT_TRUE(eventually([&] {
    const RelayReport report = relay->report();
    return report.owner && report.generation > 4 && report.fetches > 300;
  }));
  EXPECT_TRUE(relay->stop(std::chrono::seconds(30)).drained);
}

TEST_F(DatabaseKilled, a_relay_that_lives_on_repeats_at_most_what_the_crash_took_back) {
  OwnPostgres server;
  const PostgresDatabase database(server.url(), PostgresDatabase::Schema::migrated);
  RelayOptions options;
  options.store_url = database.url();
  options.subscriptions = {custom("scattered")};
  const auto relay = make_relay(options);
  const auto scattered = std::make_shared<Arrivals>();
  ASSERT_TRUE(relay->use("scattered", std::make_unique<ScatterSink>(scattered, ScatterOptions{})));
  ASSERT_TRUE(relay->start());
  Shop shop(database.url(), {.writers = 4,
                             .transactions = 0,
                             .longest_pause = std::chrono::milliseconds(4),
                             .reconnect = true});
  shop.start();
  constexpr int kRounds = 4;
  for (int round = 0; round < kRounds; ++round) {
    const std::size_t seen = scattered->count();
    ASSERT_TRUE(eventually([&] { return scattered->count() > seen + 100; }))
        << relay->report().last_error;
    server.stop_immediate();
    server.start();
  }
  shop.stop();
  const auto attempts = shop.attempts();
  EXPECT_TRUE(eventually([&] { return judge(attempts, scattered->all()).lost == 0; }))
      << relay->report().last_error;
  EXPECT_TRUE(eventually_settled(database.url(), "scattered"));
  EXPECT_TRUE(relay->stop(std::chrono::seconds(30)).drained);
  const Verdict verdict = judge(attempts, scattered->all());
  EXPECT_TRUE(verdict.kept()) << verdict;
  // Each crash loses the settlements that were not flushed, which are those of at most one window.
  EXPECT_LE(verdict.duplicates, kRounds * options.window_events) << verdict;
  RecordProperty("duplicates", std::to_string(verdict.duplicates));
  Pg connection(database.url());
  EXPECT_EQ(ledger_fault(connection, "scattered"), "");
}

}  // namespace
}  // namespace outbox::test
