// Runs the storm. Many writers write on few aggregates, in every way in which applications write,
// with random delays, savepoints, early transaction ids and roll-backs, while one transaction stays
// open from before the first event until after the last, one is prepared, and a snapshot is held.
// Nothing may be lost, invented, reordered or repeated.
#include "integration/relay/harness.hpp"
#include "support/ledger_check.hpp"
#include "support/postgres_database.hpp"
#include "support/shop.hpp"

namespace outbox::test {
namespace {

struct Weather {
  std::size_t page_rows{0};
  bool wake_up{true};
  std::size_t window_events{0};
};

class Storm : public ::testing::TestWithParam<Weather> {
 protected:
  void SetUp() override { OUTBOX_NEEDS_POSTGRES(); }
};

INSTANTIATE_TEST_SUITE_P(
    Postgres, Storm,
    ::testing::Values(Weather{.page_rows = 7, .wake_up = true, .window_events = 100},
                      Weather{.page_rows = 1000, .wake_up = true, .window_events = 1000},
                      Weather{.page_rows = 50, .wake_up = false, .window_events = 10000}),
    [](const auto& weather) { return "pages_of_" + std::to_string(weather.param.page_rows); });

TEST_P(Storm, nothing_is_lost_invented_reordered_or_repeated) {
  const PostgresDatabase database;
  RelayOptions options;
  options.store_url = database.url();
  options.page_rows = GetParam().page_rows;
  options.window_events = GetParam().window_events;
  options.wake_up = GetParam().wake_up;
  options.subscriptions = {custom("all"), custom("scattered"), custom("paid", {"OrderPaid"}),
                           custom("slow")};
  const auto relay = make_relay(options);
  const auto all = record(*relay, "all");
  const auto paid = record(*relay, "paid");
  const auto scattered = std::make_shared<Arrivals>();
  ASSERT_TRUE(relay->use("scattered", std::make_unique<ScatterSink>(scattered, ScatterOptions{})));
  const auto slow = std::make_shared<Arrivals>();
  ASSERT_TRUE(relay->use("slow", std::make_unique<SlowSink>(slow, std::chrono::microseconds(500))));

  Pg snapshot(database.url());
  snapshot.exec("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1");
  OpenSale late(database.url(), "late");
  OpenSale never(database.url(), "never");
  OpenSale prepared(database.url(), "prepared");
  const std::string prepared_name = database.name() + "_prepared";
  prepared.prepare(prepared_name);

  ASSERT_TRUE(relay->start());
  Shop shop(database.url(), {.transactions = 150 * soak_factor()});
  shop.start();
  ASSERT_TRUE(eventually([&] { return all->events().size() > 100; })) << relay->report().last_error;
  late.add();
  shop.join();
  ASSERT_EQ(shop.trouble(), "");
  late.add();
  late.commit();
  never.rollback();
  Pg(database.url()).exec("COMMIT PREPARED '" + prepared_name + "'");
  snapshot.exec("COMMIT");

  auto attempts = shop.attempts();
  append(attempts, late.attempts());
  append(attempts, never.attempts());
  append(attempts, prepared.attempts());
  const std::size_t count = committed(attempts);
  const std::size_t count_paid = committed(of_type(attempts, "OrderPaid"));
  EXPECT_GT(count, 1000U);
  EXPECT_TRUE(eventually(
      [&] {
        return all->events().size() >= count && scattered->count() >= count &&
               slow->count() >= count && paid->events().size() >= count_paid;
      },
      std::chrono::minutes(5)))
      << relay->report().last_error;
  EXPECT_TRUE(relay->stop(std::chrono::seconds(60)).drained);

  expect_exactly_once(attempts, to_deliveries(*all), "all");
  expect_exactly_once(attempts, scattered->all(), "scattered");
  expect_exactly_once(attempts, slow->all(), "slow");
  expect_exactly_once(of_type(attempts, "OrderPaid"), to_deliveries(*paid), "paid");
  Pg connection(database.url());
  for (const char* name : {"all", "scattered", "paid", "slow"})
    EXPECT_EQ(ledger_fault(connection, name), "") << name;

  // Everything was settled: the next relay finds nothing to do.
  const auto next = make_relay(options);
  std::vector<std::shared_ptr<const testing::Recording>> again;
  for (const char* name : {"all", "scattered", "paid", "slow"})
    again.push_back(record(*next, name));
  (void)delivered_once(*next);
  for (const auto& recording : again) EXPECT_TRUE(recording->events().empty());
}

TEST_P(Storm, connections_that_are_killed_lose_reorder_and_repeat_nothing) {
  const PostgresDatabase database;
  RelayOptions options;
  options.store_url = database.url();
  options.page_rows = GetParam().page_rows;
  options.window_events = GetParam().window_events;
  options.wake_up = GetParam().wake_up;
  options.subscriptions = {custom("all"), custom("scattered")};
  const auto relay = make_relay(options);
  const auto all = record(*relay, "all");
  const auto scattered = std::make_shared<Arrivals>();
  ASSERT_TRUE(relay->use(
      "scattered", std::make_unique<ScatterSink>(scattered, ScatterOptions{.fail_percent = 1})));
  ASSERT_TRUE(relay->start());
  Shop shop(database.url(),
            {.writers = 8, .transactions = 0, .longest_pause = std::chrono::milliseconds(5)});
  shop.start();
  Pg killer(database.url());
  for (int round = 0; round < 12 * soak_factor(); ++round) {
    // Each kill comes in the middle of new work.
    const std::size_t seen = all->events().size();
    ASSERT_TRUE(eventually([&] { return all->events().size() > seen + 40; }))
        << relay->report().last_error;
    killer.exec(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
        "AND application_name LIKE 'outbox relay%'");
  }
  shop.stop();
  ASSERT_EQ(shop.trouble(), "");
  const auto attempts = shop.attempts();
  EXPECT_TRUE(eventually(
      [&] {
        return all->events().size() >= committed(attempts) &&
               scattered->count() >= committed(attempts);
      },
      std::chrono::minutes(5)))
      << relay->report().last_error;
  EXPECT_TRUE(relay->stop(std::chrono::seconds(60)).drained);
  expect_exactly_once(attempts, to_deliveries(*all), "all");
  expect_exactly_once(attempts, scattered->all(), "scattered");
}

}  // namespace
}  // namespace outbox::test
