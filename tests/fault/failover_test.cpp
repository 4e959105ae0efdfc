// Tests that the primary may be killed under load and its standby be promoted. Writers and relays
// know both addresses.
#include <map>
#include <set>

#include "integration/relay/harness.hpp"
#include "store/store.hpp"
#include "support/child_process.hpp"
#include "support/eventually.hpp"
#include "support/failure.hpp"
#include "support/own_postgres.hpp"
#include "support/postgres_database.hpp"
#include "support/relay_process.hpp"
#include "support/shop.hpp"
#include "support/tcp_gate.hpp"
#include "support/temp_dir.hpp"
#include "support/verifier.hpp"

namespace outbox::test {
namespace {

class Failover : public ::testing::Test {
 protected:
  void SetUp() override {
    OUTBOX_NEEDS_PGBIN();
    primary_ = std::make_unique<OwnPostgres>();
    database_ =
        std::make_unique<PostgresDatabase>(primary_->url(), PostgresDatabase::Schema::migrated);
    gate_ = std::make_unique<TcpGate>(primary_->port());
    standby_ = OwnPostgres::start_standby(gate_->port());
    url_ = "postgresql://postgres@127.0.0.1:" + std::to_string(primary_->port()) +
           ",127.0.0.1:" + std::to_string(standby_->port()) + "/" + database_->name() +
           "?target_session_attrs=read-write&connect_timeout=60";
  }
  void replicate_synchronously() const {
    Pg admin(primary_->url());
    admin.exec("ALTER SYSTEM SET synchronous_standby_names = '*'");
    admin.exec("SELECT pg_reload_conf()");
    ASSERT_TRUE(eventually([&] {
      return admin.value("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") ==
             "1";
    }));
  }
  void start_relays() {
    for (auto& relay : relays_) {
      relay = start_relay({.store_url = url_,
                           .file = file_,
                           .lease = std::chrono::seconds(2),
                           .page_rows = 50,
                           .log = folder_.file("log"),
                           .environment = environment_});
    }
  }
  [[nodiscard]] bool delivers(std::size_t more) const {
    const std::size_t seen = lines_in(file_);
    return eventually([&] { return lines_in(file_) > seen + more; });
  }
  void fail_over() {
    primary_->stop_immediate();
    gate_->cut();
    generation_ = lanes("max(generation)");
    EXPECT_EQ(Pg(standby_->url()).value("SELECT pg_promote(true, 60)"), "t");
  }
  [[nodiscard]] std::string lanes(const std::string& value) const {
    const std::string standby =
        "postgresql://postgres@127.0.0.1:" + std::to_string(standby_->port()) + "/";
    return Pg(standby + database_->name())
        .value("SELECT " + value + " FROM outbox.lane WHERE lane_group = 'custom:lines'");
  }
  /// Waits until both relays own lanes again. A relay that does not cannot know that the other one
  /// delivered what it left in flight, and would end with status 4.
  [[nodiscard]] bool both_relays_come_back() const {
    return eventually([&] {
      return lanes("count(DISTINCT owner) = 2 AND min(generation) > " + generation_) == "t";
    });
  }
  /// Stops everything once all that the new primary has is delivered and settled.
  Verdict finish(Shop& shop) {
    EXPECT_TRUE(delivers(200)) << "nobody goes on";
    shop.stop();
    EXPECT_EQ(shop.trouble(), "");
    attempts_ = shop.attempts();
    EXPECT_TRUE(eventually([&] { return judge(attempts_, deliveries_in(file_)).lost == 0; }));
    EXPECT_TRUE(eventually_settled(url_, "lines"));
    EXPECT_TRUE(both_relays_come_back());
    for (auto& relay : relays_) relay->signal(SIGTERM);
    for (auto& relay : relays_) EXPECT_EQ(relay->wait(), 0);
    EXPECT_EQ(Verifier::verify(url_, "lines"), "");
    return judge(attempts_, deliveries_in(file_));
  }
  [[nodiscard]] static ShopOptions load() {
    return {.writers = 6,
            .transactions = 0,
            .longest_pause = std::chrono::milliseconds(3),
            .reconnect = true};
  }

  /// What had been committed on the old primary, and is not on the new one.
  [[nodiscard]] std::set<std::string> taken_back() const {
    std::set<std::string> ids;
    for (const Attempt& attempt : attempts_) {
      if (attempt.acknowledged && attempt.end == Attempt::End::rolled_back) ids.insert(attempt.id);
    }
    return ids;
  }

