// Tests migrating, and that a schema which this program cannot use is refused.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <thread>

#include "integration/postgres/harness.hpp"
#include "support/eventually.hpp"
#include "support/lane_owner.hpp"
#include "support/own_postgres.hpp"

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
  EXPECT_THAT(*first, ::testing::ElementsAre("0001_init", "0002_second_witness", "0003_enqueue",
                                             "0004_parking", "0005_status", "0006_retention",
                                             "0007_replay", "0008_tasks", "0009_subscriptions",
                                             "0010_adopt", "0011_console"));
  auto second = store_->migrate();
  ASSERT_TRUE(ok(second));
  EXPECT_THAT(*second, ::testing::IsEmpty());
  EXPECT_TRUE(ok(store_->check()));
}

TEST_F(PostgresMigrate, a_schema_that_somebody_made_before_is_as_good) {
  Pg admin = database_->connect();
  (void)admin.exec("CREATE SCHEMA outbox");
  ASSERT_TRUE(ok(store_->migrate()));
  for (const char* role : {"outbox_app", "outbox_relay", "outbox_reader"}) {
    EXPECT_EQ(admin.value("SELECT has_schema_privilege($1, 'outbox', 'USAGE')", role), "t") << role;
  }
}

TEST_F(PostgresMigrate, processes_at_once) {
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    children.push_back(::fork());
    if (children.back() == 0) ::_exit(open_at(database_->url())->migrate() ? 0 : 1);
    ASSERT_GT(children.back(), 0);
  }
  for (const pid_t child : children) {
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_TRUE(ok(store_->check()));
  EXPECT_EQ(database_->connect().value("SELECT count(*) FROM outbox.migration"), "11");
}

/// What `migrate --print` prints up to a migration.
std::string printed_before(const std::string& url, const std::string& migration) {
  const std::string all = store::print_migrations({.url = url}).value();
  return all.substr(0, all.find("-- migration " + migration));
}

TEST_F(PostgresMigrate, while_it_waits_for_a_locked_table_others_do_not_wait_behind_it) {
  Pg admin(database_->url());
  admin.run(printed_before(database_->url(), "0004"));
  // A backup locks the table like this. The next migration adds a column to it.
  Pg backup(database_->url());
  backup.run("BEGIN; LOCK TABLE outbox.subscription IN ACCESS SHARE MODE");
  auto migrated = std::async(std::launch::async, [&] { return store_->migrate(); });
  const auto waits = [&] {
    return admin.value(
        "SELECT count(*) FROM pg_locks WHERE NOT granted AND mode = 'AccessExclusiveLock' AND "
        "database = (SELECT oid FROM pg_database WHERE datname = current_database())");
  };
  ASSERT_TRUE(eventually([&] { return waits() == "1"; }));
  // The reader gets behind the migration in the queue of the lock, and goes on although the backup
  // does not end; also the second time, when the migration tries again.
  Pg reader(database_->url());
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(eventually([&] { return waits() == "1"; }));
    EXPECT_EQ(reader.value("SELECT count(*) FROM outbox.subscription"), "0");
  }
  backup.run("COMMIT");
  auto done = migrated.get();
  ASSERT_TRUE(ok(done));
  EXPECT_EQ(done->front(), "0004_parking");
  EXPECT_TRUE(ok(store_->check()));
}

TEST_F(PostgresMigrate, beside_writers_of_the_version_before) {
  Pg admin(database_->url());
  admin.run(printed_before(database_->url(), "0009"));
  std::atomic<bool> stop{false};
  std::atomic<int> written{0};
  std::thread writer([&] {
    for (Pg application(database_->url()); !stop; ++written)
      application.run("SELECT outbox.enqueue('order', '1', 'Placed', '{}'::jsonb)");
  });
  EXPECT_TRUE(eventually([&] { return written > 20; }));
  EXPECT_TRUE(ok(store_->migrate()));
  const int then = written;
  EXPECT_TRUE(eventually([&] { return written > then + 20; }));
  stop = true;
  writer.join();
  EXPECT_EQ(admin.value("SELECT count(*) FROM outbox.event"), std::to_string(written.load()));
}

