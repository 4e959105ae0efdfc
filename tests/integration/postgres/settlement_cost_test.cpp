// Tests that taking lanes over, adding up what was delivered and removing old settlements cost the
// same however many settlements there are, and whatever the planner knows of the table.
#include "integration/postgres/harness.hpp"
#include "store/postgres/queries.hpp"
#include "store/postgres/retention_queries.hpp"

namespace outbox::test {
namespace {

constexpr int kSettlements = 20'000;
constexpr int kSubscriptions = 300;
constexpr int kSettlementsOfEach = 60;

/// The parameter says whether the table was analysed.
class SettlementCost : public PostgresTest, public ::testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    PostgresTest::SetUp();
    if (IsSkipped()) return;
    connection_ = std::make_unique<Pg>(database_->url());
    connection_->exec(
        "INSERT INTO outbox.subscription (name, config, lane_group) VALUES ('s', '{}', 'default');"
        "INSERT INTO outbox.lane (lane_group, lane, generation) SELECT 'default', n, 1 FROM generate_series(0, 63) n "
        "ON CONFLICT (lane_group, lane) DO UPDATE SET generation = 1;"
        "INSERT INTO outbox.settlement (subscription, kind, lanes, generation, s1, s2, l, acked, acked_total, at) "
        "SELECT 1, CASE n WHEN 1 THEN 'reset' ELSE 'settle' END, -1, 1, now.s, now.s, 0, 1, n, clock_timestamp() - interval '1 day' "
        "FROM (SELECT pg_current_snapshot() AS s OFFSET 0) now CROSS JOIN generate_series(1, " +
        std::to_string(kSettlements) + ") n");
    if (GetParam()) connection_->exec("ANALYZE outbox.settlement");
    // A relay takes over, whose generation has no rows yet.
    connection_->exec("UPDATE outbox.lane SET generation = 2");
  }

  /// How many settlements the statement reads, under the settings that the program gives it.
  [[nodiscard]] std::int64_t rows_read_by(const store::postgres::Query& settings,
                                          const store::postgres::Query& query,
                                          const std::string& parameters) {
    connection_->exec("BEGIN");
    connection_->exec(settings.sql);
    connection_->exec("PREPARE measured AS " + query.sql);
    const std::int64_t before = rows_read();
    connection_->exec("EXECUTE measured" + (parameters.empty() ? "" : "(" + parameters + ")"));
    const std::int64_t read = rows_read() - before;
    connection_->exec("DEALLOCATE measured");
    connection_->exec("COMMIT");
    return read;
  }
  [[nodiscard]] std::int64_t rows_read(const std::string& table = "settlement") const {
    return std::stoll(connection_->value(
        "SELECT coalesce(idx_tup_fetch, 0) + seq_tup_read FROM pg_stat_xact_user_tables "
        "WHERE schemaname = 'outbox' AND relname = $1",
        table));
  }
  /// The rows of that table that a statement reads in a transaction of its own.
  [[nodiscard]] std::int64_t count_rows_read(const std::string& table,
                                             const std::string& sql) const {
    connection_->exec("BEGIN");
    const std::int64_t before = rows_read(table);
    connection_->exec(sql);
    const std::int64_t read = rows_read(table) - before;
    connection_->exec("COMMIT");
    return read;
  }

  std::unique_ptr<Pg> connection_;
  const store::postgres::Queries queries_{"outbox"};
};

INSTANTIATE_TEST_SUITE_P(Postgres, SettlementCost, ::testing::Values(false, true),
                         [](const auto& analysed) {
                           return analysed.param ? "Analysed" : "WithoutStatistics";
                         });

TEST_P(SettlementCost, cursors_are_read_and_claimed_by_one_row_of_each_lane) {
  EXPECT_LE(rows_read_by(queries_.plan_settings, queries_.cursors, "1, -1"), 64);
  EXPECT_LE(rows_read_by(queries_.plan_settings, queries_.standing, "1"), 64);
  EXPECT_LE(rows_read_by(queries_.plan_settings, queries_.claim,
                         "NULL, 1, -1, 2, '00000000-0000-0000-0000-000000000000'"),
            64);
  EXPECT_EQ(connection_->value("SELECT acked_total FROM outbox.settlement WHERE kind = 'claim'"),
            std::to_string(kSettlements));
}

