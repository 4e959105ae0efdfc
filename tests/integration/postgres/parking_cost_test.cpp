// Tests that the cost of parking events and of settling parked ones does not grow with the number
// of events that are parked already. The planner knows nothing of the table, because all of it
// happens before statistics can exist.
#include "integration/postgres/harness.hpp"
#include "store/postgres/queries.hpp"

namespace outbox::test {
namespace {

class ParkingCost : public PostgresTest {
 protected:
  void SetUp() override {
    PostgresTest::SetUp();
    if (IsSkipped()) return;
    connection_ = std::make_unique<Pg>(database_->url());
    connection_->exec("BEGIN");
    connection_->exec(
        "INSERT INTO outbox.subscription (name, config, lane_group) VALUES ('s', '{}', 'default');"
        "INSERT INTO outbox.lane (lane_group, lane, generation) SELECT 'default', n, 1 FROM generate_series(0, 63) n "
        "ON CONFLICT (lane_group, lane) DO UPDATE SET generation = 1;"
        "INSERT INTO outbox.new_event (aggregate_type, aggregate_id, event_type, payload) "
        "SELECT 'Order', n % 1000, 'Placed', '{}' FROM generate_series(0, 11999) n");
    first_ = std::stoll(connection_->value("SELECT min(seq) FROM outbox.event"));
  }

  /// Parks events. The first one of each of the 1,000 keys is `retrying`.
  void park(int from, int count) {
    connection_->exec(
        "SELECT outbox.park_events(1, 1, array_agg(seq), array_agg(CASE WHEN seq < $1::bigint + 1000 THEN 'retrying' ELSE 'waiting' END), "
        "array_agg(1::bigint), array_agg(0::bigint), array_agg('no'::text), array_agg(NULL::uuid), "
        "array_agg(1000000 + (seq - $1::bigint) % 1000)) "
        "FROM generate_series($1::bigint + $2::int, $1::bigint + $2::int + $3::int - 1) seq",
        {std::to_string(first_), std::to_string(from), std::to_string(count)});
  }
  void deliver_retrying(int count) {
    connection_->exec(
        "SELECT outbox.settle_parked(1, 1, array_agg(seq), array_agg(NULL::text), array_agg(2::bigint), array_agg(0::bigint), "
        "array_agg(''::text), array_agg(NULL::uuid), array_agg(key), array_agg(seq), array_agg(id), "
        "array_agg(0::bigint)) "
        "FROM (SELECT seq, id, key FROM outbox.parked ORDER BY seq LIMIT $1::int) due",
        {std::to_string(count)});
  }
  [[nodiscard]] std::int64_t log_rows_read() const {
    return std::stoll(connection_->value(
        "SELECT sum(coalesce(idx_tup_fetch, 0) + seq_tup_read) FROM pg_stat_xact_user_tables "
        "WHERE schemaname = 'outbox' AND relname LIKE 'event%'"));
  }
  /// The rows of the tables of parked events that were read since the transaction began.
  [[nodiscard]] std::int64_t rows_read() const {
    return std::stoll(connection_->value(
        "SELECT sum(coalesce(idx_tup_fetch, 0) + seq_tup_read) FROM pg_stat_xact_user_tables "
        "WHERE schemaname = 'outbox' AND relname IN ('parked', 'parked_key')"));
  }

