// Tests relays that share the lanes and are killed, frozen and stopped. The others take over, and
// nothing is lost or reordered.
#include <array>

#include "integration/relay/harness.hpp"
#include "support/child_process.hpp"
#include "support/eventually.hpp"
#include "support/ledger_check.hpp"
#include "support/postgres_database.hpp"
#include "support/relay_process.hpp"
#include "support/shop.hpp"
#include "support/temp_dir.hpp"

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
  /// Waits until more than `more` further lines have arrived.
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
  [[nodiscard]] std::string query(const std::string& sql) const {
    return database_->connect().value(sql);
  }
  /// Waits until so many relays share all lanes.
  [[nodiscard]] bool shared_by(int relays) const {
    return eventually([&] {
      return query(
                 "SELECT count(DISTINCT owner) || ' ' || count(owner) FROM outbox.lane WHERE lane_group = 'custom:lines'") ==
             std::to_string(relays) + " 64";
    });
  }
  /// Waits until the process has none of the lanes.
  [[nodiscard]] bool lost_its_lanes(const ChildProcess& relay) const {
    return eventually([&] {
      return query(
                 "SELECT count(*) FROM outbox.lane l JOIN outbox.relay r ON r.id = l.owner WHERE r.pid = " +
                 std::to_string(relay.pid())) == "0";
    });
  }
  void expect_ledger() const {
    EXPECT_TRUE(eventually_settled(database_->url(), "lines"));
    Pg connection(database_->url());
    EXPECT_EQ(ledger_fault(connection, "lines"), "");
  }

  const TempDir folder_;
  const std::string file_{folder_.file("lines")};
  const std::string log_{folder_.file("log")};
  std::unique_ptr<PostgresDatabase> database_;
  std::unique_ptr<Shop> shop_;
};

TEST_F(Takeover, the_others_take_over_at_once_from_a_process_that_was_killed) {
  // The lease is too long to wait for, so that the relays must see that the process is gone.
  const auto options = relay_options(std::chrono::minutes(10));
  shop_->start();
  const auto first = start_relay(options);
  const auto second = start_relay(options);
  ASSERT_TRUE(shared_by(2));
  ASSERT_TRUE(delivers(200));
  first->kill();
  ASSERT_TRUE(shared_by(1));
  EXPECT_TRUE(delivers(200));
  const Verdict verdict = finish();
  EXPECT_TRUE(verdict.kept()) << verdict;
  expect_ledger();
  second->signal(SIGTERM);
  EXPECT_EQ(second->wait(), 0);
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

TEST_F(Takeover, three_relays_are_killed_and_frozen_past_their_lease_in_turn) {
  const auto options = relay_options(std::chrono::seconds(5));
  shop_->start();
  std::array<std::unique_ptr<ChildProcess>, 3> relays;
  for (auto& relay : relays) relay = start_relay(options);
  ASSERT_TRUE(shared_by(3));
  for (std::size_t round = 0; round < 6; ++round) {
    auto& victim = relays.at(round % relays.size());
    ASSERT_TRUE(delivers());
    if (round % 2 == 0) {
      victim->kill();
      ASSERT_TRUE(shared_by(2));
      victim = start_relay(options);
    } else {
      victim->signal(SIGSTOP);
      ASSERT_TRUE(lost_its_lanes(*victim));
      ASSERT_TRUE(delivers());
      victim->signal(SIGCONT);
    }
    ASSERT_TRUE(shared_by(3)) << "round " << round;
  }
  const Verdict verdict = finish();
  EXPECT_TRUE(verdict.kept()) << verdict;
  expect_ledger();
  for (const auto& relay : relays) {
    relay->signal(SIGTERM);
    EXPECT_EQ(relay->wait(), 0);
  }
}

TEST_F(Takeover, after_twenty_freezes_and_kills_in_a_row_nothing_is_on_trial_for_long) {
  const auto options = relay_options(std::chrono::seconds(1));
  shop_->start();
  std::array<std::unique_ptr<ChildProcess>, 3> relays;
  for (auto& relay : relays) relay = start_relay(options);
  ASSERT_TRUE(shared_by(3));
  // The test has no limit on the time. How long the burst takes is only recorded.
  const auto burst = [&](const std::string& name) {
    const std::size_t seen = lines_in(file_);
    const auto begun = std::chrono::steady_clock::now();
    (void)query(
        "WITH many AS (INSERT INTO outbox.new_event (aggregate_type, aggregate_id, event_type, payload) "
        "SELECT 'burst', 'b' || i % 100, 'Made', '{}' FROM generate_series(1, 20000) i RETURNING 1) SELECT count(*) FROM many");
    ASSERT_TRUE(eventually([&] { return lines_in(file_) > seen + 20000; }));
    const auto took = std::chrono::steady_clock::now() - begun;
    RecordProperty(
        name, std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(took).count()));
  };
  burst("milliseconds_before");
  for (std::size_t round = 0; round < 20; ++round) {
    auto& victim = relays.at(round % relays.size());
    if (round % 2 == 0) {
      victim->signal(SIGSTOP);
      ASSERT_TRUE(lost_its_lanes(*victim));
      victim->signal(SIGCONT);
    } else {
      victim->kill();
      victim = start_relay(options);
    }
  }
  burst("milliseconds_after");
  EXPECT_TRUE(eventually([&] {
    return query("SELECT count(*) FROM outbox.run WHERE tried > 0") == "0" &&
           query("SELECT trouble FROM outbox.subscription") == "";
  }));
  EXPECT_EQ(query("SELECT count(*) FROM outbox.parked"), "0");
  const Verdict verdict = finish();
  EXPECT_TRUE(verdict.kept()) << verdict;
  expect_ledger();
}

}  // namespace
}  // namespace outbox::test
