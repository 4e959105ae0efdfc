// Tests that retention removes what every subscription has passed, and nothing else
// (docs/design/retention.md).
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "integration/retention/fixture.hpp"
#include "support/eventually.hpp"
#include "support/lane_owner.hpp"
#include "support/temp_dir.hpp"

namespace outbox::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using State = store::LogPiece::State;

constexpr std::int64_t kLane63 = std::numeric_limits<std::int64_t>::min();

class PostgresRetention : public RetentionTest {};

TEST_F(PostgresRetention, what_all_have_passed_goes_and_is_in_the_ledger) {
  const auto first = subscribe("first");
  const auto second = subscribe("second");
  const std::string old = enqueue();
  close_partition();
  const std::string young = enqueue();
  EXPECT_EQ(prune().events, 0);
  settle(first);
  EXPECT_EQ(prune().events, 0);
  ASSERT_EQ(holds().size(), 1U);
  EXPECT_EQ(holds()[0].subscription, second);
  settle(second);
  EXPECT_EQ(prune().events, 1);
  EXPECT_THAT(events(), ElementsAre(young));
  EXPECT_EQ(pruned(first), read_sum({old}));
  EXPECT_EQ(pruned(second), read_sum({old}));
}

TEST_F(PostgresRetention, a_subscription_that_rests_holds_what_it_has_not_passed) {
  const auto active = subscribe("active");
  const auto resting = subscribe("resting");
  for (const char* state : {"paused", "stopped"}) {
    admin_->run("UPDATE outbox.subscription SET state = '" + std::string(state) +
                "' WHERE name = 'resting'");
    const std::string old = enqueue();
    close_partition();
    settle(active);
    EXPECT_EQ(prune().events, 0) << state;
    EXPECT_THAT(events(), ElementsAre(old));
    settle(resting);
    EXPECT_EQ(prune().events, 1) << state;
  }
}

TEST_F(PostgresRetention, a_single_lane_holds) {
  const auto subscription = subscribe("orders");
  (void)enqueue();
  close_partition();
  settle(subscription, ~kLane63);
  EXPECT_EQ(prune().events, 0);
  settle(subscription, 1);
  EXPECT_EQ(prune().events, 0);
  settle(subscription, kLane63);
  EXPECT_EQ(prune().events, 1);
}

TEST_F(PostgresRetention, of_a_pair_that_was_begun_its_first_snapshot_counts) {
  const auto subscription = subscribe("orders");
  (void)enqueue();
  close_partition();
  write(subscription, "settle", -1, 0, "'3:3:', pg_current_snapshot(), 1000");
  EXPECT_EQ(prune().events, 0);
  settle(subscription);
  EXPECT_EQ(prune().events, 1);
}

TEST_F(PostgresRetention, a_running_replay_holds_what_it_reads) {
  const auto subscription = subscribe("orders");
  const std::string old = enqueue();
  close_partition();
  const std::string young = enqueue();
  close_partition();
  const auto replays = store_->replays().value();
  const auto start = [&](std::int64_t first, std::int64_t last) {
    return replays->start(
        {.subscription = subscription, .first = first, .last = last, .filter = "{}", .actor = "a"});
  };
  const auto id = start(2, 2);
  ASSERT_TRUE(ok(id));
  settle(subscription);
  EXPECT_EQ(prune().events, 1);
  EXPECT_THAT(events(), ElementsAre(young));
  ASSERT_EQ(holds().size(), 1U);
  EXPECT_EQ(holds()[0].subscription, subscription);
  const auto early = start(1, 1);
  ASSERT_FALSE(early);
  EXPECT_EQ(early.error().code, Errc::already_exists);
  ASSERT_EQ(replays->stop(*id, "").value(), true);
  EXPECT_THAT(start(1, 1).error().text(), HasSubstr("everything from seq 2 on"));
  EXPECT_EQ(prune().events, 1);
  EXPECT_THAT(replays->resume(*id).error().text(), HasSubstr("--archive"));
  EXPECT_TRUE(replays->retained()->removed);
  EXPECT_EQ(replays->retained()->first, 3);
}

