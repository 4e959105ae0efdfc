// Tests the program `outbox relay`, which is killed repeatedly under load, with a file and, if
// there is a broker, with Kafka.
#include <fstream>

#include "integration/relay/harness.hpp"
#include "support/eventually.hpp"
#include "support/kafka_deliveries.hpp"
#include "support/ledger_check.hpp"
#include "support/postgres_database.hpp"
#include "support/relay_process.hpp"
#include "support/shop.hpp"
#include "support/temp_dir.hpp"
#ifdef OUTBOX_WITH_KAFKA
#endif

namespace outbox::test {
namespace {

class RelayKilled : public ::testing::Test {
 protected:
  void SetUp() override { OUTBOX_NEEDS_POSTGRES(); }

  /// Kills the relay `times` times, each time in the middle of work, while a shop writes; then lets
  /// it finish.
  void kill_and_finish(const std::string& config, const std::function<std::size_t()>& arrived,
                       Shop& shop, int kills) {
    shop.start();
    for (int round = 0; round < kills; ++round) {
      const std::size_t seen = arrived();
      const auto relay = start_outbox_relay(config, folder_.file("log"));
      ASSERT_TRUE(eventually([&] { return arrived() > seen + 50 || !relay->running(); }))
          << "round " << round;
      ASSERT_TRUE(relay->running()) << log();
      relay->kill();
    }
    shop.stop();
    ASSERT_EQ(shop.trouble(), "");
  }

  [[nodiscard]] std::string log() const {
    std::ifstream in(folder_.file("log"));
    return {std::istreambuf_iterator<char>(in), {}};
  }

  const TempDir folder_;
};

TEST_F(RelayKilled, a_file_holds_everything_in_order) {
  const PostgresDatabase database;
  const std::string config = folder_.file("outbox.toml");
  const std::string file = folder_.file("orders.jsonl");
  std::ofstream(config)
      << "[store]\nurl = \"" << database.url() << "\"\n[relay]\npage = 200\n"
      << "[subscription.orders]\nsink = \"file\"\n[subscription.orders.file]\npath = \"" << file
      << "\"\n";
  Shop shop(database.url(),
            {.writers = 6, .transactions = 0, .longest_pause = std::chrono::milliseconds(4)});
  kill_and_finish(
      config, [&] { return lines_in(file); }, shop, 30 * soak_factor());
  if (HasFatalFailure()) return;
  const auto attempts = shop.attempts();
  const auto relay = start_outbox_relay(config, folder_.file("log"));
  EXPECT_TRUE(eventually([&] { return judge(attempts, deliveries_in(file)).lost == 0; })) << log();
  relay->signal(SIGTERM);
  EXPECT_EQ(relay->wait(), 0) << log();
  const Verdict verdict = judge(attempts, deliveries_in(file));
  EXPECT_TRUE(verdict.kept()) << verdict;
  RecordProperty("duplicates", std::to_string(verdict.duplicates));
  Pg connection(database.url());
  EXPECT_EQ(ledger_fault(connection, "orders"), "");
}

#ifdef OUTBOX_WITH_KAFKA
TEST_F(RelayKilled, a_topic_holds_everything_in_order) {
  OUTBOX_NEEDS_KAFKA();
  const PostgresDatabase database;
  const std::string brokers = *environment("OUTBOX_TEST_KAFKA");
  const KafkaTopic topic(brokers, 4);
  const std::string config = folder_.file("outbox.toml");
  std::ofstream(config)
      << "[store]\nurl = \"" << database.url()
      << "\"\n[relay]\npage = 200\n[subscription.orders]\nsink = \"kafka\"\ntopic = \""
      << topic.name() << "\"\n[subscription.orders.kafka]\nbrokers = \"" << brokers << "\"\n";
  Shop shop(database.url(),
            {.writers = 6, .transactions = 0, .longest_pause = std::chrono::milliseconds(4)});
  kill_and_finish(
      config, [&] { return topic.count(); }, shop, 10 * soak_factor());
  if (HasFatalFailure()) return;
  const auto attempts = shop.attempts();
  const auto relay = start_outbox_relay(config, folder_.file("log"));
  EXPECT_TRUE(eventually([&] { return judge(attempts, deliveries_on(topic)).lost == 0; })) << log();
  relay->signal(SIGTERM);
  EXPECT_EQ(relay->wait(), 0) << log();
  const Verdict verdict = judge(attempts, deliveries_on(topic));
  EXPECT_TRUE(verdict.kept()) << verdict;
  RecordProperty("duplicates", std::to_string(verdict.duplicates));
}
#endif

TEST_F(RelayKilled, asked_to_stop_under_load_it_leaves_nothing_to_repeat) {
  const PostgresDatabase database;
  const std::string config = folder_.file("outbox.toml");
  const std::string file = folder_.file("orders.jsonl");
  std::ofstream(config) << "[store]\nurl = \"" << database.url()
                        << "\"\n[subscription.orders]\nsink = \"file\"\n"
                        << "[subscription.orders.file]\npath = \"" << file << "\"\n";
  Shop shop(database.url(),
            {.writers = 6, .transactions = 0, .longest_pause = std::chrono::milliseconds(4)});
  shop.start();
  for (int round = 0; round < 8; ++round) {
    const std::size_t seen = lines_in(file);
    const auto relay = start_outbox_relay(config, folder_.file("log"));
    ASSERT_TRUE(eventually([&] { return lines_in(file) > seen + 50; })) << log();
    relay->signal(round % 2 == 0 ? SIGTERM : SIGINT);
    EXPECT_EQ(relay->wait(), 0) << log();
  }
  shop.stop();
  const auto attempts = shop.attempts();
  const auto relay = start_outbox_relay(config, folder_.file("log"));
  EXPECT_TRUE(eventually([&] { return judge(attempts, deliveries_in(file)).lost == 0; }));
  relay->signal(SIGTERM);
  EXPECT_EQ(relay->wait(), 0);
  expect_exactly_once(attempts, deliveries_in(file), "file");
}

}  // namespace
}  // namespace outbox::test
