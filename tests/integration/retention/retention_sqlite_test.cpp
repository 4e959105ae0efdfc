// Tests retention on a SQLite file (docs/design/retention.md).
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "event/key.hpp"
#include "integration/relay/harness.hpp"
#include "support/relay_process.hpp"
#include "support/remover.hpp"
#include "support/sqlite_shop.hpp"
#include "support/temp_dir.hpp"
#include "support/verifier.hpp"

namespace outbox::test {
namespace {

using ::testing::HasSubstr;

/// The base of tests with subscriptions whose settlements the test writes.
class SqliteRetention : public ::testing::Test {
 protected:
  SqliteRetention() : path_(folder_.file("shop.db")) {
    migrate_sqlite(path_);
    store_ = store::open_store({.url = "sqlite:" + path_}).value();
    file_ = std::make_unique<SqliteFile>(path_);
  }

  std::string subscribe(const std::string& name, Start start = Start::beginning) {
    SubscriptionSpec spec;
    spec.name = name;
    spec.sink = "null";
    spec.start = start;
    EXPECT_TRUE(store_->catalog().value()->apply(spec));
    return file_->value("SELECT id FROM outbox_subscription WHERE name = '" + name + "'");
  }
  void enqueue(int events) {
    for (int n = 0; n < events; ++n)
      file_->run(
          "INSERT INTO outbox_new_event (aggregate_type, aggregate_id, event_type, payload) VALUES ('a', 'b', 'c', '{}')");
  }
  /// Appends a settlement which says that everything up to this seq is done.
  void settle(const std::string& subscription, int position, int generation = 0) {
    file_->run(
        "INSERT INTO outbox_settlement (subscription, kind, generation, config_version, from_position, position, "
        "acked_total, at) VALUES (" +
        subscription + ", 'settle', " + std::to_string(generation) + ", 1, 0, " +
        std::to_string(position) + ", " + std::to_string(position) + ", 1)");
  }
  relay::RetentionPass prune(const relay::RetentionRules& rules = {}) {
    const auto pass = test::prune(*store_, rules);
    EXPECT_TRUE(pass) << pass.error().text();
    return pass ? *pass : relay::RetentionPass{};
  }
  [[nodiscard]] std::string count(const std::string& what) {
    return file_->value("SELECT count(*) FROM outbox_" + what);
  }
  [[nodiscard]] std::string pruned(const std::string& subscription) {
    return file_->value("SELECT events || ' ' || hash FROM outbox_pruned WHERE subscription = " +
                        subscription);
  }
  /// The count and hash of the events from one seq to another, as the ledger has them.
  [[nodiscard]] std::string sum(int from, int to) {
    std::uint64_t hash = 0;
    const auto rows = file_->exec(
        "SELECT substr(h,1,8)||'-'||substr(h,9,4)||'-'||substr(h,13,4)||'-'||substr(h,17,4)||'-'||"
        "substr(h,21) FROM (SELECT lower(hex(id)) AS h FROM outbox_event WHERE seq BETWEEN ? AND ?)",
        {std::to_string(from), std::to_string(to)});
    for (const auto& row : rows) hash += event::id_hash(EventId::parse(row[0].value()).value());
    return std::to_string(rows.size()) + " " + std::to_string(static_cast<std::int64_t>(hash));
  }

  const TempDir folder_;
  const std::string path_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<SqliteFile> file_;
};

TEST_F(SqliteRetention, what_all_have_passed_goes_and_is_in_the_ledger) {
  const std::string first = subscribe("first");
  enqueue(10);
  const std::string later = subscribe("later", Start::now);
  enqueue(1200);
  const std::string of_first = sum(1, 600);
  const std::string of_later = sum(11, 600);
  settle(first, 1210);
  EXPECT_EQ(prune().events, 10);  // `later` began behind these
  settle(later, 600);
  EXPECT_EQ(prune().events, 590);
  EXPECT_EQ(count("event"), "610");
  EXPECT_EQ(pruned(first), of_first);
  EXPECT_EQ(pruned(later), of_later);
  const auto holds = store::find_holds(store_->retention().value()->survey({}).value());
  ASSERT_EQ(holds.size(), 1U);
  EXPECT_EQ(std::to_string(holds[0].subscription), later);
  EXPECT_EQ(prune().events, 0);
}

TEST_F(SqliteRetention, a_subscription_that_rests_holds_and_late_rows_do_not_count) {
  const std::string subscription = subscribe("orders");
  enqueue(5);
  file_->run("UPDATE outbox_subscription SET state = 'paused'");
  EXPECT_EQ(prune().events, 0);
  settle(subscription, 2, 3);
  settle(subscription, 5, 2);  // by a former owner
  EXPECT_EQ(prune().events, 2);
}

TEST_F(SqliteRetention, without_a_subscription_nothing_goes) {
  enqueue(5);
  EXPECT_EQ(prune().events, 0);
}

TEST_F(SqliteRetention, what_is_young_stays) {
  const std::string subscription = subscribe("orders");
  enqueue(100);
  file_->run("CREATE TABLE old AS SELECT * FROM outbox_event WHERE seq <= 40");
  file_->run("DELETE FROM outbox_event WHERE seq <= 40");
  file_->run("UPDATE old SET created_at = created_at - 7200000000");
  file_->run("INSERT INTO outbox_event SELECT * FROM old");
  settle(subscription, 100);
  EXPECT_EQ(prune({.keep = std::chrono::hours(1)}).events, 40);
  EXPECT_EQ(prune({.keep = std::chrono::hours(3)}).events, 0);
  EXPECT_EQ(prune().events, 60);
}

TEST_F(SqliteRetention, events_are_archived_before_they_go) {
  const std::string subscription = subscribe("orders");
  enqueue(700);
  settle(subscription, 650);
  const auto refused = test::prune(*store_, {.archive = folder_.file("missing")});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text(), HasSubstr("its events stay in the log"));
  EXPECT_EQ(count("event"), "700");
  std::filesystem::create_directory(folder_.file("archive"));
  EXPECT_EQ(prune({.archive = folder_.file("archive")}).events, 650);
  std::size_t lines = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.file("archive")))
    lines += lines_in(entry.path());
  EXPECT_EQ(lines, 650U);
}