TEST_P(SettlementCost, the_last_settlements_are_found_also_when_nothing_was_ever_retried) {
  EXPECT_LE(rows_read_by(queries_.plan_settings, queries_.last, "1"), 2);
}

TEST_P(SettlementCost, the_end_of_a_retry_reads_the_total_of_the_one_before) {
  connection_->exec(
      "INSERT INTO outbox.new_event (aggregate_type, aggregate_id, event_type, payload) VALUES ('Order', '1', 'Placed', '{}'), ('Order', '1', 'Paid', '{}');"
      "SELECT outbox.park_events(1, 2, array_agg(seq), '{retrying,waiting}', '{1,0}', '{0,0}', '{no,no}', '{NULL,NULL}', '{77,77}') "
      "FROM (SELECT seq FROM outbox.event ORDER BY seq) e");
  for (int total = 1; total <= 2; ++total) {
    connection_->exec("BEGIN");
    const std::int64_t before = rows_read();
    connection_->exec(
        "SELECT outbox.settle_parked(1, 2, ARRAY[seq], ARRAY[NULL::text], '{2}', '{0}', '{\"\"}', '{NULL}', ARRAY[key], ARRAY[seq], ARRAY[id], '{0}') "
        "FROM outbox.parked ORDER BY seq LIMIT 1");
    EXPECT_LE(rows_read() - before, 1);
    connection_->exec("COMMIT");
    EXPECT_EQ(
        connection_->value("SELECT max(acked_total) FROM outbox.settlement WHERE kind = 'retry'"),
        std::to_string(total));
  }
}

TEST_P(SettlementCost, what_is_removed_of_a_generation_is_found_behind_all_of_the_one_before) {
  connection_->exec(
      "INSERT INTO outbox.settlement (subscription, kind, lanes, generation, s1, s2, l, acked, acked_total, at) "
      "SELECT 1, 'settle', -1, 2, s, s, 0, 1, 1, clock_timestamp() - interval '1 day' FROM pg_current_snapshot() s");
  connection_->exec("BEGIN");
  const std::int64_t before = rows_read();
  connection_->exec(
      "SELECT outbox.prune_settlements(1, interval '1 hour', NULL, 1, 9223372036854775807, 100, false)");
  // The rows that are kept are the newest 200.
  EXPECT_LE(rows_read() - before, 300);
  connection_->exec("COMMIT");
}

/// There are many subscriptions beside the one above, and much was removed.
class CostOfMany : public SettlementCost {
 protected:
  void SetUp() override {
    SettlementCost::SetUp();
    if (IsSkipped()) return;
    const std::string subscriptions = std::to_string(kSubscriptions);
    connection_->exec(
        "INSERT INTO outbox.subscription (name, config, lane_group) SELECT 's' || n, '{}', 'default' FROM generate_series(1, " +
        subscriptions +
        ") n; INSERT INTO outbox.settlement (subscription, kind, lanes, generation, s1, s2, l, acked, at) "
        "SELECT s.id, CASE n WHEN 1 THEN 'reset' WHEN 2 THEN 'claim' ELSE 'settle' END, -1, CASE n WHEN 1 THEN 0 ELSE 2 END, now.s, now.s, 0, 1, "
        "clock_timestamp() - interval '1 day' FROM (SELECT pg_current_snapshot() AS s OFFSET 0) now CROSS JOIN generate_series(1, " +
        std::to_string(kSettlementsOfEach) +
        ") n CROSS JOIN outbox.subscription s WHERE s.name <> 's' ORDER BY n;"
        "INSERT INTO outbox.pruned (subscription, first_xid, end_xid, first_seq, last_seq, events, hash) "
        "SELECT s.id, '3', '9', n, n, 1, 9223372036854775807 FROM generate_series(1, 100) n CROSS JOIN outbox.subscription s");
    if (GetParam()) connection_->exec("ANALYZE outbox.settlement; ANALYZE outbox.pruned");
  }
  [[nodiscard]] std::string read_sums(int subscription) const {
    return connection_->value(
        "SELECT concat_ws(' ', min(first_xid::text), max(end_xid::text), min(first_seq), max(last_seq), sum(events), "
        "mod(mod(sum(hash::numeric), 18446744073709551616) + 18446744073709551616, 18446744073709551616), "
        "max(generation), max(settlement), sum(acked), sum(discarded)) FROM outbox.pruned WHERE subscription = $1",
        std::to_string(subscription));
  }
  static std::string prune(int subscription, const std::string& age) {
    return "SELECT outbox.prune_settlements(" + std::to_string(subscription) + ", interval '" +
           age + "', NULL, -1, -1, 2000, false)";
  }

