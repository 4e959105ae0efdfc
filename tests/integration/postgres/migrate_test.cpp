// Bringing the schema there, and refusing one that is not what this program needs.
#include <thread>

#include "integration/postgres/harness.hpp"
#include "support/child_process.hpp"

namespace outbox::test {
namespace {

using ::testing::HasSubstr;

class PostgresMigrate : public ::testing::Test {
 protected:
  void SetUp() override {
    OUTBOX_NEEDS_POSTGRES();
    database_ = std::make_unique<PostgresDatabase>(PostgresDatabase::Schema::empty);
    store_ = open_at(database_->url());
  }
  std::unique_ptr<PostgresDatabase> database_;
  std::unique_ptr<store::Store> store_;
};

TEST_F(PostgresMigrate, twice_changes_nothing) {
  auto first = store_->migrate();
  ASSERT_TRUE(ok(first));
  EXPECT_THAT(*first, ::testing::ElementsAre("0001_init"));
  auto second = store_->migrate();
  ASSERT_TRUE(ok(second));
  EXPECT_THAT(*second, ::testing::IsEmpty());
  EXPECT_TRUE(ok(store_->check()));
}

/// The other half of two_processes_at_once: runs in processes of its own.
TEST(PostgresMigrateChild, DISABLED_migrates) {  // NOLINT(readability-identifier-naming)
  auto applied = open_at(*environment("OUTBOX_TEST_CHILD_URL"))->migrate();
  ASSERT_TRUE(ok(applied));
}

TEST_F(PostgresMigrate, two_processes_at_once) {
  std::vector<std::unique_ptr<ChildProcess>> children;
  for (int i = 0; i < 4; ++i) {
    children.push_back(std::make_unique<ChildProcess>(
        ChildProcess::Options{.command = {"/proc/self/exe", "--gtest_filter=*DISABLED_migrates",
                                          "--gtest_also_run_disabled_tests"},
                              .environment = {{"OUTBOX_TEST_CHILD_URL", database_->url()}}}));
  }
  for (const auto& child : children) EXPECT_EQ(child->wait(), 0);
  EXPECT_TRUE(ok(store_->check()));
  EXPECT_EQ(database_->connect().value("SELECT count(*) FROM outbox.migration"), "1");
}

TEST_F(PostgresMigrate, no_schema_names_the_command) {
  const Status status = store_->check();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Errc::not_found);
  EXPECT_THAT(status.error().hint, HasSubstr("outbox migrate"));
  auto state = store_->schema_state();
  ASSERT_TRUE(ok(state));
  EXPECT_EQ(state->version, 0);
}

TEST_F(PostgresMigrate, a_newer_schema_is_refused) {
  ASSERT_TRUE(ok(store_->migrate()));
  (void)database_->connect().exec(
      "INSERT INTO outbox.migration (version, name, checksum) VALUES (99, '0099_later', 'x')");
  const Status status = store_->check();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Errc::unsupported);
  EXPECT_THAT(status.error().text(), HasSubstr("use a newer outbox"));
  EXPECT_FALSE(store_->migrate());
}

TEST_F(PostgresMigrate, an_edited_migration_is_refused) {
  ASSERT_TRUE(ok(store_->migrate()));
  (void)database_->connect().exec("UPDATE outbox.migration SET checksum = 'x'");
  auto migrated = store_->migrate();
  ASSERT_FALSE(migrated);
  EXPECT_THAT(migrated.error().message, HasSubstr("0001_init differs"));
}

TEST_F(PostgresMigrate, a_schema_of_any_name_and_several_in_one_database) {
  for (const std::string& name :
       {std::string("Order"), std::string(63, 'x'), std::string("outbox")}) {
    const auto store = open_at(database_->url(), name);
    ASSERT_TRUE(ok(store->migrate())) << name;
    EXPECT_TRUE(ok(store->check())) << name;
  }
}

TEST_F(PostgresMigrate, a_schema_that_is_no_name_is_refused) {
  auto store = store::open_store({.url = database_->url(), .schema = "a b"});
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().code, Errc::invalid_argument);
}

TEST_F(PostgresMigrate, the_printed_script_does_the_same) {
  auto script = store::print_migrations({.url = database_->url()});
  ASSERT_TRUE(ok(script));
  (void)database_->connect().exec(*script);
  EXPECT_TRUE(ok(store_->check()));
  auto applied = store_->migrate();
  ASSERT_TRUE(ok(applied));
  EXPECT_THAT(*applied, ::testing::IsEmpty());
}

TEST_F(PostgresMigrate, a_cached_sequence_or_a_missing_index_is_refused) {
  ASSERT_TRUE(ok(store_->migrate()));
  Pg connection(database_->url());
  (void)connection.exec("ALTER SEQUENCE outbox.event_seq CACHE 10");
  EXPECT_THAT(store_->check().error().text(), HasSubstr("CACHE 1"));
  (void)connection.exec("ALTER SEQUENCE outbox.event_seq CACHE 1");
  EXPECT_TRUE(ok(store_->check()));
  (void)connection.exec("DROP INDEX outbox.event_by_xid");
  EXPECT_THAT(store_->check().error().text(), HasSubstr("event_by_xid"));
}

TEST_F(PostgresMigrate, an_unreachable_server_is_one_line) {
  const Status status = open_at("postgresql://127.0.0.1:1/shop")->check();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Errc::unavailable);
  EXPECT_EQ(status.error().text().find('\n'), std::string::npos);
}

TEST_F(PostgresMigrate, by_a_user_without_rights_over_roles) {
  Pg admin(database_->url());
  const std::string user = database_->name() + "_user";
  (void)admin.exec("CREATE ROLE \"" + user + "\" LOGIN; GRANT CREATE ON DATABASE \"" +
                   database_->name() + "\" TO \"" + user + "\"");
  std::string url = database_->url();
  url.replace(url.find("postgres@"), 9, user + "@");
  const auto store = open_at(url);
  EXPECT_TRUE(ok(store->migrate()));
  EXPECT_TRUE(ok(store->check()));
  EXPECT_EQ(admin.value("SELECT nspowner::regrole = '\"" + user +
                        "\"'::regrole FROM pg_namespace WHERE nspname = 'outbox'"),
            "t");
  auto maintenance = store->maintenance();
  ASSERT_TRUE(ok(maintenance));
  EXPECT_TRUE(ok((*maintenance)->run()));
  (void)admin.exec("DROP OWNED BY \"" + user + "\" CASCADE; DROP ROLE \"" + user + "\"");
}

}  // namespace
}  // namespace outbox::test
