// What it costs to take lanes over, to add up what was delivered and to remove old settlements does not depend on how many
// settlements there are, whatever the planner knows of the table.
#include "integration/postgres/harness.hpp"
#include "store/postgres/queries.hpp"

namespace outbox::test {
namespace {

constexpr int kSettlements = 20'000;

/// The parameter: the table was analysed.
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
    // A relay takes over: its generation has no rows yet.
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
    connection_->exec("EXECUTE measured(" + parameters + ")");
    const std::int64_t read = rows_read() - before;
    connection_->exec("DEALLOCATE measured");
    connection_->exec("COMMIT");
    return read;
  }
  [[nodiscard]] std::int64_t rows_read() const {
    return std::stoll(connection_->value(
        "SELECT coalesce(idx_tup_fetch, 0) + seq_tup_read FROM pg_stat_xact_user_tables "
        "WHERE schemaname = 'outbox' AND relname = 'settlement'"));
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
  // Those that are kept are the newest 200.
  EXPECT_LE(rows_read() - before, 300);
  connection_->exec("COMMIT");
}

}  // namespace
}  // namespace outbox::test
