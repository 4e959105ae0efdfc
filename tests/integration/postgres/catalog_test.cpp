// Tests subscriptions, their progress and their state.
#include <atomic>
#include <thread>

#include "integration/postgres/harness.hpp"
#include "store/postgres/queries.hpp"
#include "support/eventually.hpp"
#include "support/lane_owner.hpp"

namespace outbox::test {
namespace {

class PostgresCatalog : public PostgresTest {
 protected:
  void SetUp() override {
    PostgresTest::SetUp();
    if (IsSkipped()) return;
    auto catalog = store_->catalog();
    ASSERT_TRUE(ok(catalog));
    catalog_ = std::move(*catalog);
  }
  void enqueue(int count) const {
    (void)connect().exec("SELECT outbox.enqueue('a', i::text, 'E', '1') FROM generate_series(1, " +
                         std::to_string(count) + ") i");
  }
  [[nodiscard]] store::SubscriptionProgress progress(std::int64_t limit = 1000) {
    auto rows = catalog_->subscriptions();
    EXPECT_TRUE(ok(rows));
    auto progress = catalog_->progress(rows->front(), limit);
    EXPECT_TRUE(ok(progress));
    if (!progress) return {};
    EXPECT_TRUE(ok(catalog_->add_totals(*progress)));
    return *progress;
  }
  /// Writes a settlement as the relay would.
  void settle(const std::string& s1, const std::string& s2,
              std::optional<std::int64_t> position) const {
    auto progress = store_->progress();
    ASSERT_TRUE(ok(progress));
    store::Settlement row;
    row.subscription = 1;
    row.generation = 1;
    row.config_version = 1;
    row.s1 = s1;
    row.s2 = s2;
    row.position = position;
    row.bound = 11;
    row.acked = {.count = 3, .hash = 1};
    row.filtered = {.count = 2, .hash = 1};
    ASSERT_TRUE(
        ok((*progress)->append({.settlements = std::span(&row, 1)}, store::Durability::eventual)));
  }