TEST_F(SqliteRetention, old_settlements_go_but_the_first_and_the_newest) {
  const std::string subscription = subscribe("orders");
  enqueue(3000);
  for (int position = 1; position <= 2000; ++position) settle(subscription, position);
  file_->run(
      "INSERT INTO outbox_parked_end (subscription, seq, id, outcome, attempts, at) SELECT 1, seq, id, 'discarded', 1, 1 "
      "FROM outbox_event WHERE seq > 1995 AND seq <= 2005");
  EXPECT_EQ(prune().events, 2000);
  EXPECT_EQ(count("settlement"), "2");
  EXPECT_EQ(count("parked_end"), "5");
  EXPECT_EQ(file_->value("SELECT discarded FROM outbox_pruned"), "5");
  EXPECT_EQ(store_->progress().value()->load(1, store::kAllLanes).value().front().cursor.position,
            2000);
}

TEST_F(SqliteRetention, nothing_is_lost_while_history_goes_and_relays_are_killed) {
  const std::string lines = folder_.file("orders.jsonl");
  std::ofstream(folder_.file("outbox.toml"))
      << "[store]\nurl = \"sqlite:" << path_ << "\"\n[relay]\npage = 50\nretention = \"0s\"\n"
      << "[subscription.orders]\nsink = \"file\"\n[subscription.orders.file]\npath = \"" << lines
      << "\"\n";
  ShopOptions options;
  options.writers = 4;
  options.transactions = 0;
  // SQLite lets its writers wait in no order: beside some that never pause, others fail.
  options.longest_pause = std::chrono::milliseconds(20);
  SqliteShop shop(path_, options);
  Remover remover("sqlite:" + path_);
  shop.start();
  auto relay = start_outbox_relay(folder_.file("outbox.toml"), folder_.file("log"));
  for (int round = 0; round < 6 * soak_factor(); ++round) {
    const std::size_t seen = lines_in(lines);
    ASSERT_TRUE(eventually([&] { return lines_in(lines) > seen + 100 || !relay->running(); }));
    ASSERT_TRUE(relay->running()) << "round " << round;
    relay->kill();
    relay = start_outbox_relay(folder_.file("outbox.toml"), folder_.file("log"));
  }
  EXPECT_TRUE(eventually([&] { return remover.removed() > 100 || !relay->running(); }));
  shop.stop();
  ASSERT_EQ(shop.trouble(), "");
  const auto attempts = shop.attempts();
  EXPECT_TRUE(eventually([&] { return judge(attempts, deliveries_in(lines)).lost == 0; }));
  EXPECT_TRUE(eventually_settled("sqlite:" + path_, "orders"));
  relay->signal(SIGTERM);
  EXPECT_EQ(relay->wait(), 0);
  remover.stop();
  const Verdict verdict = judge(attempts, deliveries_in(lines));
  EXPECT_TRUE(verdict.kept()) << verdict;
  EXPECT_EQ(Verifier::verify("sqlite:" + path_, "orders"), "");
  (void)prune();
  EXPECT_EQ(file_->value("SELECT events + (SELECT count(*) FROM outbox_event) FROM outbox_pruned"),
            std::to_string(committed(attempts)));
  std::uint64_t hash = 0;
  for (const std::string& id : event_ids_in(lines))
    hash += event::id_hash(EventId::parse(id).value());
  EXPECT_EQ(count("event"), "0");
  EXPECT_EQ(file_->value("SELECT hash FROM outbox_pruned"),
            std::to_string(static_cast<std::int64_t>(hash)));
}

}  // namespace
}  // namespace outbox::test