  std::unique_ptr<Pg> connection_;
  std::int64_t first_{0};
};

TEST_F(ParkingCost, does_not_grow_with_what_is_parked) {
  park(0, 1000);
  const std::int64_t empty = rows_read();
  park(1000, 10000);
  const std::int64_t before = rows_read();
  park(11000, 1000);
  EXPECT_LE(rows_read() - before, empty + 1000);
  EXPECT_EQ(connection_->value("SELECT count(*) FROM outbox.parked_key"), "1000");
}

TEST_F(ParkingCost, only_the_events_that_are_parked_are_read_from_the_log) {
  park(0, 100);
  const std::int64_t before = log_rows_read();
  park(100, 100);
  EXPECT_LE(log_rows_read() - before, 100);
}

TEST_F(ParkingCost, a_result_reads_its_own_rows_and_the_next_of_the_key) {
  park(0, 12000);
  const std::int64_t before = rows_read();
  connection_->exec(
      "CREATE TEMP TABLE due AS SELECT seq, id, key FROM outbox.parked ORDER BY seq LIMIT 10");
  const std::int64_t found = rows_read() - before;
  deliver_retrying(10);
  EXPECT_LE(rows_read() - before - 2 * found, 10 * 12);
  EXPECT_EQ(connection_->value("SELECT count(*) FROM outbox.parked_key"), "1000");
}

/// A person lists parked events page by page.
TEST_F(ParkingCost, a_page_of_a_list_reads_its_own_rows) {
  park(0, 12000);
  connection_->exec(
      "UPDATE outbox.parked SET dead = true; ANALYZE outbox.parked, outbox.parked_key");
  const store::postgres::Queries queries("outbox");
  connection_->exec(queries.plan_settings.sql);
  const std::int64_t before = rows_read();
  const auto none = std::nullopt;
  const auto page = connection_->exec(queries.of(&store::sql::Statements::list_parked).sql,
                                      {"1", "dead", none, none, none, none, none, "100", "false",
                                       none, none, "1", std::to_string(first_ + 6000)});
  EXPECT_EQ(page.size(), 100);
  EXPECT_LE(rows_read() - before, 2 * 100);
}

TEST_F(ParkingCost, one_event_is_found_by_its_id) {
  park(0, 12000);
  connection_->exec("ANALYZE outbox.parked, outbox.parked_key");
  const std::string id =
      connection_->value("SELECT id FROM outbox.parked ORDER BY seq DESC LIMIT 1");
  const store::postgres::Queries queries("outbox");
  const std::int64_t before = rows_read();
  const auto none = std::nullopt;
  const auto found = connection_->exec(
      queries.of(&store::sql::Statements::find_parked).sql,
      {none, none, none, none, none, id, none, "100", "false", none, none, "-1", "-1"});
  EXPECT_EQ(found.size(), 1);
  EXPECT_LE(rows_read() - before, 10);
}

/// Counts the rows that are read to find what is due.
class DueCost : public ParkingCost {
 protected:
  std::int64_t rows_read_for_due(std::size_t expected) {
    const store::postgres::Queries queries("outbox");
    connection_->exec(R"(UPDATE outbox.subscription SET config = '{"on_dead": "continue"}')");
    connection_->exec(queries.plan_settings.sql);
    connection_->exec("PREPARE due AS " + queries.due_parked.sql);
    const std::int64_t before = rows_read();
    EXPECT_EQ(connection_->exec("EXECUTE due(1, 1000, 100, 8000000, -1, 1, 100)").size(), expected);
    const std::int64_t read = rows_read() - before;
    connection_->exec("DEALLOCATE due");
    return read;
  }
};

TEST_F(DueCost, does_not_grow_with_what_is_due_later) {
  park(0, 1000);
  connection_->exec(
      "UPDATE outbox.parked_key SET next_attempt_at = now() + interval '1 hour' WHERE key >= 1000010");
  EXPECT_LE(rows_read_for_due(10), 3 * 10);
}

TEST_F(DueCost, does_not_grow_with_rows_that_have_no_key) {
  park(0, 12000);  // 1,000 keys with 11 waiting rows each
  connection_->exec(
      "UPDATE outbox.parked SET aggregate_id = '', key = seq WHERE key >= 1000010;"
      "DELETE FROM outbox.parked_key WHERE key >= 1000010;"
      "INSERT INTO outbox.parked_key (subscription, key, lane, solo, next_attempt_at) "
      "SELECT subscription, key, lane, true, now() + interval '1 hour' FROM outbox.parked WHERE key = seq");
  connection_->exec("ANALYZE outbox.parked, outbox.parked_key");
  const std::int64_t rows = 10 * 12;
  EXPECT_LE(rows_read_for_due(rows), 3 * rows);
}

}  // namespace
}  // namespace outbox::test