  std::unique_ptr<store::Catalog> catalog_;
};

TEST_F(PostgresCatalog, has_the_connection_that_checked_the_store) {
  catalog_.reset();
  const auto store = open_at(database_->url());
  const std::string sessions =
      "SELECT coalesce(string_agg(pid::text, ' '), 'none') FROM pg_stat_activity "
      "WHERE datname = current_database() AND application_name = 'outbox catalog'";
  Pg here = connect();
  // The end of a session takes a while.
  ASSERT_TRUE(eventually([&] { return here.value(sessions) == "none"; }));
  ASSERT_TRUE(ok(store->check()));
  const std::string checked = here.value(sessions);
  EXPECT_NE(checked, "none");
  const auto catalog = store->catalog();
  ASSERT_TRUE(ok(catalog));
  EXPECT_EQ(here.value(sessions), checked);
  ASSERT_TRUE(ok((*catalog)->subscriptions()));
  const auto another = store->catalog();
  ASSERT_TRUE(ok(another)) << "the first one is in use";
  EXPECT_NE(here.value(sessions), checked);
}

TEST_F(PostgresCatalog, two_that_create_at_once_make_one) {
  std::atomic<int> changed{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 6; ++i) {
      threads.emplace_back([&] {
        auto catalog = store_->catalog();
        const SubscriptionSpec mails{.name = "mails", .sink = "null"};
        auto done = (*catalog)->apply(mails);
        // If the first one is slow to commit, the others give up waiting for it.
        while (!done && done.error().remedy == Remedy::retry_transaction)
          done = (*catalog)->apply(mails);
        EXPECT_TRUE(ok(done));
        changed += done && *done ? 1 : 0;
      });
    }
  }
  EXPECT_EQ(changed, 1);
  EXPECT_EQ(value("SELECT count(*) FROM outbox.settlement WHERE kind = 'reset'"), "1");
}

TEST_F(PostgresCatalog, pending_counts_from_the_beginning_and_up_to_the_limit) {
  enqueue(30);
  ASSERT_TRUE(ok(catalog_->apply({.name = "mails", .sink = "null"})));
  EXPECT_EQ(progress().pending, 30);
  EXPECT_FALSE(progress().pending_capped);
  EXPECT_NE(progress().oldest_pending_at, "");
  EXPECT_EQ(progress(10).pending, 10);
  EXPECT_TRUE(progress(10).pending_capped);
}

TEST_F(PostgresCatalog, pending_from_now_on_includes_who_was_in_flight) {
  enqueue(5);
  Pg writer(database_->url());
  (void)writer.exec("BEGIN; SELECT outbox.enqueue('a', 'late', 'E', '1')");
  ASSERT_TRUE(ok(catalog_->apply({.name = "mails", .sink = "null", .start = Start::now})));
  EXPECT_EQ(progress().pending, 0);
  EXPECT_EQ(progress().oldest_pending_at, "");
  (void)writer.exec("COMMIT");
  EXPECT_EQ(progress().pending, 1);
  enqueue(2);
  EXPECT_EQ(progress().pending, 3);
}

TEST_F(PostgresCatalog, a_start_now_has_a_mark_below_it) {
  // Without a mark the first fetch would search the whole current partition for late events.
  (void)connect().exec("SELECT outbox.enqueue('a', '', 'E', '1') FROM generate_series(1, 1000)");
  const SubscriptionSpec spec{.name = "mails", .sink = "null", .start = Start::now};
  ASSERT_TRUE(ok(catalog_->apply(spec)));
  EXPECT_EQ(
      value("SELECT max(m.l) FROM outbox.settlement m, outbox.settlement first "
            "WHERE first.kind = 'reset' AND m.kind = 'mark' AND m.w < pg_snapshot_xmax(first.s1)"),
      "1000");
  ASSERT_TRUE(ok(catalog_->apply(spec)));
  EXPECT_EQ(value("SELECT count(*) FROM outbox.settlement"), "2") << "once is enough";
}

TEST_F(PostgresCatalog, pending_in_the_middle_of_a_pair) {
  ASSERT_TRUE(ok(catalog_->apply({.name = "mails", .sink = "null"})));
  Pg late(database_->url());
  (void)late.exec("BEGIN; SELECT outbox.enqueue('a', 'late', 'E', '1')");  // seq 1, in flight in s2
  enqueue(10);                                                             // seq 2 to 11
  const std::string s2 = value("SELECT pg_current_snapshot()");
  settle("3:3:", s2, 5);
  EXPECT_EQ(progress().pending, 6);
  (void)late.exec("COMMIT");
  EXPECT_EQ(progress().pending, 7);
  enqueue(3);
  EXPECT_EQ(progress().pending, 10);
  settle("3:3:", s2, std::nullopt);
  EXPECT_EQ(progress().pending, 4);
  EXPECT_EQ(progress().acked, 6);
  EXPECT_EQ(progress().filtered, 4);
  EXPECT_EQ(progress().generation, 1);
  EXPECT_THAT(progress().last_settled_at, ::testing::MatchesRegex("....-..-..T..:..:......Z"));
}

TEST_F(PostgresCatalog, totals_and_marks_are_read_without_a_walk_over_settlements_and_claims) {
  ASSERT_TRUE(ok(catalog_->apply({.name = "mails", .sink = "null"})));
  Pg admin(database_->url());
  const std::string many =
      "INSERT INTO outbox.settlement (subscription, kind, lanes, generation, s1, s2, l, acked_total, filtered_total) "
      "SELECT 1, 'settle', -1, 1, '3:3:', '3:3:', i, i, 0 FROM generate_series(1, 5000) i; "
      "INSERT INTO outbox.settlement (subscription, kind, lanes, generation, s1, s2, acked_total, filtered_total) "
      "SELECT 1, 'claim', -1, 1 + i, '3:3:', '3:3:', 5000, 0 FROM generate_series(1, 5000) i";
  (void)admin.exec(many);
  const store::postgres::Queries queries("outbox");
  (void)admin.exec("BEGIN; " + queries.plan_settings.sql);
  (void)admin.exec("PREPARE cursors AS " + queries.cursors.sql);
  (void)admin.exec("PREPARE standing AS " + queries.standing.sql);
  (void)admin.exec("PREPARE last AS " + queries.last.sql);
  (void)admin.exec("PREPARE marks AS " + queries.marks.sql);
  for (const char* call : {"cursors(1, -1)", "standing(1)", "last(1)", "marks"}) {
    std::string plan;
    for (const auto& row :
         admin.exec(std::string("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) EXECUTE ") + call))
      plan += *row[0] + "\n";
    EXPECT_THAT(plan, ::testing::Not(::testing::HasSubstr("Seq Scan on settlement"))) << plan;
    EXPECT_THAT(plan, ::testing::Not(::testing::HasSubstr("rows=5000"))) << plan;
    EXPECT_THAT(plan, ::testing::Not(::testing::HasSubstr("Removed by Filter: 5000"))) << plan;
  }
  (void)admin.exec("COMMIT");
  EXPECT_EQ(progress().acked, 5000);
}

TEST_F(PostgresCatalog, a_settlement_finds_the_row_it_continues_by_index) {
  ASSERT_TRUE(ok(catalog_->apply({.name = "mails", .sink = "null"})));
  Pg admin(database_->url());
  const store::postgres::Queries queries("outbox");
  (void)admin.exec("BEGIN");
  (void)admin.exec(queries.settle_settings.sql, {"off"});
  (void)admin.exec("PREPARE append AS " + queries.append.sql);
  std::string plan;
  for (const auto& row : admin.exec(
           "EXPLAIN (COSTS OFF) EXECUTE append(1, 'settle', -1, 1, 1, '3:3:', '3:3:', 0, NULL, 7, "
           "1, 1, 0, 0, 0, 0, NULL)"))
    plan += *row[0] + "\n";
  EXPECT_THAT(plan, ::testing::HasSubstr("Index Scan Backward using settlement_newest")) << plan;
  EXPECT_THAT(plan, ::testing::Not(::testing::HasSubstr("Sort"))) << plan;
}

TEST_F(PostgresCatalog, pending_is_counted_by_index_also_where_nothing_was_ever_analysed) {
  Pg admin(database_->url());
  (void)admin.exec(
      "INSERT INTO outbox.event (xid, lane, id, aggregate_type, aggregate_id, event_type, payload, headers) "
      "SELECT (pg_snapshot_xmin(pg_current_snapshot())::text::bigint - i % 50)::text::xid8, i % 64, gen_random_uuid(), "
      "'a', '', 'b', 'c', '{}' "
      "FROM generate_series(1, 20000) i");
  const store::postgres::Queries queries("outbox");
  (void)admin.exec("BEGIN; " + queries.plan_settings.sql);
  (void)admin.exec("PREPARE drained AS " + queries.pending_drained.sql);
  (void)admin.exec("PREPARE begun AS " + queries.pending_begun.sql);
  for (const char* call : {"drained('3', '{}', -1, 100)", "drained('3', '{5,6}', -1, 100)",
                           "begun('3:3:', '3', -1, 100, 7, '3', '{5,6}')"}) {
    std::string plan;
    for (const auto& row :
         admin.exec(std::string("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) EXECUTE ") + call))
      plan += *row[0] + "\n";
    EXPECT_THAT(plan, ::testing::Not(::testing::HasSubstr("Seq Scan"))) << call;
    EXPECT_THAT(plan, ::testing::Not(::testing::HasSubstr("->  Sort"))) << call;
    EXPECT_THAT(plan, ::testing::Not(::testing::HasSubstr("rows=20000")))
        << call << ": more than the limit was read\n"
        << plan;
  }
}

TEST_F(PostgresCatalog, a_settlement_that_no_relay_wrote_is_an_error) {
  ASSERT_TRUE(ok(catalog_->apply({.name = "mails", .sink = "null"})));
  const std::string row =
      "INSERT INTO outbox.settlement (subscription, kind, lanes, generation, s1, s2, position, l) "
      "VALUES (1, 'settle', -1, 1, '3:3:', '10:10:', 5, NULL)";
  Pg admin(database_->url());
  EXPECT_EQ(find_sqlstate(admin, row), "23514");
  (void)admin.exec("ALTER TABLE outbox.settlement DROP CONSTRAINT settlement_check1");
  (void)admin.exec(row);
  auto shown = catalog_->progress(catalog_->subscriptions()->front(), 10);
  ASSERT_FALSE(shown);
  EXPECT_EQ(shown.error().code, Errc::corrupt);
  auto progress = store_->progress();
  ASSERT_TRUE(ok(progress));
  auto strands = (*progress)->load(1, store::kAllLanes);
  ASSERT_FALSE(strands);
  EXPECT_EQ(strands.error().code, Errc::corrupt);
}

TEST_F(PostgresCatalog, telling_trouble_does_not_wait_for_a_person_who_holds_the_row) {
  ASSERT_TRUE(ok(catalog_->apply({.name = "mails", .sink = "null"})));
  const std::int32_t id = catalog_->subscriptions()->front().id;
  LaneOwner relay(*store_, "relay");
  const std::int64_t generation = relay.keep().value().generation;
  Pg person(database_->url());
  (void)person.exec("BEGIN");
  (void)person.exec("UPDATE outbox.subscription SET reason = 'looking' WHERE name = 'mails'");
  // If the statement waited, the relay's tenure loop would hang here until the transaction is over.
  ASSERT_TRUE(ok(catalog_->report_trouble(id, generation, "no broker answers", relay.id())));
  EXPECT_EQ(catalog_->subscriptions()->front().trouble, "");
  (void)person.exec("COMMIT");
  ASSERT_TRUE(ok(catalog_->report_trouble(id, generation, "no broker answers", relay.id())));
  EXPECT_EQ(catalog_->subscriptions()->front().trouble, "no broker answers");
}

TEST_F(PostgresCatalog, a_config_that_this_version_cannot_read_stands_still) {
  (void)connect().exec(
      R"(INSERT INTO outbox.subscription (name, config, lane_group) VALUES ('odd', '{"sink": 7}', 'default'))");
  ASSERT_TRUE(ok(catalog_->apply({.name = "mails", .sink = "null"})));
  auto rows = catalog_->subscriptions();
  ASSERT_TRUE(ok(rows));
  ASSERT_EQ(rows->size(), 2U);
  EXPECT_EQ((*rows)[1].spec.name, "odd");
  EXPECT_EQ((*rows)[1].state, store::SubscriptionState::stopped);
  EXPECT_NE((*rows)[1].reason, "");
}

}  // namespace
}  // namespace outbox::test