TEST_F(PostgresRetention, a_late_row_of_a_former_owner_does_not_count) {
  const auto subscription = subscribe("orders");
  (void)enqueue();
  close_partition();
  write(subscription, "claim", -1, 5, "'3:3:', NULL, NULL");
  settle(subscription, -1, 4);
  EXPECT_EQ(prune().events, 0);
  settle(subscription, 7, 5);
  EXPECT_EQ(prune().events, 0);
  settle(subscription, ~std::int64_t{7}, 6);
  EXPECT_EQ(prune().events, 1);
}

TEST_F(PostgresRetention, a_transaction_that_may_still_write_holds_its_partition) {
  const auto subscription = subscribe("orders");
  Pg writer(database_->url());
  const std::string late = writer.value("SELECT 1");
  writer.run("BEGIN; SELECT pg_current_xact_id()");
  (void)enqueue();
  close_partition();
  settle(subscription);
  EXPECT_EQ(prune().events, 0);
  const std::string id = enqueue(writer);
  writer.run("COMMIT");
  // The transaction is over now, but it was open in the cursor, so that its event is not delivered
  // yet.
  EXPECT_EQ(prune().events, 0);
  EXPECT_EQ(events().back(), id);
  settle(subscription);
  EXPECT_EQ(prune().events, 2);
}

TEST_F(PostgresRetention, a_prepared_transaction_holds_its_partition) {
  OUTBOX_NEEDS_PREPARED_TRANSACTIONS(*admin_);
  const auto subscription = subscribe("orders");
  const std::string name = database_->name() + "_held";
  Pg writer(database_->url());
  writer.run("BEGIN");
  const std::string id = enqueue(writer);
  writer.run("PREPARE TRANSACTION '" + name + "'");
  (void)enqueue();
  close_partition();
  settle(subscription);
  EXPECT_EQ(prune().events, 0);
  writer.run("COMMIT PREPARED '" + name + "'");
  EXPECT_EQ(prune().events, 0);
  settle(subscription);
  EXPECT_EQ(prune().events, 2);
}

TEST_F(PostgresRetention, without_a_subscription_nothing_goes) {
  (void)enqueue();
  close_partition();
  EXPECT_EQ(prune().events, 0);
  EXPECT_EQ(events().size(), 1U);
}

TEST_F(PostgresRetention, a_lane_without_a_cursor_holds_everything) {
  const auto subscription = subscribe("orders");
  (void)enqueue();
  close_partition();
  admin_->run("DELETE FROM outbox.settlement");
  settle(subscription, ~std::int64_t{1});
  EXPECT_EQ(prune().events, 0);
}

TEST_F(PostgresRetention, what_is_young_stays) {
  const auto subscription = subscribe("orders");
  (void)enqueue();
  close_partition();
  settle(subscription);
  const auto pass = prune({.keep = std::chrono::hours(1)});
  EXPECT_EQ(pass.events, 0);
  EXPECT_TRUE(std::any_of(pass.left.begin(), pass.left.end(),
                          [](const auto& piece) { return piece.state == State::young; }));
  EXPECT_EQ(prune().events, 1);
}

TEST_F(PostgresRetention, the_ledger_counts_from_where_a_subscription_began) {
  const auto whole = subscribe("whole");
  const std::string before = enqueue();
  const auto later = subscribe("later", Start::now);
  const std::string after = enqueue();
  close_partition();
  settle(whole);
  settle(later);
  EXPECT_EQ(prune().events, 2);
  EXPECT_EQ(pruned(whole), read_sum({before, after}));
  EXPECT_EQ(pruned(later), read_sum({after}));
}

// Without this lock a claim, or a new subscription, could begin in a partition that is removed at
// that moment.
TEST_F(PostgresRetention, claims_and_new_subscriptions_keep_removal_out) {
  const auto subscription = subscribe("orders");
  (void)enqueue();
  close_partition();
  settle(subscription);
  Pg claimant(database_->url());
  claimant.run("BEGIN; SELECT FROM outbox.fleet FOR UPDATE");
  const auto pass = prune();
  EXPECT_EQ(pass.events, 0);
  EXPECT_EQ(pass.locked, 1);
  claimant.run("ROLLBACK");

  claimant.run("BEGIN; SELECT FROM outbox.fleet FOR SHARE");
  SubscriptionSpec spec;
  spec.name = "new";
  spec.sink = "null";
  const auto applied = store_->catalog().value()->apply(spec);
  ASSERT_FALSE(applied);
  EXPECT_EQ(applied.error().origin, "pg:55P03");
  const auto standing = LaneOwner(*store_, "relay").keep();
  ASSERT_TRUE(ok(standing));
  EXPECT_FALSE(standing->owns());
  claimant.run("ROLLBACK");
  EXPECT_EQ(prune().events, 1);
}

