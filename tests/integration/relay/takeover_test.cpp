// Two relays on one outbox: one delivers, the other waits and takes over; nothing is lost or reordered.
#include <fstream>

#include "integration/relay/harness.hpp"
#include "support/ledger_check.hpp"
#include "support/postgres_database.hpp"
#include "support/relay_process.hpp"
#include "support/shop.hpp"
#include "support/testkit.hpp"

namespace outbox::test {
namespace {

class Takeover : public ::testing::Test {
 protected:
  void SetUp() override {
    OUTBOX_NEEDS_POSTGRES();
    database_ = std::make_unique<PostgresDatabase>();
    shop_ = std::make_unique<Shop>(database_->url(), ShopOptions{.writers = 4, .transactions = 0});
  }

  [[nodiscard]] RelayProcessOptions relay_options(std::chrono::milliseconds lease) const {
    return {
        .store_url = database_->url(), .file = file_, .lease = lease, .page_rows = 50, .log = log_};
  }
  /// Waits until `count` more lines have arrived.
  [[nodiscard]] bool delivers(std::size_t more = 40) const {
    const std::size_t seen = lines_in(file_);
    return eventually([&] { return lines_in(file_) > seen + more; });
  }
  /// Stops the shop and waits until everything is there.
  Verdict finish() {
    shop_->stop();
    EXPECT_EQ(shop_->trouble(), "");
    const auto attempts = shop_->attempts();
    EXPECT_TRUE(eventually([&] { return judge(attempts, deliveries_in(file_)).lost == 0; }));
    return judge(attempts, deliveries_in(file_));
  }
  /// How often a relay has found the lanes taken and begun to wait for them.
  [[nodiscard]] std::size_t waits() const {
    std::size_t count = 0;
    std::ifstream in(log_);
    for (std::string line; std::getline(in, line);)
      count += line.find("waiting for the lanes") == std::string::npos ? 0 : 1;
    return count;
  }
  [[nodiscard]] std::string generation() const {
    return database_->connect().value("SELECT coalesce(max(generation), 0) FROM outbox.lane");
  }

  const TempDir folder_;
  const std::string file_{folder_.file("lines")};
  const std::string log_{folder_.file("log")};
  std::unique_ptr<PostgresDatabase> database_;
  std::unique_ptr<Shop> shop_;
};

TEST_F(Takeover, the_second_waits_and_takes_over_at_once_when_the_first_is_killed) {
  // A lease too long to wait for: it must see that the process is gone.
  const auto options = relay_options(std::chrono::minutes(10));
  shop_->start();
  const auto first = start_relay(options);
  ASSERT_TRUE(delivers());
  const std::string before = generation();
  const auto second = start_relay(options);
  ASSERT_TRUE(eventually(
      [&] { return database_->connect().value("SELECT count(*) FROM outbox.relay") == "2"; }));
  ASSERT_TRUE(delivers(200));
  EXPECT_EQ(generation(), before) << "the second must wait";
  first->kill();
  EXPECT_TRUE(delivers(200));
  EXPECT_NE(generation(), before);
  const Verdict verdict = finish();
  EXPECT_TRUE(verdict.kept()) << verdict;
  second->signal(SIGTERM);
  EXPECT_EQ(second->wait(), 0);
  Pg connection(database_->url());
  EXPECT_EQ(ledger_fault(connection, "lines"), "");
}

TEST_F(Takeover, a_relay_that_stops_in_order_hands_over_without_a_duplicate) {
  const auto options = relay_options(std::chrono::minutes(10));
  shop_->start();
  auto running = start_relay(options);
  for (int round = 0; round < 4; ++round) {
    ASSERT_TRUE(delivers());
    auto next = start_relay(options);
    running->signal(SIGTERM);
    EXPECT_EQ(running->wait(), 0);
    running = std::move(next);
  }
  ASSERT_TRUE(delivers());
  const Verdict verdict = finish();
  EXPECT_TRUE(verdict.kept()) << verdict;
  EXPECT_EQ(verdict.duplicates, 0U) << verdict;
}

TEST_F(Takeover, a_relay_that_was_stopped_past_its_lease_finds_its_lanes_taken) {
  const auto options = relay_options(std::chrono::seconds(10));  // no slow heartbeat loses it
  shop_->start();
  const auto first = start_relay(options);
  ASSERT_TRUE(delivers());
  const auto second = start_relay(options);
  ASSERT_TRUE(eventually([&] { return waits() > 0; })) << "the second must wait";
  std::string owner = generation();
  for (int round = 0; round < 2; ++round) {
    // The owner is suspended, and the other takes over.
    ChildProcess& sleeper = round % 2 == 0 ? *first : *second;
    sleeper.signal(SIGSTOP);
    ASSERT_TRUE(eventually([&] { return generation() != owner; })) << "no takeover";
    ASSERT_TRUE(delivers(100));
    owner = generation();
    const std::size_t waited = waits();
    sleeper.signal(SIGCONT);
    ASSERT_TRUE(eventually([&] { return waits() > waited; })) << "the awakened one must notice";
    ASSERT_TRUE(delivers(300));
    EXPECT_EQ(generation(), owner);
  }
  const Verdict verdict = finish();
  EXPECT_TRUE(verdict.kept()) << verdict;
  first->signal(SIGTERM);
  second->signal(SIGTERM);
  EXPECT_EQ(first->wait(), 0);
  EXPECT_EQ(second->wait(), 0);
}

}  // namespace
}  // namespace outbox::test
