// Tests a crash of the server, which takes back what was not flushed, so that transaction ids and
// sequence numbers are issued again. Behind a pooler the relay's connections survive the crash.
// What was read before it must not be delivered, settled or marked after it.
#include <csignal>

#include "integration/postgres/harness.hpp"
#include "store/postgres/marks.hpp"
#include "support/eventually.hpp"
#include "support/own_pgbouncer.hpp"
#include "support/own_postgres.hpp"

namespace outbox::test {
namespace {

using ::testing::HasSubstr;

class PostgresIncarnation : public ::testing::Test {
 protected:
  void SetUp() override {
    OUTBOX_NEEDS_PGBIN();
    OUTBOX_NEEDS("OUTBOX_TEST_PGBOUNCER", "pgbouncer in transaction mode");
    // With these settings asynchronous commits stay in memory.
    server_ = std::make_unique<OwnPostgres>(std::vector<std::string>{
        "wal_writer_delay = '10s'", "wal_writer_flush_after = '1GB'", "checkpoint_timeout = '1h'"});
    database_ =
        std::make_unique<PostgresDatabase>(server_->url(), PostgresDatabase::Schema::migrated);
    pooler_ = std::make_unique<OwnPgBouncer>(server_->port());
    pooled_url_ = pooler_->url(database_->name());
    store_ = open_at(pooled_url_);
  }

  /// Kills a backend, so that the server ends all of them and recovers, under the same postmaster.
  void crash() const {
    Pg victim = database_->connect();
    Pg witness = database_->connect();
    ASSERT_EQ(kill(std::stoi(victim.value("SELECT pg_backend_pid()")), SIGKILL), 0);
    ASSERT_TRUE(
        eventually([&] { return find_sqlstate(witness, "SELECT 1") != "" || witness.broken(); }));
    ASSERT_TRUE(eventually([&] { return answers(database_->url()) && answers(pooled_url_); }));
  }
  static bool answers(const std::string& url) {
    try {
      return Pg(url).value("SELECT 1") == "1";
    } catch (const std::exception&) {
      return false;
    }
  }
  void enqueue(const std::string& key, bool durable) const {
    Pg connection = database_->connect();
    (void)connection.exec(durable ? "SET synchronous_commit = on" : "SET synchronous_commit = off");
    (void)connection.exec("SELECT outbox.enqueue('a', $1, 'E', '1')", {key});
  }
  [[nodiscard]] std::string count(const std::string& key) const {
    return database_->connect().value("SELECT count(*) FROM outbox.event WHERE aggregate_id = $1",
                                      key);
  }
  [[nodiscard]] Result<store::postgres::Connection> pooled() const {
    return store::postgres::Connection::open({.url = pooled_url_}, "test");
  }

  /// A reader that has read an event which a crash then takes back.
  [[nodiscard]] std::unique_ptr<store::LogReader> reader_of_a_vanished_event() {
    auto reader = store_->reader();
    EXPECT_TRUE(ok(reader));
    EXPECT_TRUE(ok((*reader)->begin({})));
    enqueue("vanishes", false);
    EXPECT_TRUE(ok((*reader)->start({.cursor = {.s1 = "3:3:"}})));
    auto page = (*reader)->finish();
    EXPECT_TRUE(ok(page));
    EXPECT_EQ(page->events.size(), 1U);
    crash();
    EXPECT_EQ(count("vanishes"), "0") << "the crash took nothing back: this proves nothing";
    return std::move(*reader);
  }
  template <class Answer>
  static void expect_other_incarnation(const Answer& status) {
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().remedy, Remedy::reconnect);
    EXPECT_EQ(status.error().effect, Effect::none);
  }

  std::unique_ptr<OwnPostgres> server_;
  std::unique_ptr<PostgresDatabase> database_;
  std::unique_ptr<OwnPgBouncer> pooler_;
  std::string pooled_url_;
  std::unique_ptr<store::Store> store_;
};

TEST_F(PostgresIncarnation,
       a_crash_between_fetch_and_barrier_is_noticed_when_the_log_has_grown_again) {
  const auto reader = reader_of_a_vanished_event();
  // The log is flushed beyond the place where the vanished event was.
  for (int i = 0; i < 100; ++i) enqueue("stays", true);
  expect_other_incarnation(reader->wait_durable());
}

TEST_F(PostgresIncarnation,
       a_crash_between_fetch_and_barrier_is_noticed_when_the_barrier_is_forced) {
  const auto reader = reader_of_a_vanished_event();
  expect_other_incarnation(reader->wait_durable());
}

TEST_F(PostgresIncarnation, pages_are_not_read_across_a_crash) {
  const auto reader = reader_of_a_vanished_event();
  enqueue("stays", true);
  ASSERT_TRUE(ok(reader->start({.cursor = {.s1 = "3:3:"}})));
  auto page = reader->finish();
  ASSERT_FALSE(page);
  EXPECT_EQ(page.error().remedy, Remedy::reconnect);
  ASSERT_TRUE(ok(reader->begin({})));
  ASSERT_TRUE(ok(reader->start({.cursor = {.s1 = "3:3:"}})));
  page = reader->finish();
  ASSERT_TRUE(ok(page));
  ASSERT_EQ(page->events.size(), 1U);
  EXPECT_EQ(page->events.front().aggregate_id, "stays");
  EXPECT_TRUE(ok(reader->wait_durable()));
}

TEST_F(PostgresIncarnation, what_was_read_before_a_crash_is_not_settled_after_it) {
  ASSERT_TRUE(ok((*store_->catalog())->apply({.name = "mails", .sink = "null"})));
  auto reader = store_->reader();
  ASSERT_TRUE(ok((*reader)->begin({})));
  auto progress = store_->progress();
  ASSERT_TRUE(ok(progress));
  store::Settlement row;
  row.subscription = 1;
  row.config_version = 1;
  row.s1 = "3:3:";
  row.s2 = database_->connect().value("SELECT pg_current_snapshot()");
  EXPECT_TRUE(
      ok((*progress)->append({.settlements = std::span(&row, 1)}, store::Durability::flushed)));
  crash();
  const auto refused =
      (*progress)->append({.settlements = std::span(&row, 1)}, store::Durability::flushed);
  expect_other_incarnation(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("not the server that was read from"));
}

TEST_F(PostgresIncarnation, a_sequence_that_was_read_before_a_crash_is_no_mark_after_it) {
  auto connection = pooled();
  ASSERT_TRUE(ok(connection));
  enqueue("vanishes", false);
  auto reading = store::postgres::read_sequence(*connection);
  ASSERT_TRUE(ok(reading));
  EXPECT_EQ(reading->value, 1);
  crash();
  auto refused = store::postgres::write_mark(*connection, *reading);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().effect, Effect::none);
  EXPECT_EQ(database_->connect().value("SELECT count(*) FROM outbox.settlement"), "0");
  reading = store::postgres::read_sequence(*connection);
  ASSERT_TRUE(ok(reading));
  EXPECT_TRUE(ok(store::postgres::write_mark(*connection, *reading)));
}

}  // namespace
}  // namespace outbox::test
