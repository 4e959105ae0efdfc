// Runs the storm on a SQLite file, with writers and the relay in one process, and with the relay in
// its own process, which is killed.
#include "integration/relay/harness.hpp"
#include "support/eventually.hpp"
#include "support/relay_process.hpp"
#include "support/sqlite_shop.hpp"
#include "support/temp_dir.hpp"

namespace outbox::test {
namespace {

ShopOptions shop_options() {
  ShopOptions options;
  options.writers = 12;
  options.transactions = 60 * soak_factor();
  return options;
}

class SqliteStorm : public ::testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(Sqlite, SqliteStorm, ::testing::Values(7U, 1000U),
                         [](const auto& rows) { return "pages_of_" + std::to_string(rows.param); });

TEST_P(SqliteStorm, in_one_process_nothing_is_lost_invented_reordered_or_repeated) {
  const TempDir folder;
  const std::string path = folder.file("shop.db");
  migrate_sqlite(path);
  RelayOptions options;
  options.store_url = "sqlite:" + path;
  options.page_rows = GetParam();
  options.window_events = std::max<std::size_t>(GetParam(), 100);
  options.subscriptions = {custom("all"), custom("scattered"), custom("paid", {"OrderPaid"}),
                           custom("slow")};
  const auto relay = make_relay(options);
  const auto all = record(*relay, "all");
  const auto paid = record(*relay, "paid");
  const auto scattered = std::make_shared<Arrivals>();
  ASSERT_TRUE(relay->use("scattered", std::make_unique<ScatterSink>(scattered, ScatterOptions{})));
  const auto slow = std::make_shared<Arrivals>();
  ASSERT_TRUE(relay->use("slow", std::make_unique<SlowSink>(slow, std::chrono::microseconds(500))));
  const Status started = relay->start();
  ASSERT_TRUE(started) << started.error().text();
  SqliteShop shop(path, shop_options());
  shop.start();
  shop.join();
  ASSERT_EQ(shop.trouble(), "");
  const auto attempts = shop.attempts();
  const std::size_t count = committed(attempts);
  EXPECT_GT(count, 500U);
  EXPECT_TRUE(eventually([&] {
    return all->events().size() >= count && scattered->count() >= count && slow->count() >= count &&
           paid->events().size() >= committed(of_type(attempts, "OrderPaid"));
  })) << relay->report().last_error;
  EXPECT_TRUE(relay->stop(std::chrono::seconds(60)).drained);
  expect_exactly_once(attempts, to_deliveries(*all), "all");
  expect_exactly_once(attempts, scattered->all(), "scattered");
  expect_exactly_once(attempts, slow->all(), "slow");
  expect_exactly_once(of_type(attempts, "OrderPaid"), to_deliveries(*paid), "paid");

  const auto next = make_relay(options);
  std::vector<std::shared_ptr<const testing::Recording>> again;
  for (const char* name : {"all", "scattered", "paid", "slow"})
    again.push_back(record(*next, name));
  (void)delivered_once(*next);
  for (const auto& recording : again) EXPECT_TRUE(recording->events().empty());
}

TEST(SqliteRelayProcess, killed_again_and_again_it_loses_and_reorders_nothing) {
  const TempDir folder;
  const std::string path = folder.file("shop.db");
  const std::string file = folder.file("lines");
  migrate_sqlite(path);
  ShopOptions shop_opts = shop_options();
  shop_opts.writers = 4;
  shop_opts.transactions = 0;
  SqliteShop shop(path, shop_opts);
  shop.start();
  for (int round = 0; round < 10 * soak_factor(); ++round) {
    const std::size_t seen = lines_in(file);
    const auto relay = start_relay(
        {.store_url = "sqlite:" + path, .file = file, .page_rows = 50, .log = folder.file("log")});
    ASSERT_TRUE(eventually([&] { return lines_in(file) > seen + 100; })) << "round " << round;
    relay->kill();
  }
  shop.stop();
  ASSERT_EQ(shop.trouble(), "");
  const auto attempts = shop.attempts();
  const auto relay = start_relay(
      {.store_url = "sqlite:" + path, .file = file, .page_rows = 50, .log = folder.file("log")});
  EXPECT_TRUE(eventually([&] { return judge(attempts, deliveries_in(file)).lost == 0; }));
  relay->signal(SIGTERM);
  EXPECT_EQ(relay->wait(), 0);
  const Verdict verdict = judge(attempts, deliveries_in(file));
  EXPECT_TRUE(verdict.kept()) << verdict;
  RecordProperty("duplicates", std::to_string(verdict.duplicates));
}

TEST(SqliteRelayProcess, a_second_relay_waits_and_takes_over_when_the_first_is_killed) {
  const TempDir folder;
  const std::string path = folder.file("shop.db");
  const std::string file = folder.file("lines");
  migrate_sqlite(path);
  // The lease is too long to wait for, so that the relay must see that the process is gone.
  const RelayProcessOptions options{.store_url = "sqlite:" + path,
                                    .file = file,
                                    .lease = std::chrono::minutes(10),
                                    .page_rows = 50,
                                    .log = folder.file("log")};
  ShopOptions shop_opts = shop_options();
  shop_opts.writers = 2;
  shop_opts.transactions = 0;
  SqliteShop shop(path, shop_opts);
  shop.start();
  const auto first = start_relay(options);
  ASSERT_TRUE(eventually([&] { return lines_in(file) > 20; }));
  const auto second = start_relay(options);
  for (int round = 0; round < 2; ++round) {
    const std::size_t seen = lines_in(file);
    ASSERT_TRUE(eventually([&] { return lines_in(file) > seen + 20; }));
  }
  first->kill();
  const std::size_t seen = lines_in(file);
  EXPECT_TRUE(eventually([&] { return lines_in(file) > seen + 200; }));
  shop.stop();
  const auto attempts = shop.attempts();
  EXPECT_TRUE(eventually([&] { return judge(attempts, deliveries_in(file)).lost == 0; }));
  second->signal(SIGTERM);
  EXPECT_EQ(second->wait(), 0);
  const Verdict verdict = judge(attempts, deliveries_in(file));
  EXPECT_TRUE(verdict.kept()) << verdict;
}

TEST(RelayToken, a_stop_that_is_requested_stops_it_in_order) {
  const TempDir folder;
  const std::string path = folder.file("shop.db");
  migrate_sqlite(path);
  RelayOptions options;
  options.store_url = "sqlite:" + path;
  options.subscriptions = {custom("all")};
  const auto relay = make_relay(options);
  const auto all = record(*relay, "all");
  for (int round = 1; round <= 2; ++round) {
    std::stop_source source;
    ASSERT_TRUE(relay->start(source.get_token()));
    SqliteFile(path).exec(
        "INSERT INTO outbox_new_event (aggregate_type, aggregate_id, event_type, payload) "
        "VALUES ('order', '1', 'OrderPaid', '{}')");
    ASSERT_TRUE(all->wait_for(static_cast<std::size_t>(round), std::chrono::seconds(120)));
    source.request_stop();
    ASSERT_TRUE(eventually([&] { return !relay->report().owner; }));
    EXPECT_TRUE(relay->stop(std::chrono::seconds(60)).drained);
  }
  // With a stop that was requested before, the relay starts, and stops again.
  std::stop_source before;
  before.request_stop();
  ASSERT_TRUE(relay->start(before.get_token()));
  EXPECT_TRUE(relay->stop(std::chrono::seconds(60)).drained);
  EXPECT_EQ(all->events().size(), 2U);
}

}  // namespace
}  // namespace outbox::test