TEST(PostgresMigrateOnStandby, is_refused) {
  OUTBOX_NEEDS_PGBIN();
  const OwnPostgres primary;
  const auto standby = OwnPostgres::start_standby(primary.port());
  const auto migrated = open_at(standby->url())->migrate();
  ASSERT_FALSE(migrated);
  EXPECT_THAT(migrated.error().text(), HasSubstr("connect to the primary"));
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

/// Objects in a schema where every user may create. They fit the arguments better than the server's
/// own, and would run with the rights of the user who migrates, enqueues or delivers.
constexpr const char* kPlanted = R"(
CREATE FUNCTION public.trap() RETURNS void LANGUAGE plpgsql AS $$BEGIN RAISE EXCEPTION 'the planted one was called'; END$$;
CREATE FUNCTION public.hashtextextended(text, integer) RETURNS bigint LANGUAGE sql AS 'SELECT public.trap(); SELECT 1::bigint';
CREATE FUNCTION public.unnest(xid8[]) RETURNS SETOF xid8 LANGUAGE sql AS 'SELECT public.trap(); SELECT xid8 ''1''';
CREATE FUNCTION public.cardinality(xid8[]) RETURNS integer LANGUAGE sql AS 'SELECT public.trap(); SELECT 0';
CREATE FUNCTION public.convert_to(text, text) RETURNS bytea LANGUAGE sql AS 'SELECT public.trap(); SELECT ''x''::bytea';
CREATE FUNCTION public.band(bigint, integer) RETURNS bigint LANGUAGE sql AS 'SELECT public.trap(); SELECT 1::bigint';
CREATE OPERATOR public.& (LEFTARG = bigint, RIGHTARG = integer, FUNCTION = public.band);
CREATE FUNCTION public.shift(bigint, smallint) RETURNS bigint LANGUAGE sql AS 'SELECT public.trap(); SELECT 1::bigint';
CREATE OPERATOR public.>> (LEFTARG = bigint, RIGHTARG = smallint, FUNCTION = public.shift);
CREATE FUNCTION public.pg_column_size(jsonb) RETURNS integer LANGUAGE sql AS 'SELECT public.trap(); SELECT 1';
CREATE FUNCTION public.pg_column_compression(jsonb) RETURNS text LANGUAGE sql AS $$SELECT public.trap(); SELECT 'x'$$;
CREATE FUNCTION public.times(double precision, integer) RETURNS double precision LANGUAGE sql
  AS 'SELECT public.trap(); SELECT 1::double precision';
CREATE OPERATOR public.* (LEFTARG = double precision, RIGHTARG = integer, FUNCTION = public.times);
CREATE FUNCTION public.spans(bigint, interval) RETURNS interval LANGUAGE sql
  AS 'SELECT public.trap(); SELECT ''1 s''::interval';
CREATE OPERATOR public.* (LEFTARG = bigint, RIGHTARG = interval, FUNCTION = public.spans);
CREATE FUNCTION public.same(oid, regclass) RETURNS boolean LANGUAGE sql AS 'SELECT public.trap(); SELECT true';
CREATE OPERATOR public.= (LEFTARG = oid, RIGHTARG = regclass, FUNCTION = public.same);
CREATE FUNCTION public.same(oid, regnamespace) RETURNS boolean LANGUAGE sql AS 'SELECT public.trap(); SELECT true';
CREATE OPERATOR public.= (LEFTARG = oid, RIGHTARG = regnamespace, FUNCTION = public.same);
)";

TEST_F(PostgresMigrate, what_others_planted_in_the_search_path_is_never_called) {
  Pg connection(database_->url());
  (void)connection.exec(kPlanted);
  ASSERT_THAT(find_complaint(connection, "SELECT hashtextextended('x'::text, 0)"),
              HasSubstr("the planted one was called"));
  ASSERT_TRUE(ok(store_->migrate()));
  EXPECT_TRUE(ok(store_->check()));
  for (const auto& row : connection.exec("SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef "
                                         "WHERE adrelid = 'outbox.event'::regclass::oid"))
    EXPECT_THAT(*row[0], ::testing::Not(HasSubstr("public.")));
  // The test writes in every way.
  (void)connection.exec(
      R"(SELECT outbox.enqueue('a', '1', 'E', '{}'), outbox.enqueue('a', '1', 'E', '{}'::jsonb, lock_key => true))");
  (void)connection.exec(
      R"(SELECT outbox.enqueue_many('[{"aggregate_type": "a", "aggregate_id": "1", "event_type": "E", "payload": 1}]', true))");
  (void)connection.exec(
      "INSERT INTO outbox.new_event (aggregate_type, event_type, payload) VALUES ('a', 'E', '1')");
  Event event{.aggregate_type = "a", .aggregate_id = "1", .event_type = "E", .payload = "{}"};
  event.lock_key = true;
  auto writer = store_->writer();
  ASSERT_TRUE(ok(writer));
  EXPECT_TRUE(ok((*writer)->write(std::vector{event})));
  EXPECT_TRUE(ok((*writer)->write(std::vector{event, event})));
  // The test delivers, with and without transactions in progress in S1.
  auto catalog = store_->catalog();
  ASSERT_TRUE(ok(catalog));
  ASSERT_TRUE(ok((*catalog)->apply({.name = "mails", .sink = "null"})));
  EXPECT_TRUE(ok((*catalog)->progress((*catalog)->subscriptions()->front(), 100)));
  EXPECT_TRUE(ok((*catalog)->relays()));
  LaneOwner relay(*store_, "test");
  EXPECT_TRUE(ok(relay.keep(std::chrono::seconds(15))));
  auto reader = store_->reader();
  ASSERT_TRUE(ok(reader));
  ASSERT_TRUE(ok((*reader)->begin({})));
  for (const char* s1 : {"3:3:", "4:5:4"}) {
    ASSERT_TRUE(ok((*reader)->start({.cursor = {.s1 = s1}, .rows = 3})));
    auto page = (*reader)->finish();
    ASSERT_TRUE(ok(page));
    EXPECT_EQ(page->events.size(), 3U);
    ASSERT_TRUE(ok((*reader)->wait_durable()));
    ASSERT_TRUE(ok((*reader)->start({.cursor = {.s1 = s1,
                                                .s2 = page->pair->s2,
                                                .position = page->position,
                                                .bound = page->pair->bound}})));
    page = (*reader)->finish();
    ASSERT_TRUE(ok(page));
    EXPECT_EQ(page->events.size(), 4U);
  }
  auto wakeup = store_->wakeup({});
  ASSERT_TRUE(ok(wakeup));
  EXPECT_TRUE(ok((*wakeup)->arm()));
  (void)connection.exec("SELECT outbox.enqueue('a', '1', 'E', '{}')");
  EXPECT_TRUE(ok((*wakeup)->disarm()));
  auto maintenance = store_->maintenance();
  ASSERT_TRUE(ok(maintenance));
  EXPECT_TRUE(ok((*maintenance)->run()));
  EXPECT_TRUE(ok(relay.leave()));
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
