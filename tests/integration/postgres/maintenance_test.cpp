// Tests that partitions exist before the writers need them, and that adding them blocks no writer.
#include <atomic>
#include <thread>

#include "integration/postgres/harness.hpp"
#include "support/eventually.hpp"
#include "support/lane_owner.hpp"

namespace outbox::test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class PostgresMaintenance : public PostgresTest {
 protected:
  [[nodiscard]] Result<std::string> run() const {
    auto maintenance = store_->maintenance();
    EXPECT_TRUE(ok(maintenance));
    return (*maintenance)->run();
  }
  /// Resets the measured width of partitions, so that more are due.
  void expect_more_traffic() const {
    (void)connect().exec("UPDATE outbox.meta SET xids_per_s = 5000");
  }
  /// Drops all partitions but the default one, so that writers write into that.
  void drop_partitions() const {
    Pg admin(database_->url());
    for (
        const auto& row : admin.exec(
            "SELECT inhrelid::regclass FROM pg_inherits WHERE inhparent = 'outbox.event'::regclass "
            "AND inhrelid <> 'outbox.event_default'::regclass")) {
      (void)admin.exec("DROP TABLE " + *row[0]);
    }
  }
  [[nodiscard]] std::string partitions() const {
    return value("SELECT count(*) - 1 FROM pg_inherits WHERE inhparent = 'outbox.event'::regclass");
  }
  /// How many transaction ids the partitions still hold.
  [[nodiscard]] std::int64_t runway() const {
    return std::stoll(value(
        "SELECT max((regexp_match(pg_get_expr(c.relpartbound, c.oid), 'TO \\(''(\\d+)''\\)'))[1]::bigint) "
        "- pg_snapshot_xmax(pg_current_snapshot())::text::bigint "
        "FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = 'outbox.event'::regclass"));
  }
};

TEST_F(PostgresMaintenance, a_fresh_schema_has_several_partitions_and_uses_them) {
  EXPECT_EQ(partitions(), "4");
  EXPECT_GT(runway(), 50'000'000);
  (void)connect().exec("SELECT outbox.enqueue('a', 'b', 'c', '{}')");
  EXPECT_EQ(value("SELECT count(*) FROM outbox.event_default"), "0");
  auto done = run();
  ASSERT_TRUE(ok(done));
  EXPECT_THAT(*done, IsEmpty());
}

TEST_F(PostgresMaintenance, more_traffic_makes_wider_partitions) {
  expect_more_traffic();
  auto done = run();
  ASSERT_TRUE(ok(done));
  EXPECT_THAT(*done, HasSubstr("partitions added: event_x"));
  EXPECT_GE(runway(), 24LL * 3600 * 5000);
  EXPECT_THAT(run().value(), IsEmpty());
  // The new partitions have as many indexes as the others.
  EXPECT_EQ(
      value(
          "SELECT count(DISTINCT n) FROM (SELECT i.inhrelid, count(*) n FROM pg_inherits i "
          "JOIN pg_index x ON x.indrelid = i.inhrelid WHERE i.inhparent = 'outbox.event'::regclass GROUP BY 1) s"),
      "1");
}

TEST_F(PostgresMaintenance, the_rate_is_measured) {
  (void)connect().exec(
      "UPDATE outbox.meta SET xids_per_s = 1, measured_at = measured_at - interval '100 s', "
      "measured_xid = measured_xid - 500000");
  ASSERT_TRUE(ok(run()));
  EXPECT_GT(std::stod(value("SELECT xids_per_s FROM outbox.meta")), 4000);
}

TEST_F(PostgresMaintenance, an_open_writer_blocks_nothing_and_is_not_blocked) {
  Pg writer(database_->url());
  (void)writer.exec("BEGIN; SELECT outbox.enqueue('a', '1', 'c', '{}')");
  expect_more_traffic();
  EXPECT_THAT(run().value(), HasSubstr("partitions added"));
  Pg other(database_->url());
  (void)other.exec("SET lock_timeout = '100ms'; SELECT outbox.enqueue('a', '2', 'c', '{}')");
  (void)writer.exec("SELECT outbox.enqueue('a', '3', 'c', '{}'); COMMIT");
  EXPECT_EQ(value("SELECT count(*) FROM outbox.event"), "3");
}

TEST_F(PostgresMaintenance, an_open_reader_of_the_whole_table_only_delays_it) {
  Pg reader(database_->url());
  (void)reader.exec("BEGIN; SELECT count(*) FROM outbox.event");
  expect_more_traffic();
  (void)run();
  EXPECT_EQ(partitions(), "4");
  (void)connect().exec("SET lock_timeout = '100ms'; SELECT outbox.enqueue('a', '2', 'c', '{}')");
  (void)reader.exec("COMMIT");
  EXPECT_THAT(run().value(), HasSubstr("partitions added"));
}

