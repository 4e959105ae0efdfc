// Transaction ids and snapshots of another database mean nothing here: a copy is refused, with the repair named.
#include <fstream>
#include <sstream>

#include "integration/postgres/harness.hpp"
#include "integration/relay/harness.hpp"
#include "support/own_postgres.hpp"
#include "support/testkit.hpp"

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
  void run(std::vector<std::string> command) const {
    command[0] = *environment("OUTBOX_TEST_PGBIN") + "/" + command[0];
    ChildProcess process({.command = std::move(command), .output = folder_.file("output")});
    ASSERT_EQ(process.wait(), 0);
  }
  void dump(const std::string& url) const {
    run({"pg_dump", "--no-owner", "--file=" + folder_.file("dump"), url});
  }
  void restore_to(const std::string& url, bool one_transaction = false) const {
    std::vector<std::string> command{"psql", "-X", "-q", "-v", "ON_ERROR_STOP=1"};
    if (one_transaction) command.emplace_back("--single-transaction");
    command.insert(command.end(), {"-f", folder_.file("dump"), url});
    run(std::move(command));
  }
  void copy_to(const std::string& url) const {
    dump(database_->url());
    restore_to(url);
  }
  static void make_roles(const OwnPostgres& server) {
    for (const char* role : {"outbox_owner", "outbox_app", "outbox_relay", "outbox_reader"})
      (void)Pg(server.url()).exec(std::string("CREATE ROLE ") + role);
  }
  static void expect_refused(const std::string& url) {
    const Status status = open_at(url)->check();
    ASSERT_FALSE(status) << "a copy was accepted";
    EXPECT_EQ(status.error().code, Errc::corrupt);
    EXPECT_THAT(status.error().message, HasSubstr("of another database"));
    EXPECT_THAT(status.error().hint, HasSubstr("outbox migrate"));
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

std::int64_t next_xid(Pg& connection) {
  return std::stoll(connection.value("SELECT pg_snapshot_xmax(pg_current_snapshot())"));
}

/// Uses up transaction ids until this one is next.
void advance(Pg& connection, std::int64_t xid) {
  const std::int64_t count = xid - next_xid(connection);
  ASSERT_GE(count, 0);
  (void)connection.exec("DO $$ BEGIN FOR i IN 1.." + std::to_string(count) +
                        " LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$");
  ASSERT_EQ(next_xid(connection), xid);
}

/// A column of one of the two rows.
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

/// The SQL of docs/guide/operations.md, verbatim.
std::string repair_of_the_guide() {
  std::ifstream file(OUTBOX_OPERATIONS_PAGE);
  std::stringstream page;
  page << file.rdbuf();
  const std::string text = page.str();
  const auto from = text.find("   BEGIN;\n   SELECT setval('outbox.event_seq'");
  const auto to = text.find("   COMMIT;\n", from);
  if (from == std::string::npos || to == std::string::npos) return {};
  return text.substr(from, to - from) + "COMMIT;\n";
}

TEST_F(PostgresLineage, the_guides_repair_of_a_copy_delivers_what_was_pending) {
  RelayOptions options;
  options.store_url = database_->url();
  ASSERT_TRUE(relay_of(options)->run_once(std::chrono::seconds(60)));
  for (const char* key : {"1", "2", "1"}) {
    (void)connect().exec("SELECT outbox.enqueue('order', $1, 'B', '{}')", {key});
  }
  const PostgresDatabase copy(PostgresDatabase::Schema::empty);
  copy_to(copy.url());
  (void)copy.connect().exec("ALTER SCHEMA outbox RENAME TO outbox_copy");
  ASSERT_TRUE(ok(open_at(copy.url())->migrate()));
  options.store_url = copy.url();
  options.subscriptions = {custom("mails")};
  ASSERT_TRUE(ok((*open_at(copy.url())->catalog())->apply(options.subscriptions[0])));

  const std::string repair = repair_of_the_guide();
  ASSERT_FALSE(repair.empty());
  std::ofstream(folder_.file("repair.sql")) << repair;
  run({"psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", folder_.file("repair.sql"), copy.url()});

  const auto relay = relay_of(options);
  const auto mails = record(*relay, "mails");
  ASSERT_TRUE(relay->run_once(std::chrono::seconds(60)));
  std::string ids;
  for (const auto& event : mails->events()) ids += event.id.str() + ' ';
  EXPECT_EQ(ids, value("SELECT string_agg(id || ' ', '' ORDER BY seq) FROM outbox.event "
                       "WHERE event_type = 'B'"));
  EXPECT_EQ(mails->events().size(), 3U);
  EXPECT_EQ(copy.connect().value("SELECT count(*) FROM outbox.event "
                                 "WHERE lane <> outbox.lane_of(aggregate_type, aggregate_id, id)"),
            "0");
}

TEST_F(PostgresLineage, vacuum_and_freeze_change_nothing) {
  Pg connection(database_->url());
  (void)connection.exec("VACUUM FREEZE outbox.witness");
  (void)connection.exec("VACUUM FULL outbox.witness");
  EXPECT_TRUE(ok(store_->check()));
}

TEST_F(PostgresLineage, a_database_made_with_this_one_as_template_is_the_same_lineage) {
  // CREATE DATABASE .. TEMPLATE copies files: transaction ids stay what they are.
  const std::string name = database_->name() + "_twin";
  Pg admin(*environment("OUTBOX_TEST_POSTGRES"));
  store_.reset();
  ASSERT_TRUE(eventually([&] {
    return state_of(admin,
                    "CREATE DATABASE \"" + name + "\" TEMPLATE \"" + database_->name() + "\"")
        .empty();
  }));
  EXPECT_TRUE(ok(open_at(url_of_database(*environment("OUTBOX_TEST_POSTGRES"), name))->check()));
  EXPECT_TRUE(eventually(
      [&] { return state_of(admin, "DROP DATABASE \"" + name + "\" WITH (FORCE)").empty(); }));
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