TEST_F(PostgresRetention, a_claim_that_sets_a_lane_back_comes_before_a_removal) {
  const auto subscription = subscribe("orders");
  (void)enqueue();
  close_partition();
  Pg claimant(database_->url());
  claimant.run("BEGIN; SELECT FROM outbox.fleet FOR UPDATE");
  claimant.run(
      "INSERT INTO outbox.settlement (subscription, kind, lanes, generation, s1) "
      "SELECT id, 'claim', -1, 5, '3:3:' FROM outbox.subscription");
  settle(subscription, -1, 4);  // by the former owner, and not seen by the claim
  EXPECT_EQ(prune().events, 0);
  claimant.run("COMMIT");
  EXPECT_EQ(prune().events, 0);
  EXPECT_EQ(events().size(), 1U);
}

// The removal read the cursors before it waits for the lock.
TEST_F(PostgresRetention, a_claim_that_commits_while_a_removal_waits_for_it_holds) {
  const auto subscription = subscribe("orders");
  (void)enqueue();
  close_partition();
  settle(subscription);
  const auto pieces = store_->retention().value()->survey({}).value();
  const auto piece = std::find_if(pieces.begin(), pieces.end(),
                                  [](const auto& one) { return one.state == State::removable; });
  ASSERT_NE(piece, pieces.end());
  Pg claimant(database_->url());
  claimant.run("BEGIN; UPDATE outbox.fleet SET generation = generation + 5");
  claimant.run(
      "INSERT INTO outbox.settlement (subscription, kind, lanes, generation, s1) "
      "SELECT id, 'claim', -1, 5, '3:3:' FROM outbox.subscription");
  std::string removed;
  std::jthread remover([&] {
    Pg connection(database_->url());
    while (removed.empty()) {
      try {
        removed =
            connection.value("SELECT outbox.remove_partition('" + std::to_string(piece->first) +
                             "', '" + std::to_string(piece->end) + "', '{}', '{}', '{}', 0, 0)");
      } catch (const PgError& error) {
        ASSERT_EQ(error.state(), "55P03");  // the removal does not wait for long
      }
    }
  });
  EXPECT_TRUE(eventually([&] {
    return value(
               "SELECT count(*) > 0 FROM pg_stat_activity WHERE datname = current_database() "
               "AND wait_event_type = 'Lock' AND query LIKE '%remove_partition%'") == "t";
  }));
  claimant.run("COMMIT");
  remover.join();
  EXPECT_EQ(removed, "f");
  EXPECT_EQ(events().size(), 1U);
}

TEST_F(PostgresRetention, a_session_that_reads_a_partition_only_delays_it) {
  const auto subscription = subscribe("orders");
  (void)enqueue();
  close_partition();
  settle(subscription);
  Pg reader(database_->url());
  reader.run("BEGIN; SELECT count(*) FROM outbox.event");
  const auto pass = prune();
  EXPECT_EQ(pass.events, 0);
  EXPECT_EQ(pass.locked, 1);
  (void)enqueue();  // writers do not wait
  reader.run("COMMIT");
  EXPECT_EQ(prune().events, 1);
}

TEST_F(PostgresRetention, emptied_partitions_are_dropped_once_no_writer_is_in_the_way) {
  const auto subscription = subscribe("orders");
  (void)enqueue();
  close_partition();
  settle(subscription);
  const std::string count = "SELECT count(*) FROM outbox.partitions()";
  const std::string before = value(count);
  Pg writer(database_->url());
  writer.run("BEGIN");
  (void)enqueue(writer);
  EXPECT_EQ(prune().events, 1);
  EXPECT_EQ(value(count), before);
  writer.run("COMMIT");
  (void)prune();
  EXPECT_LT(std::stoi(value(count)), std::stoi(before));
  (void)enqueue();
  EXPECT_EQ(value("SELECT count(*) FROM outbox.event_default"), "0");
}

