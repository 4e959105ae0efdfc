// Tests a relay behind a gate before the database, and before Kafka. The gate refuses connections,
// stalls, cuts them anywhere, loses only the answers, and is slow.
#include "integration/relay/harness.hpp"
#include "support/eventually.hpp"
#include "support/postgres_database.hpp"
#include "support/shop.hpp"
#include "support/tcp_gate.hpp"
#ifdef OUTBOX_WITH_KAFKA
#include "support/kafka_deliveries.hpp"
#endif

namespace outbox::test {
namespace {

using Mode = TcpGate::Mode;

class Gate : public ::testing::Test {
 protected:
  void SetUp() override {
    OUTBOX_NEEDS_POSTGRES();
    database_ = std::make_unique<PostgresDatabase>();
    shop_ = std::make_unique<Shop>(
        database_->url(),
        ShopOptions{
            .writers = 4, .transactions = 0, .longest_pause = std::chrono::milliseconds(5)});
  }

  /// Injects each fault in the middle of work, and keeps it up until it has hit. `delivered`
  /// returns how many events have arrived.
  void misbehave(TcpGate& gate, const std::function<std::size_t()>& delivered) {
    const auto more = [&](std::size_t events, const char* when) {
      const std::size_t seen = delivered();
      ASSERT_TRUE(eventually([&] { return delivered() > seen + events; })) << when;
    };
    for (int round = 0; round < soak_factor(); ++round) {
      more(60, "before it was cut");
      const int cuts = gate.cuts();
      gate.cut_after(20'000);
      ASSERT_TRUE(eventually([&] { return gate.cuts() > cuts + 10; }));
      gate.cut_after(0);

      more(60, "after it was cut");
      const int lost = gate.lost_answers();
      gate.set(Mode::answers_lost);
      ASSERT_TRUE(eventually([&] { return gate.lost_answers() > lost + 2; }));
      gate.set(Mode::open);

      for (const Mode mode : {Mode::refused, Mode::stalled}) {
        more(60, "before nothing passes");
        gate.set(mode);
        // The relay has stopped when nothing arrives between two looks.
        std::size_t seen = delivered();
        ASSERT_TRUE(eventually([&] {
          std::this_thread::sleep_for(std::chrono::milliseconds(300));
          return std::exchange(seen, delivered()) == seen;
        }));
        gate.set(Mode::open);
      }
      more(60, "before it is slow");
      gate.set(Mode::slow);
      more(20, "while it is slow");
      gate.set(Mode::open);
    }
    more(60, "at the end");
  }

  std::unique_ptr<PostgresDatabase> database_;
  std::unique_ptr<Shop> shop_;
};

TEST_F(Gate, before_the_database_loses_reorders_and_repeats_nothing) {
  TcpGate gate(std::stoi(database_->connect().value("SHOW port")));
  const std::string url = database_->url();
  const auto at = url.find('@') + 1;
  RelayOptions options;
  options.store_url = url.substr(0, at) + "127.0.0.1:" + std::to_string(gate.port()) +
                      url.substr(url.find('/', at));
  options.page_rows = 50;
  options.subscriptions = {custom("scattered")};
  const auto relay = make_relay(options);
  const auto scattered = std::make_shared<Arrivals>();
  ASSERT_TRUE(relay->use("scattered", std::make_unique<ScatterSink>(scattered, ScatterOptions{})));
  ASSERT_TRUE(relay->start());
  shop_->start();
  misbehave(gate, [&] { return scattered->count(); });
  shop_->stop();
  ASSERT_EQ(shop_->trouble(), "");
  const auto attempts = shop_->attempts();
  EXPECT_TRUE(eventually([&] { return judge(attempts, scattered->all()).lost == 0; }))
      << relay->report().last_error;
  EXPECT_TRUE(eventually_settled(database_->url(), "scattered"));
  EXPECT_TRUE(relay->stop(std::chrono::seconds(30)).drained);
  expect_exactly_once(attempts, scattered->all(), "scattered");
}

#ifdef OUTBOX_WITH_KAFKA
TEST_F(Gate, before_kafka_loses_and_reorders_nothing) {
  OUTBOX_NEEDS_KAFKA();
  OUTBOX_NEEDS("OUTBOX_TEST_KAFKA_GATE", "a broker that names a gate to its clients");
  const int port = std::stoi(*environment("OUTBOX_TEST_KAFKA_GATE"));
  TcpGate gate(std::stoi(*environment("OUTBOX_TEST_KAFKA_BEHIND_GATE")), port);
  const KafkaTopic topic(*environment("OUTBOX_TEST_KAFKA"), 4);
  RelayOptions options;
  options.store_url = database_->url();
  options.page_rows = 50;
  SubscriptionSpec spec = topic.subscription("orders");
  spec.sink_settings["brokers"] = "127.0.0.1:" + std::to_string(port);
  options.subscriptions = {spec};
  const auto relay = make_relay(options);
  ASSERT_TRUE(relay->start());
  shop_->start();
  misbehave(gate, [&] { return topic.count(); });
  // Nobody resets these connections, so that the relay must give up on them by itself. BadNetwork
  // tests the same before the database.
  const int connections = gate.connections();
  gate.set(Mode::blackhole);
  ASSERT_TRUE(eventually([&] { return gate.connections() > connections; }));
  gate.set(Mode::open);
  gate.cut();
  shop_->stop();
  ASSERT_EQ(shop_->trouble(), "");
  const auto attempts = shop_->attempts();
  EXPECT_TRUE(eventually([&] { return judge(attempts, deliveries_on(topic)).lost == 0; }))
      << read_report(*relay, "orders").reason;
  EXPECT_TRUE(eventually_settled(database_->url(), "orders"));
  EXPECT_TRUE(relay->stop(std::chrono::seconds(60)).drained);
  const Verdict verdict = judge(attempts, deliveries_on(topic));
  EXPECT_TRUE(verdict.kept()) << verdict;
  RecordProperty("duplicates", std::to_string(verdict.duplicates));
}
#endif

}  // namespace
}  // namespace outbox::test