  const store::postgres::RetentionQueries retention_{"outbox"};
};

INSTANTIATE_TEST_SUITE_P(Postgres, CostOfMany, ::testing::Values(false, true),
                         [](const auto& analysed) {
                           return analysed.param ? "Analysed" : "WithoutStatistics";
                         });

TEST_P(CostOfMany, all_cursors_are_read_by_a_row_of_each_subscription) {
  EXPECT_LE(rows_read_by(queries_.plan_settings, retention_.cursors, ""), 64 + kSubscriptions + 20);
  EXPECT_LE(rows_read_by(queries_.plan_settings, retention_.baselines, ""), kSubscriptions + 20);
}

TEST_P(CostOfMany, removal_of_a_subscriptions_settlements_reads_no_others) {
  // The statement reads what the subscription has, what stays, and once more what is removed.
  EXPECT_LE(count_rows_read("settlement", prune(7, "10 days")), 4 * kSettlementsOfEach);
  connection_->exec(
      "INSERT INTO outbox.settlement (subscription, kind, lanes, generation, s1, s2, at) "
      "SELECT 7, 'settle', -1, 1, s, s, clock_timestamp() - interval '1 day' FROM pg_current_snapshot() s CROSS JOIN generate_series(1, 50)");
  EXPECT_LE(count_rows_read("settlement", prune(7, "1 hour")), 9 * kSettlementsOfEach);
  EXPECT_EQ(connection_->value(
                "SELECT count(*) FROM outbox.settlement WHERE subscription = 7 AND generation = 1"),
            "0");
}

TEST_P(CostOfMany, removal_waits_for_nobody_where_there_is_nothing_to_remove) {
  Pg claimant(database_->url());
  claimant.exec("BEGIN; SELECT FROM outbox.fleet FOR UPDATE");
  connection_->exec(prune(7, "10 days"));
  claimant.exec("ROLLBACK");
}

TEST_P(CostOfMany, what_was_removed_is_read_of_one_subscription_and_becomes_one_row) {
  const std::string before = read_sums(7);
  connection_->exec(prune(7, "10 days"));
  EXPECT_EQ(read_sums(7), before);
  EXPECT_EQ(connection_->value("SELECT count(*) FROM outbox.pruned WHERE subscription = 7"), "1");
  EXPECT_EQ(connection_->value("SELECT count(*) FROM outbox.pruned WHERE subscription = 8"), "100");
  EXPECT_LE(count_rows_read("pruned",
                            "PREPARE read AS " + queries_.ledger_pruned.sql + "; EXECUTE read(8)"),
            100);
  EXPECT_LE(count_rows_read("pruned", "SELECT outbox.retained_from()"), 10);
}

TEST_P(CostOfMany, of_a_subscription_that_is_gone_only_its_own_rows_are_removed) {
  connection_->exec("SELECT outbox.drop_subscription(7)");
  EXPECT_LE(count_rows_read("settlement", "SELECT outbox.prune_dropped(2000)"),
            3 * kSettlementsOfEach);
  EXPECT_LE(count_rows_read("pruned", "SELECT outbox.prune_dropped(2000)"), 10);
  EXPECT_EQ(connection_->value("SELECT count(*) FROM outbox.settlement WHERE subscription = 7"),
            "0");
  EXPECT_EQ(connection_->value("SELECT count(*) FROM outbox.pruned WHERE subscription = 7"), "0");
}

}  // namespace
}  // namespace outbox::test
