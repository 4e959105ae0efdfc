// Tests that nothing is lost when history is removed as fast as it can be, in small partitions,
// while writers keep long transactions open and relays are killed and replaced. The test compares
// with what the destination holds.
#include <filesystem>
#include <fstream>
#include <sstream>

#include "integration/relay/harness.hpp"
#include "integration/retention/fixture.hpp"
#include "support/relay_process.hpp"
#include "support/shop.hpp"
#include "support/temp_dir.hpp"
#include "support/verifier.hpp"

namespace outbox::test {
namespace {

class PostgresRetentionStorm : public RetentionTest {
 protected:
  std::string write_config(const std::string& file) const {
    std::string path = folder_.file("outbox.toml");
    std::ofstream(path)
        << "[store]\nurl = \"" << database_->url() << "\"\n[relay]\npage = 50\nretention = \"0s\"\n"
        << "[subscription.orders]\nsink = \"file\"\n[subscription.orders.file]\npath = \"" << file
        << "\"\n[subscription.paid]\nsink = \"null\"\nevent_types = [\"OrderPaid\"]\n";
    return path;
  }
  [[nodiscard]] std::string log() const {
    std::ifstream in(folder_.file("log"));
    return {std::istreambuf_iterator<char>(in), {}};
  }
  /// Expects that what was removed and what remains is what was delivered, and that the totals say
  /// the same.
  void expect_ledger(const std::string& name, const std::vector<std::string>& ids) const {
    const auto catalog = store_->catalog().value();
    const auto rows = catalog->subscriptions().value();
    for (const auto& row : rows) {
      if (row.spec.name != name) continue;
      std::uint64_t hash = 0;
      std::uint64_t count = 0;
      std::istringstream(pruned(row.id)) >> count >> hash;
      for (const std::string& id : events()) {
        ++count;
        hash += event::id_hash(EventId::parse(id).value());
      }
      EXPECT_EQ(std::to_string(count) + " " + std::to_string(hash), read_sum(ids)) << name;
      store::SubscriptionProgress totals;
      totals.id = row.id;
      EXPECT_TRUE(ok(catalog->add_totals(totals)));
      EXPECT_EQ(totals.acked + totals.filtered, static_cast<std::int64_t>(ids.size())) << name;
    }
  }

  const TempDir folder_;
};

TEST_F(PostgresRetentionStorm, nothing_is_lost_while_history_goes_and_relays_are_killed) {
  make_small_partitions(*admin_, 100, 200);
  const std::string file = folder_.file("orders.jsonl");
  const std::string config = write_config(file);
  auto relay = start_outbox_relay(config, folder_.file("log"));
  ASSERT_TRUE(eventually([&] {
    return value("SELECT count(*) FROM outbox.subscription") == "2" || !relay->running();
  }));
  ASSERT_TRUE(relay->running()) << log();
  OpenSale late(database_->url(), "late");
  OpenSale never(database_->url(), "never");
  Shop shop(database_->url(),
            {.writers = 6, .transactions = 0, .longest_pause = std::chrono::milliseconds(4)});
  Remover remover(database_->url());
  shop.start();
  const int kills = 8 * soak_factor();
  for (int round = 0; round < kills; ++round) {
    const std::size_t seen = lines_in(file);
    ASSERT_TRUE(eventually([&] { return lines_in(file) > seen + 100 || !relay->running(); }))
        << "round " << round;
    ASSERT_TRUE(relay->running()) << log();
    relay->kill();
    relay = start_outbox_relay(config, folder_.file("log"));
    if (round == kills / 4) late.add();
    // Only from now on may the partition be removed in which the long transaction has written.
    if (round == kills / 2) {
      late.commit();
      never.rollback();
    }
  }
  EXPECT_TRUE(eventually([&] { return remover.removed() > 100 || !relay->running(); }));
  shop.stop();
  ASSERT_EQ(shop.trouble(), "");
  auto attempts = shop.attempts();
  append(attempts, late.attempts());
  append(attempts, never.attempts());
  EXPECT_TRUE(eventually([&] { return judge(attempts, deliveries_in(file)).lost == 0; })) << log();
  EXPECT_TRUE(eventually_settled(database_->url(), "orders"));
  EXPECT_TRUE(eventually_settled(database_->url(), "paid"));
  relay->signal(SIGTERM);
  EXPECT_EQ(relay->wait(), 0) << log();
  remover.stop();
  for (const char* const subscription : {"orders", "paid"})
    EXPECT_EQ(Verifier::verify(database_->url(), subscription), "");
  (void)prune();
  const Verdict verdict = judge(attempts, deliveries_in(file));
  EXPECT_TRUE(verdict.kept()) << verdict;

  const std::set<std::string> delivered = event_ids_in(file);
  const std::vector<std::string> ids(delivered.begin(), delivered.end());
  EXPECT_EQ(ids.size(), committed(attempts));
  expect_ledger("orders", ids);
  expect_ledger("paid", ids);
}

TEST_F(PostgresRetentionStorm, a_relay_removes_history_by_itself_and_stops_at_once) {
  RelayOptions options;
  options.store_url = database_->url();
  options.subscriptions = {custom("orders")};
  options.retention = std::chrono::milliseconds(0);
  options.archive = folder_.path();
  const auto relay = make_relay(options);
  const auto recording = record(*relay, "orders");
  ASSERT_TRUE(relay->start());
  (void)enqueue();
  close_partition();
  (void)enqueue();
  EXPECT_TRUE(eventually([&] { return value("SELECT count(*) FROM outbox.pruned") != "0"; }));
  EXPECT_TRUE(eventually([&] { return recording->events().size() == 2; }));
  EXPECT_TRUE(relay->stop(std::chrono::seconds(60)).drained);
  EXPECT_FALSE(std::filesystem::is_empty(folder_.path()));
}

}  // namespace
}  // namespace outbox::test
