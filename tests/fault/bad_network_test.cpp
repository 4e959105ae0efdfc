// Tests a relay behind a network that stalls, breaks and swallows.
#include "integration/relay/harness.hpp"
#include "support/eventually.hpp"
#include "support/postgres_database.hpp"
#include "support/relay_process.hpp"
#include "support/shop.hpp"
#include "support/tcp_gate.hpp"
#include "support/temp_dir.hpp"

namespace outbox::test {
namespace {

class BadNetwork : public ::testing::Test {
 protected:
  void SetUp() override {
    OUTBOX_NEEDS_POSTGRES();
    database_ = std::make_unique<PostgresDatabase>();
    shop_ = std::make_unique<Shop>(
        database_->url(),
        ShopOptions{
            .writers = 4, .transactions = 0, .longest_pause = std::chrono::milliseconds(5)});
  }

  [[nodiscard]] std::string through(const TcpGate& gate) const {
    const std::string url = database_->url();
    const auto at = url.find('@') + 1;
    const auto slash = url.find('/', at);
    return url.substr(0, at) + "127.0.0.1:" + std::to_string(gate.port()) + url.substr(slash);
  }
  [[nodiscard]] int server_port() const {
    return std::stoi(database_->connect().value("SHOW port"));
  }

  std::unique_ptr<PostgresDatabase> database_;
  std::unique_ptr<Shop> shop_;
};

TEST_F(BadNetwork, while_it_is_stalled_past_the_lease_nothing_is_published_and_then_it_goes_on) {
  TcpGate gate(server_port());
  RelayOptions options;
  options.store_url = through(gate);
  options.lease = std::chrono::milliseconds(1500);
  options.subscriptions = {custom("slow")};
  const auto relay = make_relay(options);
  const auto slow = std::make_shared<Arrivals>();
  // The sink is so slow that the relay always has something to send.
  ASSERT_TRUE(relay->use("slow", std::make_unique<SlowSink>(slow, std::chrono::milliseconds(2))));
  ASSERT_TRUE(relay->start());
  shop_->start();
  for (int round = 0; round < 2; ++round) {
    const std::size_t seen = slow->count();
    ASSERT_TRUE(eventually([&] { return slow->count() > seen + 100; }))
        << relay->report().last_error;
    gate.set(TcpGate::Mode::stalled);
    // The relay stops by itself: two checks, more than a lease apart, find the same count.
    ASSERT_TRUE(eventually([&] {
      const std::size_t count = slow->count();
      std::this_thread::sleep_for(options.lease);
      return slow->count() == count;
    }));
    gate.set(TcpGate::Mode::open);
  }
  const std::size_t seen = slow->count();
  ASSERT_TRUE(eventually([&] { return slow->count() > seen + 100; })) << relay->report().last_error;
  shop_->stop();
  const auto attempts = shop_->attempts();
  EXPECT_TRUE(eventually([&] { return judge(attempts, slow->all()).lost == 0; }));
  EXPECT_TRUE(eventually_settled(database_->url(), "slow"));
  EXPECT_TRUE(relay->stop(std::chrono::seconds(30)).drained);
  expect_exactly_once(attempts, slow->all(), "slow");
}

TEST_F(BadNetwork, connections_that_are_cut_or_swallowed_lose_and_reorder_nothing) {
  TcpGate gate(server_port());
  RelayOptions options;
  options.store_url = through(gate);
  options.lease = std::chrono::milliseconds(1500);
  options.subscriptions = {custom("scattered")};
  const auto relay = make_relay(options);
  const auto scattered = std::make_shared<Arrivals>();
  ASSERT_TRUE(relay->use("scattered", std::make_unique<ScatterSink>(scattered, ScatterOptions{})));
  ASSERT_TRUE(relay->start());
  shop_->start();
  for (int round = 0; round < 4 * soak_factor(); ++round) {
    const std::size_t seen = scattered->count();
    ASSERT_TRUE(eventually([&] { return scattered->count() > seen + 60; }))
        << relay->report().last_error;
    if (round % 4 == 2) {
      const int connections = gate.connections();
      gate.set(TcpGate::Mode::blackhole);
      // The relay must give up on the dead connections and ask for new ones by itself.
      ASSERT_TRUE(eventually([&] { return gate.connections() > connections; }));
      gate.set(TcpGate::Mode::open);
      gate.cut();
    } else {
      gate.cut();
    }
  }
  shop_->stop();
  const auto attempts = shop_->attempts();
  EXPECT_TRUE(eventually([&] { return judge(attempts, scattered->all()).lost == 0; }));
  EXPECT_TRUE(eventually_settled(database_->url(), "scattered"));
  EXPECT_TRUE(relay->stop(std::chrono::seconds(30)).drained);
  expect_exactly_once(attempts, scattered->all(), "scattered");
}

TEST_F(BadNetwork, a_relay_that_lost_its_lease_lets_the_next_owner_have_the_file) {
  const TempDir folder;
  const std::string file = folder.file("orders.jsonl");
  TcpGate gate(server_port());
  SubscriptionSpec spec;
  spec.name = "orders";
  spec.sink = "file";
  spec.sink_settings["path"] = file;
  RelayOptions options;
  options.lease = std::chrono::milliseconds(1500);
  options.subscriptions = {spec};
  options.store_url = through(gate);
  const auto first = make_relay(options);
  options.store_url = database_->url();
  // The second relay never loses this lease, however busy the machine is.
  options.lease = std::chrono::seconds(15);
  const auto second = make_relay(options);
  ASSERT_TRUE(first->start());
  shop_->start();
  ASSERT_TRUE(eventually([&] { return lines_in(file) > 50; })) << first->report().last_error;
  ASSERT_TRUE(second->start());
  gate.set(TcpGate::Mode::stalled);
  ASSERT_TRUE(eventually([&] { return second->report().owner; }));
  const std::size_t seen = lines_in(file);
  // The first relay closes the file when its statements time out, after 30 s. The second one
  // retries with growing pauses.
  ASSERT_TRUE(eventually([&] { return lines_in(file) > seen + 100; }, std::chrono::seconds(240)))
      << read_report(*second, "orders").reason;
  gate.set(TcpGate::Mode::open);
  // The lanes go back when the second relay stops gracefully.
  EXPECT_TRUE(second->stop(std::chrono::seconds(30)).drained);
  EXPECT_TRUE(eventually([&] { return first->report().owner; }));
  shop_->stop();
  const auto attempts = shop_->attempts();
  EXPECT_TRUE(eventually([&] { return judge(attempts, deliveries_in(file)).lost == 0; }));
  EXPECT_TRUE(eventually_settled(database_->url(), "orders"));
  EXPECT_TRUE(first->stop(std::chrono::seconds(30)).drained);
  const Verdict verdict = judge(attempts, deliveries_in(file));
  EXPECT_TRUE(verdict.kept()) << verdict;
}

}  // namespace
}  // namespace outbox::test
