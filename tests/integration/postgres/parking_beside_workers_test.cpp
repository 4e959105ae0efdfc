// Tests that a statement about parked events does not pass over a key's row that a worker changes
// at the same moment. Workers write progress and claims there without holding the lanes.
#include <future>

#include "integration/postgres/harness.hpp"
#include "support/eventually.hpp"

namespace outbox::test {
namespace {

class ParkingBesideWorkers : public PostgresTest {
 protected:
  void SetUp() override {
    PostgresTest::SetUp();
    if (IsSkipped()) return;
    (void)connect().exec(
        "INSERT INTO outbox.subscription (name, config, lane_group) VALUES ('s', '{\"on_dead\": \"block\"}', 'default');"
        "INSERT INTO outbox.lane (lane_group, lane, generation) SELECT 'default', n, 1 FROM generate_series(0, 63) n "
        "ON CONFLICT (lane_group, lane) DO UPDATE SET generation = 1;"
        "INSERT INTO outbox.new_event (aggregate_type, aggregate_id, event_type, payload) "
        "VALUES ('Order', '1', 'Placed', '{}'), ('Order', '1', 'Paid', '{}')");
  }
  /// Parks the two events, which have one key.
  void park(const std::string& states) {
    (void)connect().exec("SELECT outbox.park_events(1, 1, array_agg(seq ORDER BY seq), '" + states +
                         "', '{1,0}', '{0,0}', '{no,no}', '{NULL,NULL}', '{77,77}') "
                         "FROM outbox.event");
  }
  /// Runs the statement while a worker has changed the row of the key and not committed yet.
  std::string beside_a_worker(const std::string& statement) {
    Pg worker = connect();
    (void)worker.exec("BEGIN; UPDATE outbox.parked_key SET percent = 50");
    auto answer = std::async(std::launch::async, [&] { return connect().value(statement); });
    EXPECT_TRUE(eventually([&] {
      return value(
                 "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND "
                 "wait_event_type = 'Lock'") == "1";
    })) << "it does not meet the worker";
    (void)worker.exec("COMMIT");
    return answer.get();
  }
  static std::string settled(const std::string& state) {
    return "SELECT count(outbox.settle_parked(1, 1, ARRAY[seq], '" + state +
           "', '{2}', '{0}', '{no}', '{NULL}', '{77}', ARRAY[seq], ARRAY[id], '{0}')) "
           "FROM (SELECT seq, id FROM outbox.parked ORDER BY seq LIMIT 1) p";
  }
};

TEST_F(ParkingBesideWorkers, dead_events_that_do_not_block_any_more_free_their_key) {
  park("{dead,waiting}");
  EXPECT_EQ(beside_a_worker("SELECT outbox.unblock_parked(1, -1, 1000)"), "1");
  EXPECT_EQ(value("SELECT count(*) FROM outbox.parked_key WHERE blocked_by IS NULL AND "
                  "next_attempt_at < 'infinity'"),
            "1");
  EXPECT_EQ(value("SELECT count(*) FROM outbox.parked WHERE blocks"), "0");
}

TEST_F(ParkingBesideWorkers, an_event_that_is_delivered_makes_way_for_the_next_one) {
  park("{retrying,waiting}");
  beside_a_worker(settled("{NULL}"));
  EXPECT_EQ(value("SELECT string_agg(state || ' ' || attempts, ',') FROM outbox.parked_state"),
            "retrying 0");
}

TEST_F(ParkingBesideWorkers, an_event_that_dies_blocks_its_key) {
  park("{retrying,waiting}");
  beside_a_worker(settled("{dead}"));
  EXPECT_EQ(value("SELECT count(*) FROM outbox.parked_key k JOIN outbox.parked p ON p.seq = "
                  "k.blocked_by WHERE p.dead AND k.next_attempt_at = 'infinity'"),
            "1");
}

TEST_F(ParkingBesideWorkers, what_a_person_discards_makes_way_for_the_next_one) {
  park("{dead,waiting}");
  beside_a_worker(
      "SELECT outbox.discard_parked(1, ARRAY(SELECT seq FROM outbox.parked WHERE dead), 'anna', '')");
  EXPECT_EQ(value("SELECT string_agg(state, ',') FROM outbox.parked_state"), "retrying");
}

TEST_F(ParkingBesideWorkers, what_a_person_sends_again_is_due) {
  park("{dead,waiting}");
  beside_a_worker("SELECT outbox.retry_parked(1, ARRAY(SELECT seq FROM outbox.parked WHERE dead))");
  EXPECT_EQ(value("SELECT string_agg(state, ',' ORDER BY seq) FROM outbox.parked_state"),
            "retrying,waiting");
  EXPECT_EQ(
      value("SELECT count(*) FROM outbox.parked_key WHERE blocked_by IS NULL AND version = 1"),
      "1");
}

}  // namespace
}  // namespace outbox::test