TEST_F(PostgresMaintenance,
       without_partitions_left_writers_use_the_default_and_new_ones_begin_above) {
  drop_partitions();
  Pg admin(database_->url());
  (void)admin.exec("SELECT outbox.enqueue('a', '1', 'c', '{}')");
  EXPECT_EQ(value("SELECT count(*) FROM outbox.event_default"), "1");
  Pg writer(database_->url());
  (void)writer.exec("BEGIN; SELECT outbox.enqueue('a', '2', 'c', '{}')");
  auto blocked = run();
  ASSERT_FALSE(blocked);
  EXPECT_EQ(blocked.error().origin, "pg:55P03");
  EXPECT_THAT(blocked.error().message,
              HasSubstr("in use by pid " + writer.value("SELECT pg_backend_pid()")));
  (void)writer.exec("COMMIT");
  // Each new partition makes the server read the default one under a lock, so that a run adds only
  // one.
  EXPECT_THAT(run().value(), HasSubstr("partitions added"));
  EXPECT_EQ(partitions(), "1");
  (void)admin.exec("SELECT outbox.enqueue('a', '3', 'c', '{}')");
  EXPECT_EQ(value("SELECT count(*) FROM outbox.event"), "3");
  for (int i = 0; i < 4; ++i) (void)run();
  EXPECT_EQ(partitions(), "4");
  EXPECT_THAT(run().value(), IsEmpty());
}

TEST_F(PostgresMaintenance, relays_that_were_killed_while_they_waited_are_forgotten) {
  LaneOwner owner(*store_, "owner");
  ASSERT_TRUE(owner.keep().value().owns());
  std::vector<std::unique_ptr<store::Membership>> members;
  for (const char* name : {"dead", "slow", "alive"}) {
    members.push_back(store_->membership({.name = name}).value());
    ASSERT_TRUE(ok(members.back()->keep(std::chrono::minutes(10))));
  }
  (void)connect().exec(
      "UPDATE outbox.relay SET heartbeat_at = heartbeat_at - CASE name WHEN 'slow' THEN interval '50 min' "
      "WHEN 'alive' THEN interval '0 s' ELSE interval '101 min' END");
  EXPECT_EQ(run().value(), "silent relays removed: dead");
  EXPECT_EQ(value("SELECT string_agg(name, ',' ORDER BY name) FROM outbox.relay"),
            "alive,owner,slow");
  // The relay was frozen and not dead.
  ASSERT_TRUE(ok(members[0]->keep(std::chrono::minutes(10))));
  EXPECT_EQ(value("SELECT count(*) FROM outbox.relay WHERE name = 'dead'"), "1");
}

TEST_F(PostgresMaintenance, two_at_once_do_it_once) {
  expect_more_traffic();
  Pg one(database_->url());
  (void)one.exec("BEGIN; SELECT outbox.make_partitions()");
  // The error names the holder of the lock, which may never give it back.
  auto waited = run();
  ASSERT_FALSE(waited);
  EXPECT_THAT(waited.error().message,
              HasSubstr("held by pid " + one.value("SELECT pg_backend_pid()")));
  (void)one.exec("COMMIT");
  EXPECT_THAT(run().value(), IsEmpty());
}

TEST_F(PostgresMaintenance, somebody_who_keeps_the_lock_matters_only_when_partitions_run_out) {
  Pg one(database_->url());
  (void)one.exec("BEGIN; SELECT outbox.make_partitions()");
  EXPECT_THAT(run().value(), IsEmpty());
}

TEST_F(PostgresMaintenance, writers_who_prepare_their_transactions_do_not_keep_partitions_away) {
  OUTBOX_NEEDS_PREPARED_TRANSACTIONS(*this);
  drop_partitions();
  std::atomic<bool> stop{false};
  std::vector<std::jthread> writers;
  for (int writer = 0; writer < 4; ++writer) {
    writers.emplace_back([&, writer] {
      Pg connection(database_->url());
      (void)connection.exec("SET outbox.wake = off");
      for (int i = 0; !stop; ++i) {
        const std::string gid =
            "'" + database_->name() + std::to_string(writer) + "_" + std::to_string(i) + "'";
        (void)connection.exec("BEGIN; SELECT outbox.enqueue('a', '1', 'c', '{}')");
        (void)connection.exec("PREPARE TRANSACTION " + gid);
        (void)connection.exec("COMMIT PREPARED " + gid);
      }
    });
  }
  EXPECT_TRUE(eventually([&] { return value("SELECT count(*) > 100 FROM outbox.event") == "t"; }));
  const auto done = run();
  stop = true;
  writers.clear();
  ASSERT_TRUE(ok(done));
  EXPECT_THAT(*done, HasSubstr("partitions added"));
}

TEST_F(PostgresMaintenance, a_prepared_transaction_in_the_way_is_named) {
  OUTBOX_NEEDS_PREPARED_TRANSACTIONS(*this);
  drop_partitions();
  Pg writer(database_->url());
  const std::string gid = database_->name() + "_forgotten";
  (void)writer.exec("SET outbox.wake = off; BEGIN; SELECT outbox.enqueue('a', '1', 'c', '{}')");
  (void)writer.exec("PREPARE TRANSACTION '" + gid + "'");
  // The call runs as the login of a relay does, which owns nothing.
  Pg relay(database_->url());
  const std::string said =
      find_complaint(relay, "SET ROLE outbox_relay; SELECT outbox.make_partitions()");
  EXPECT_THAT(said, HasSubstr("in use by prepared transaction '" + gid + "'"));
  (void)writer.exec("COMMIT PREPARED '" + gid + "'");
  EXPECT_THAT(run().value(), HasSubstr("partitions added"));
}

}  // namespace
}  // namespace outbox::test
