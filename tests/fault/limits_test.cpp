// Tests a relay on a busy database: no connection is left, its pooler is restarted, or a long lock
// keeps new partitions away.
#include <list>

#include "integration/relay/harness.hpp"
#include "integration/retention/fixture.hpp"
#include "support/eventually.hpp"
#include "support/own_pgbouncer.hpp"
#include "support/own_postgres.hpp"
#include "support/postgres_database.hpp"
#include "support/shop.hpp"

namespace outbox::test {
namespace {

/// A relay whose only subscription is delivered to a destination in memory.
class Delivering {
 public:
  explicit Delivering(const std::string& url, bool wake_up = true)
      : relay_(make_relay(
            {.store_url = url, .subscriptions = {custom("orders")}, .wake_up = wake_up})) {
    EXPECT_TRUE(relay_->use("orders", std::make_unique<ScatterSink>(arrived_, ScatterOptions{})));
    const Status started = relay_->start();
    EXPECT_TRUE(started) << started.error().text();
  }
  [[nodiscard]] bool more(std::size_t events = 100) const {
    const std::size_t seen = arrived_->count();
    return eventually([&] { return arrived_->count() > seen + events; });
  }
  [[nodiscard]] std::string last_error() const { return relay_->report().last_error; }
  void stop() { EXPECT_TRUE(relay_->stop(std::chrono::seconds(30)).drained); }
  /// Stops the shop and the relay, and expects that every promise was kept, without a duplicate.
  void finish(Shop& shop, const std::string& url) {
    shop.stop();
    ASSERT_EQ(shop.trouble(), "");
    const auto attempts = shop.attempts();
    EXPECT_TRUE(eventually([&] { return judge(attempts, arrived_->all()).lost == 0; }))
        << last_error();
    EXPECT_TRUE(eventually_settled(url, "orders"));
    stop();
    expect_exactly_once(attempts, arrived_->all(), "orders");
  }

 private:
  const std::shared_ptr<Arrivals> arrived_ = std::make_shared<Arrivals>();
  std::unique_ptr<Relay> relay_;
};

ShopOptions load() {
  return {.writers = 3, .transactions = 0, .longest_pause = std::chrono::milliseconds(5)};
}

TEST(ConnectionLimit, a_relay_that_gets_no_connection_goes_on_when_there_is_one) {
  OUTBOX_NEEDS_PGBIN();
  const OwnPostgres server({"max_connections = 25", "superuser_reserved_connections = 0"});
  const PostgresDatabase database(server.url(), PostgresDatabase::Schema::migrated);
  Shop shop(database.url(), load());
  shop.start();
  Delivering relay(database.url());
  ASSERT_TRUE(relay.more());
  Pg admin = database.connect();
  std::list<Pg> hoard;
  const auto take_all = [&] {
    try {
      while (true) hoard.emplace_back(database.url());
    } catch (const PgError&) {
    }
  };
  take_all();
  ASSERT_TRUE(eventually([&] {
    admin.exec(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'outbox relay%'");
    take_all();
    return relay.last_error().find("too many clients") != std::string::npos;
  })) << relay.last_error();
  const auto another = make_relay({.store_url = database.url()});
  const Status refused = another->start();
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().text().find("too many clients"), std::string::npos)
      << refused.error().text();
  const std::size_t tried = shop.tried();
  ASSERT_TRUE(eventually([&] { return shop.tried() > tried + 200; })) << "writers wait for a relay";
  hoard.clear();
  ASSERT_TRUE(relay.more(300)) << relay.last_error();
  relay.finish(shop, database.url());
}

TEST(PoolerRestart, under_load_loses_reorders_and_repeats_nothing) {
  OUTBOX_NEEDS_POSTGRES();
  OUTBOX_NEEDS("OUTBOX_TEST_PGBOUNCER", "pgbouncer in transaction mode");
  const PostgresDatabase database;
  OwnPgBouncer pooler(std::stoi(database.connect().value("SHOW port")));
  Shop shop(database.url(), load());
  shop.start();
  Delivering relay(pooler.url(database.name()), false);
  for (int round = 0; round < 6 * soak_factor(); ++round) {
    ASSERT_TRUE(relay.more()) << "round " << round << ": " << relay.last_error();
    pooler.restart();
  }
  ASSERT_TRUE(relay.more()) << relay.last_error();
  relay.finish(shop, database.url());
}

TEST(PartitionsKeptAway, by_a_long_lock_writers_and_relay_go_on_and_afterwards_all_recovers) {
  OUTBOX_NEEDS_POSTGRES();
  const PostgresDatabase database;
  Pg admin = database.connect();
  // These partitions are soon full, and there is none behind them.
  make_small_partitions(admin, 3, 100);
  admin.exec("DROP TABLE outbox." +
             admin.value("SELECT name FROM outbox.partitions() ORDER BY first_xid::text::bigint "
                         "DESC NULLS LAST LIMIT 1"));
  Pg reader = database.connect();
  reader.exec("BEGIN; SELECT count(*) FROM outbox.event");
  const auto partitions = [&] { return admin.value("SELECT count(*) FROM outbox.partitions()"); };
  const std::string before = partitions();

  Shop shop(database.url(), load());
  shop.start();
  Delivering relay(database.url());
  ASSERT_TRUE(eventually([&] {
    return std::stoi(admin.value("SELECT count(*) FROM outbox.event_default")) > 300;
  })) << "writers wait";
  ASSERT_TRUE(relay.more(300)) << relay.last_error();
  EXPECT_EQ(partitions(), before) << "the lock keeps nothing away: this proves nothing";
  reader.exec("COMMIT");

  // A relay looks for missing partitions when it starts, and then every minute.
  const auto another = make_relay({.store_url = database.url()});
  ASSERT_TRUE(another->start());
  ASSERT_TRUE(eventually([&] { return partitions() != before; }));
  // The new partition begins some thousand transactions ahead.
  admin.run(
      "DO $$ BEGIN FOR i IN 1..20000 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$");
  ASSERT_TRUE(eventually([&] {
    return admin.value(
               "SELECT tableoid::regclass::text FROM outbox.event ORDER BY seq DESC LIMIT 1") !=
           "outbox.event_default";
  }));
  EXPECT_TRUE(another->stop(std::chrono::seconds(30)).drained);
  ASSERT_TRUE(relay.more(100)) << relay.last_error();
  relay.finish(shop, database.url());
  const auto store = store::open_store({.url = database.url()}).value();
  EXPECT_TRUE(eventually([&] {
    return prune(*store) && admin.value("SELECT count(*) FROM outbox.event_default") == "0";
  }));
}

}  // namespace
}  // namespace outbox::test