TEST_F(PostgresRetention, the_default_partition_is_emptied_too) {
  admin_->run(
      "DO $$ DECLARE part record; BEGIN FOR part IN SELECT name FROM outbox.partitions() WHERE first_xid IS NOT NULL "
      "LOOP EXECUTE 'DROP TABLE outbox.' || part.name; END LOOP; END $$");
  const auto subscription = subscribe("orders");
  const std::string old = enqueue();
  ASSERT_EQ(value("SELECT count(*) FROM outbox.event_default"), "1");
  EXPECT_EQ(prune().events, 0);
  Pg writer(database_->url());
  writer.run("BEGIN");
  const std::string late = enqueue(writer);
  settle(subscription);
  EXPECT_EQ(prune().locked, 1);
  writer.run("COMMIT");
  EXPECT_EQ(prune().events, 0);
  settle(subscription);
  EXPECT_EQ(prune().events, 2);
  EXPECT_EQ(pruned(subscription), read_sum({old, late}));
}

TEST_F(PostgresRetention, events_are_archived_before_they_go) {
  const TempDir folder;
  const auto subscription = subscribe("orders");
  const std::string id = enqueue();
  (void)admin_->exec(
      "SELECT outbox.enqueue('order', '2', 'Raw', decode('ff00', 'hex'), '{\"a\": \"b\"}', content_type => "
      "'application/octet-stream')");
  close_partition();
  settle(subscription);
  const auto refused = test::prune(*store_, {.archive = folder.file("missing")});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text(), HasSubstr("its events stay in the log"));
  EXPECT_EQ(events().size(), 2U);
  EXPECT_EQ(prune({.archive = folder.path()}).events, 2);
  std::vector<nlohmann::json> lines;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    EXPECT_EQ(entry.path().extension(), ".jsonl");
    std::ifstream in(entry.path());
    for (std::string line; std::getline(in, line);) lines.push_back(nlohmann::json::parse(line));
  }
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0]["id"], id);
  EXPECT_EQ(lines[0]["payload"], nlohmann::json::object());
  EXPECT_EQ(lines[1]["payload_base64"], "/wA=");
  EXPECT_EQ(lines[1]["headers"]["a"], "b");
}

TEST_F(PostgresRetention, one_process_at_a_time_removes) {
  const auto mine = store_->retention().value();
  const auto theirs = store_->retention().value();
  const EventId me = EventId::generate();
  const EventId other = EventId::generate();
  EXPECT_TRUE(mine->hold(me, std::chrono::minutes(5)).value());
  EXPECT_TRUE(mine->hold(me, std::chrono::minutes(5)).value());
  EXPECT_FALSE(theirs->hold(other, std::chrono::minutes(5)).value());
  EXPECT_TRUE(prune().elsewhere);
  EXPECT_TRUE(ok(mine->release(me)));
  EXPECT_TRUE(theirs->hold(other, std::chrono::minutes(5)).value());
}

TEST_F(PostgresRetention, the_relays_role_removes_only_what_has_passed) {
  const auto subscription = subscribe("orders");
  (void)enqueue();
  close_partition();
  const auto pieces = store_->retention().value()->survey({}).value();
  const auto held = std::find_if(pieces.begin(), pieces.end(),
                                 [](const auto& piece) { return piece.state == State::held; });
  ASSERT_NE(held, pieces.end());
  Pg role(database_->url());
  role.run("SET ROLE outbox_relay");
  const std::string remove = "SELECT outbox.remove_partition('" + std::to_string(held->first) +
                             "', '" + std::to_string(held->end) + "', '{}', '{}', '{}', 0, 0)";
  EXPECT_EQ(role.value(remove), "f");
  settle(subscription);
  EXPECT_EQ(role.value(remove), "t");
  role.run("SET ROLE outbox_app");
  EXPECT_EQ(find_sqlstate(role, remove), "42501");
}

}  // namespace
}  // namespace outbox::test
