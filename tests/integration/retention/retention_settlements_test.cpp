// Tests what remains of settlements and parked events once the events are gone.
#include <gmock/gmock.h>

#include <atomic>
#include <thread>

#include "integration/retention/fixture.hpp"
#include "support/lane_owner.hpp"
#include "support/verifier.hpp"

namespace outbox::test {
namespace {

class PostgresRetentionRows : public RetentionTest {
 protected:
  [[nodiscard]] int count(const std::string& what) const {
    return std::stoi(value("SELECT count(*) FROM outbox." + what));
  }
  /// Makes a subscription that has delivered an event, and removes the event.
  std::int32_t subscribe_and_empty() {
    const auto subscription = subscribe("orders");
    (void)enqueue();
    close_partition();
    settle(subscription);
    EXPECT_EQ(prune().events, 1);
    return subscription;
  }
  void append(std::int32_t subscription, int rows, const std::string& kind = "settle",
              std::int64_t lanes = -1, int generation = 0) const {
    admin_->run(
        "INSERT INTO outbox.settlement (subscription, kind, lanes, generation, l, s1, s2, acked_total) SELECT " +
        std::to_string(subscription) + ", '" + kind + "', " + std::to_string(lanes) + ", " +
        std::to_string(generation) +
        ", 0, '3:3:', pg_current_snapshot(), n FROM generate_series(1, " + std::to_string(rows) +
        ") n ORDER BY n");
  }
  /// Settles from the cursor to now, as a relay that owns all lanes does.
  void settle_on(std::int32_t subscription) const {
    admin_->run(
        "INSERT INTO outbox.settlement (subscription, kind, lanes, generation, l, s1, s2) SELECT subscription, 'settle', -1, generation, 0, "
        "coalesce(s2, s1), pg_current_snapshot() FROM outbox.settlement WHERE subscription = " +
        std::to_string(subscription) + " ORDER BY generation DESC, id DESC LIMIT 1");
  }
  [[nodiscard]] std::string marks() const {
    return value(
        "SELECT string_agg(id::text, ' ' ORDER BY id) FROM (SELECT id FROM outbox.settlement WHERE l IS NOT NULL "
        "AND kind <> 'claim' ORDER BY generation DESC, id DESC LIMIT 200) m");
  }
};

TEST_F(PostgresRetentionRows, old_settlements_go_but_the_first_and_the_newest_marks) {
  const auto subscription = subscribe_and_empty();
  append(subscription, 5000);
  const std::string before = marks();
  EXPECT_GT(prune().rows, 4000);
  EXPECT_EQ(marks(), before);
  EXPECT_EQ(count("settlement"), 201);
  EXPECT_EQ(count("settlement WHERE kind = 'reset'"), 1);
  auto progress = store_->progress().value()->load(subscription, store::kAllLanes);
  ASSERT_TRUE(ok(progress));
  store::SubscriptionProgress totals;
  totals.id = subscription;
  EXPECT_TRUE(ok(store_->catalog().value()->add_totals(totals)));
  EXPECT_EQ(totals.acked, 5000);
  EXPECT_EQ(prune().rows, 0);
}

TEST_F(PostgresRetentionRows, young_ones_stay) {
  const auto subscription = subscribe_and_empty();
  append(subscription, 500);
  EXPECT_EQ(prune({.keep = std::chrono::hours(1)}).rows, 0);
}

TEST_F(PostgresRetentionRows, those_of_events_that_exist_stay) {
  const auto subscription = subscribe_and_empty();
  append(subscription, 300);
  (void)subscribe("slow");
  (void)enqueue();
  append(subscription, 300);
  EXPECT_EQ(prune().rows, 301);
  EXPECT_EQ(count("settlement"), 302);
}

TEST_F(PostgresRetentionRows, the_cursor_of_each_lane_stays) {
  const auto subscription = subscribe_and_empty();
  settle(subscription, std::numeric_limits<std::int64_t>::min());
  const std::string quiet = value("SELECT max(id) FROM outbox.settlement");
  append(subscription, 1000, "settle", std::numeric_limits<std::int64_t>::max(), 1);
  EXPECT_GT(prune().rows, 500);
  EXPECT_EQ(count("settlement WHERE id = " + quiet), 1);
}

// A relay appends settlements while retention runs. The newest one is the cursor and must stay.
TEST_F(PostgresRetentionRows, a_row_that_is_appended_meanwhile_stays) {
  const auto subscription = subscribe_and_empty();
  append(subscription, 300);
  std::atomic<bool> done{false};
  std::atomic<int> passes{0};
  std::thread remover([&] {
    Pg connection(database_->url());
    for (; !done; ++passes)
      connection.exec("SELECT outbox.prune_settlements(" + std::to_string(subscription) +
                      ", interval '0', NULL, -1, -1, 2000, false)");
  });
  Pg relay(database_->url());
  int gone = 0;
  for (int i = 0; i < 3000 || passes < 200; ++i) {
    const std::string newest = relay.value(
        "INSERT INTO outbox.settlement (subscription, kind, lanes, generation, l, s1, s2) "
        "SELECT $1::int, 'settle', -1, 0, 0, '3:3:', pg_current_snapshot() RETURNING id",
        std::to_string(subscription));
    if (relay.value("SELECT max(id) FROM outbox.settlement") != newest) ++gone;
  }
  done = true;
  remover.join();
  EXPECT_EQ(gone, 0) << "the cursor was removed while " << passes << " passes ran";
}

// Both relays live for long. Neither keeps the other's old rows.
TEST_F(PostgresRetentionRows, of_each_owner_the_old_rows_go_but_not_the_claims) {
  const auto subscription = subscribe_and_empty();
  constexpr std::int64_t kLow = 0xFFFFFFFF;
  LaneOwner low(*store_, "low");
  LaneOwner high(*store_, "high");
  ASSERT_TRUE(low.keep());
  const auto first = low.owners().change("default", kLow).value().value();
  const auto second = high.keep().value();
  ASSERT_EQ(second.lanes, ~std::uint64_t{kLow});
  append(subscription, 1000, "settle", kLow, static_cast<int>(first.generation));
  append(subscription, 1000, "settle", ~kLow, static_cast<int>(second.generation));
  // The first one settles up to now; the second one rests.
  admin_->run("UPDATE outbox.settlement SET at = at - interval '2 hours'");
  append(subscription, 300, "settle", kLow, static_cast<int>(first.generation));
  EXPECT_GT(prune({.keep = std::chrono::hours(1)}).rows, 1700);
  EXPECT_LT(count("settlement WHERE generation = " + std::to_string(second.generation)), 210);
  EXPECT_EQ(
      count(
          "settlement WHERE kind = 'claim' AND generation IN (SELECT generation FROM outbox.lane)"),
      2);
  auto strands = store_->progress().value()->load(subscription, store::kAllLanes);
  EXPECT_TRUE(ok(strands));
}

// The claim of a relay that has lived for longer than history is kept stays, and what it settled
// first is gone.
TEST_F(PostgresRetentionRows, verify_finds_nothing_behind_a_claim_that_stays) {
  const auto subscription = subscribe("orders");
  LaneOwner relay(*store_, "relay");
  ASSERT_TRUE(relay.keep());
  for (int i = 0; i < 300; ++i) settle_on(subscription);
  EXPECT_GT(prune().rows, 90);
  EXPECT_EQ(count("settlement WHERE kind = 'claim'"), 1);
  EXPECT_EQ(Verifier::verify(database_->url(), "orders"), "");
  // A missing row is found unless retention removed it.
  admin_->run(
      "DELETE FROM outbox.settlement WHERE id = (SELECT max(id) - 1 FROM outbox.settlement)");
  EXPECT_THAT(Verifier::verify(database_->url(), "orders"),
              ::testing::HasSubstr("a settlement between is missing"));
}

TEST_F(PostgresRetentionRows, claims_go_also_where_nothing_was_settled) {
  const auto subscription = subscribe_and_empty();
  append(subscription, 3000, "claim");
  EXPECT_GT(prune().rows, 2500);
  EXPECT_TRUE(ok(store_->progress().value()->load(subscription, store::kAllLanes)));
}

TEST_F(PostgresRetentionRows, a_young_row_of_a_former_owner_keeps_what_shows_that_it_is_void) {
  const auto subscription = subscribe_and_empty();
  append(subscription, 250, "settle", -1, 1);
  write(subscription, "claim", -1, 2, "'3:3:', pg_current_snapshot(), NULL");
  append(subscription, 400, "settle", -1, 2);
  // The former owner settles once more.
  write(subscription, "settle", -1, 1, "'3:3:', pg_current_snapshot(), NULL");
  admin_->run(
      "UPDATE outbox.settlement SET at = at - interval '2 hours' WHERE id < (SELECT max(id) FROM outbox.settlement)");
  EXPECT_GT(prune({.keep = std::chrono::hours(1)}).rows, 200);
  EXPECT_EQ(count("settlement WHERE kind = 'claim'"), 1);
  (void)prune();
  EXPECT_EQ(count("settlement WHERE kind = 'claim'"), 0);
}

// The relay's settlement got its id before the claim, and its transaction ended after the claim.
// Therefore its events come again under the claim.
TEST_F(PostgresRetentionRows, what_a_claim_did_not_see_is_not_counted) {
  const auto subscription = subscribe("orders");
  const std::string before = value("SELECT pg_current_snapshot()");
  (void)enqueue();
  close_partition();
  const std::string settlement =
      "INSERT INTO outbox.settlement (subscription, kind, lanes, generation, l, s1, s2, acked) VALUES (" +
      std::to_string(subscription) + ", 'settle', -1, ";
  admin_->run(settlement + "1, 0, '" + before + "', pg_current_snapshot(), 1)");
  write(subscription, "claim", -1, 2, "'" + before + "', NULL, NULL");
  admin_->run(settlement + "2, 0, '" + before + "', pg_current_snapshot(), 1)");
  append(subscription, 300, "settle", -1, 3);
  EXPECT_EQ(prune().events, 1);
  EXPECT_EQ(count("settlement WHERE generation < 3 AND kind = 'settle'"), 0);
  EXPECT_EQ(value("SELECT sum(acked) FROM outbox.pruned"), "1");
}

TEST_F(PostgresRetentionRows, the_newest_row_of_retries_has_their_total_and_stays) {
  const auto subscription = subscribe_and_empty();
  for (int n = 1; n <= 3; ++n) {
    admin_->run(
        "INSERT INTO outbox.settlement (subscription, kind, lanes, generation, acked, acked_total) VALUES (" +
        std::to_string(subscription) + ", 'retry', 0, 0, 1, " + std::to_string(n) + ")");
  }
  (void)prune();
  EXPECT_EQ(count("settlement WHERE kind = 'retry'"), 1);
  EXPECT_EQ(value("SELECT acked_total FROM outbox.settlement WHERE kind = 'retry'"), "3");
}

TEST_F(PostgresRetentionRows, ends_of_parked_events_go_with_the_event_and_are_counted) {
  const auto subscription = subscribe_and_empty();
  (void)enqueue();
  admin_->run(
      "INSERT INTO outbox.parked_end (subscription, seq, id, outcome, attempts) SELECT " +
      std::to_string(subscription) +
      ", n, gen_random_uuid(), CASE WHEN n % 2 = 0 THEN 'discarded' ELSE 'delivered' END, 1 "
      "FROM generate_series((SELECT max(seq) FROM outbox.event) - 10, (SELECT max(seq) FROM outbox.event)) n");
  EXPECT_EQ(prune({.keep = std::chrono::hours(1)}).rows, 0);
  (void)prune();
  EXPECT_EQ(count("parked_end"), 1);
  EXPECT_EQ(value("SELECT sum(delivered) + sum(discarded) FROM outbox.pruned"), "10");
}

TEST_F(PostgresRetentionRows, parked_events_outlive_the_log) {
  const auto subscription = subscribe("orders");
  const std::string id = enqueue();
  LaneOwner relay(*store_, "relay");
  const std::int64_t generation = relay.keep().value().generation;
  admin_->run(
      "SELECT outbox.park_events(" + std::to_string(subscription) + ", " +
      std::to_string(generation) +
      ", ARRAY(SELECT seq FROM outbox.event), '{dead}', '{1}', '{0}', '{refused}', '{NULL}', ARRAY(SELECT seq FROM outbox.event))");
  close_partition();
  settle(subscription, -1, static_cast<int>(generation));
  EXPECT_EQ(prune().events, 1);
  const auto parked = store_->parked_events().value()->list({}, 10, true).value();
  ASSERT_EQ(parked.size(), 1U);
  EXPECT_EQ(parked[0].id.str(), id);
  EXPECT_EQ(parked[0].payload, "{}");
}

}  // namespace
}  // namespace outbox::test
