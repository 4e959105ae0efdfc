// Tests that a copy is refused, and that the error names the repair: transaction ids and snapshots
// of another database mean nothing here.
#include "integration/postgres/lineage_fixture.hpp"
#include "support/eventually.hpp"

namespace outbox::test {
namespace {

using ::testing::HasSubstr;

class PostgresLineage : public PostgresTest {
 protected:
  void SetUp() override {
    OUTBOX_NEEDS_PGBIN();
    PostgresTest::SetUp();
    if (IsSkipped()) return;
    (void)connect().exec("SELECT outbox.enqueue('order', '1', 'A', '{}')");
    ASSERT_TRUE(ok((*store_->catalog())->apply({.name = "mails", .sink = "null"})));
  }
  void dump(const std::string& url) const { dump_to(folder_.file("dump"), url); }
  void restore_to(const std::string& url, bool one_transaction = false) const {
    restore_from(folder_.file("dump"), url, one_transaction);
  }
  void copy_to(const std::string& url) const {
    dump(database_->url());
    restore_to(url);
  }
  static void expect_refused(const std::string& url) {
    const Status status = open_at(url)->check();
    ASSERT_FALSE(status) << "a copy was accepted";
    EXPECT_EQ(status.error().code, Errc::corrupt);
    EXPECT_THAT(status.error().message, HasSubstr("of another database"));
    EXPECT_THAT(status.error().hint, HasSubstr("outbox doctor --repair-lineage"));
  }

  const TempDir folder_;
};

TEST_F(PostgresLineage, a_copy_in_another_database_of_the_cluster) {
  const PostgresDatabase copy(PostgresDatabase::Schema::empty);
  copy_to(copy.url());
  expect_refused(copy.url());
  EXPECT_TRUE(ok(store_->check())) << "the original must not suffer";
}

TEST_F(PostgresLineage, a_copy_in_another_cluster) {
  const OwnPostgres other;
  make_roles(other);
  copy_to(other.url());
  expect_refused(other.url());
}

/// The column of one of the two rows of `witness`.
std::int64_t witness(Pg& connection, const std::string& column, int row) {
  return std::stoll(connection.value("SELECT " + column +
                                     " FROM outbox.witness ORDER BY x OFFSET " +
                                     std::to_string(row) + " LIMIT 1"));
}

TEST_F(PostgresLineage, a_copy_whose_witness_got_the_original_transaction_id_by_chance) {
  const std::vector<std::string> undisturbed{"autovacuum = off"};
  const OwnPostgres original(undisturbed);
  Pg there(original.url());
  advance(there, next_xid(there) + 3000);
  ASSERT_TRUE(ok(open_at(original.url())->migrate()));
  dump(original.url());
  for (const bool one_transaction : {true, false}) {
    for (const int row : {0, 1}) {
      const OwnPostgres other(undisturbed);
      make_roles(other);
      Pg here(other.url());
      const PostgresDatabase trial(other.url(), PostgresDatabase::Schema::empty);
      const PostgresDatabase copy(other.url(), PostgresDatabase::Schema::empty);
      const std::int64_t began = next_xid(here);
      restore_to(trial.url(), one_transaction);
      Pg tried = trial.connect();
      const std::int64_t ids_before = witness(tried, "xmin", row) - began;
      advance(here, witness(there, "x", row) - ids_before);
      restore_to(copy.url(), one_transaction);
      Pg copied = copy.connect();
      EXPECT_EQ(witness(copied, "xmin", row), witness(copied, "x", row))
          << "no coincidence: this proves nothing";
      expect_refused(copy.url());
    }
  }
}

TEST_F(PostgresLineage, vacuum_and_freeze_change_nothing) {
  Pg connection(database_->url());
  (void)connection.exec("VACUUM FREEZE outbox.witness");
  (void)connection.exec("VACUUM FULL outbox.witness");
  EXPECT_TRUE(ok(store_->check()));
}

TEST_F(PostgresLineage, a_database_made_with_this_one_as_template_is_the_same_lineage) {
  // CREATE DATABASE .. TEMPLATE copies files, so that transaction ids stay what they are.
  const std::string name = database_->name() + "_twin";
  Pg admin(*environment("OUTBOX_TEST_POSTGRES"));
  store_.reset();
  ASSERT_TRUE(eventually([&] {
    return find_sqlstate(admin,
                         "CREATE DATABASE \"" + name + "\" TEMPLATE \"" + database_->name() + "\"")
        .empty();
  }));
  EXPECT_TRUE(ok(open_at(url_of_database(*environment("OUTBOX_TEST_POSTGRES"), name))->check()));
  EXPECT_TRUE(eventually(
      [&] { return find_sqlstate(admin, "DROP DATABASE \"" + name + "\" WITH (FORCE)").empty(); }));
}

TEST_F(PostgresLineage, a_missing_witness_is_no_witness) {
  (void)connect().exec("DELETE FROM outbox.witness");
  expect_refused(database_->url());
}

TEST_F(PostgresLineage, events_from_the_future_are_foreign) {
  (void)connect().exec(
      "INSERT INTO outbox.event (xid, lane, id, aggregate_type, aggregate_id, event_type, payload, headers) "
      "VALUES ((pg_snapshot_xmax(pg_current_snapshot())::text::bigint + 1000000)::text::xid8, 0, gen_random_uuid(), "
      "'a', '', 'b', 'c', '{}')");
  expect_refused(database_->url());
}

}  // namespace
}  // namespace outbox::test