  const TempDir folder_;
  const std::string file_{folder_.file("lines")};
  std::unique_ptr<OwnPostgres> primary_;
  std::unique_ptr<PostgresDatabase> database_;
  std::unique_ptr<TcpGate> gate_;
  std::unique_ptr<OwnPostgres> standby_;
  std::string url_;
  std::map<std::string, std::string> environment_;  ///< Of the relays.
  std::array<std::unique_ptr<ChildProcess>, 2> relays_;
  std::vector<Attempt> attempts_;
  std::string generation_;  ///< The newest generation before the failover.
};

TEST_F(Failover,
       with_synchronous_replication_nothing_is_lost_and_nothing_that_vanished_was_delivered) {
  replicate_synchronously();
  Shop shop(url_, load());
  shop.start();
  start_relays();
  ASSERT_TRUE(delivers(300));
  // The commits wait for the standby, and must not be delivered meanwhile.
  gate_->set(TcpGate::Mode::stalled);
  ASSERT_TRUE(eventually([&] {
    return std::stoi(
               Pg(primary_->url())
                   .value("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")) >=
           3;
  }));
  fail_over();
  const Verdict verdict = finish(shop);  // attempts() throws if an acknowledged commit is gone
  EXPECT_TRUE(verdict.kept()) << verdict;
  RecordProperty("duplicates", std::to_string(verdict.duplicates));
}

TEST_F(Failover, without_it_what_the_standby_never_got_is_gone_and_nothing_else) {
  ShopOptions options = load();
  options.asynchronous_percent = 100;  // an acknowledged commit is no promise here
  Shop shop(url_, options);
  shop.start();
  start_relays();
  ASSERT_TRUE(delivers(300));
  gate_->set(TcpGate::Mode::stalled);
  ASSERT_TRUE(delivers(300));
  fail_over();
  const Verdict verdict = finish(shop);
  EXPECT_EQ(verdict.lost, 0U) << verdict;
  EXPECT_EQ(verdict.out_of_order, 0U) << verdict;
  EXPECT_EQ(verdict.altered, 0U) << verdict;
  // Each event that was delivered and is not in the database had been committed on the primary.
  const std::set<std::string> taken_back = this->taken_back();
  std::set<std::string> ghosts;
  for (const Delivery& delivery : deliveries_in(file_)) {
    if (taken_back.contains(delivery.id)) ghosts.insert(delivery.id);
  }
  EXPECT_GT(ghosts.size(), 0U) << "the failover took nothing back: this proves nothing";
  EXPECT_EQ(verdict.ghosts, ghosts.size()) << verdict;
  RecordProperty("taken_back", std::to_string(taken_back.size()));
  RecordProperty("delivered_and_taken_back", std::to_string(ghosts.size()));
}

TEST_F(Failover, with_publish_after_replicated_nothing_that_was_taken_back_was_delivered) {
  environment_["OUTBOX_TEST_REPLICATED"] = "1";
  ShopOptions options = load();
  options.asynchronous_percent = 100;
  Shop shop(url_, options);
  shop.start();
  start_relays();
  ASSERT_TRUE(delivers(300));
  gate_->set(TcpGate::Mode::stalled);
  const auto committed = [this] {
    return std::stoll(Pg(database_->url()).value("SELECT count(*) FROM outbox.event"));
  };
  const auto before = committed();
  ASSERT_TRUE(eventually([&] { return committed() > before + 300; }));
  fail_over();
  // On the new primary events wait for a standby, too.
  const auto next = OwnPostgres::start_standby(standby_->port());
  const Verdict verdict = finish(shop);
  EXPECT_TRUE(verdict.kept()) << verdict;
  EXPECT_GT(taken_back().size(), 0U) << "the failover took nothing back: this proves nothing";
}

TEST_F(Failover, a_login_that_may_not_see_standbys_learns_so) {
  Pg admin(database_->url());
  admin.exec("CREATE ROLE careful LOGIN");
  admin.exec("GRANT USAGE ON SCHEMA outbox TO careful");
  admin.exec("GRANT ALL ON ALL TABLES IN SCHEMA outbox TO careful");
  admin.exec("GRANT ALL ON ALL SEQUENCES IN SCHEMA outbox TO careful");
  const auto store =
      must(store::open_store({.url = "postgresql://careful@127.0.0.1:" +
                                     std::to_string(primary_->port()) + "/" + database_->name()}));
  const auto reader = must(store->reader());
  must(reader->begin({}));
  EXPECT_TRUE(must(reader->replication({})).hidden);
  admin.exec("GRANT pg_monitor TO careful");
  EXPECT_TRUE(eventually([&] {
    const auto found = must(reader->replication({}));
    return !found.hidden && found.flushed == 1 && found.connected == 1;
  }));
  EXPECT_EQ(must(reader->replication({.count = 1, .names = {"nobody"}})).flushed, 0U);
}

}  // namespace
}  // namespace outbox::test
