// Tests that no role has more rights than it needs.
#include <outbox/task.hpp>

#include "integration/postgres/harness.hpp"
#include "support/lane_owner.hpp"

namespace outbox::test {
namespace {

class PostgresRoles : public PostgresTest {
 protected:
  void become(const std::string& role) {
    connection_ = std::make_unique<Pg>(database_->url());
    (void)connection_->exec("SET ROLE " + role);
  }
  void may(const std::string& sql) { EXPECT_EQ(find_sqlstate(*connection_, sql), "") << sql; }
  void may_not(const std::string& sql) {
    EXPECT_EQ(find_sqlstate(*connection_, sql), "42501") << sql;
  }

  std::unique_ptr<Pg> connection_;
};

TEST_F(PostgresRoles, the_application_enqueues_and_nothing_else) {
  become("outbox_app");
  may("SELECT outbox.enqueue('order', '1', 'A', '{}', lock_key => true)");
  for (const char* type : {"", "::text", "::json", "::jsonb"})
    may(std::string(
            "SELECT outbox.enqueue_many('[{\"aggregate_type\": \"a\", \"event_type\": \"E\", \"payload\": 1}]'") +
        type + ")");
  const std::string task =
      connection_->value("SELECT outbox.enqueue_task('mail', 'send', '{}', 'a')");
  EXPECT_EQ(connection_->value("SELECT state FROM outbox.task_status('" + task + "')"), "pending");
  may("SELECT outbox.enqueue_task('mail', 'send', '{}', 42, unique_key => 'a')");
  may("SELECT outbox.receive('billing', 'message-1')");
  may("SELECT outbox.receive('billing', 42)");
  may("INSERT INTO outbox.new_event (aggregate_type, event_type, payload) VALUES ('a', 'b', '1') RETURNING id");
  may("INSERT INTO outbox.event_in (id, aggregate_type, aggregate_id, event_type, payload, headers) "
      "VALUES (gen_random_uuid(), 'a', 'b', 'c', 'd', '{}')");
  // A writer cannot choose its place in the log or its lane.
  may_not(
      "INSERT INTO outbox.event (lane, id, aggregate_type, aggregate_id, event_type, payload, headers) "
      "VALUES (0, gen_random_uuid(), 'a', 'b', 'c', 'd', '{}')");
  for (const char* column : {"xid", "seq", "lane", "created_at"}) {
    EXPECT_EQ(find_sqlstate(*connection_, std::string("INSERT INTO outbox.event_in (") + column +
                                              ") VALUES (NULL)"),
              "42703")
        << column;
  }
  may_not("SELECT * FROM outbox.event_in");
  may_not("SELECT * FROM outbox.event");
  may_not("UPDATE outbox.event SET payload = ''");
  may_not("DELETE FROM outbox.event");
  may_not("TRUNCATE outbox.event");
  may_not("SELECT setval('outbox.event_seq', 1)");
  may_not("SELECT * FROM outbox.subscription");
  may_not(
      "INSERT INTO outbox.settlement (subscription, kind, lanes, generation) VALUES (0, 'mark', 0, 0)");
  may_not("SELECT outbox.make_partitions()");
  may_not("CREATE TABLE outbox.mine (x int)");
}

TEST_F(PostgresRoles, the_relay_reads_and_appends) {
  become("outbox_relay");
  may("SELECT * FROM outbox.event");
  may("SELECT last_value FROM outbox.event_seq");
  may("INSERT INTO outbox.settlement (subscription, kind, lanes, generation) VALUES (0, 'mark', 0, 0)");
  may("SELECT outbox.make_partitions()");
  may("UPDATE outbox.lane SET generation = generation");
  may("SELECT outbox.start_replay(NULL, 1, 1, 5, '{}', false, 'anna')");
  may("SELECT outbox.settle_replay(1, 1, 0, 0, 5, 5, '{}', '{}', '{}', 10)");
  may_not("INSERT INTO outbox.event (aggregate_type, event_type, payload) VALUES ('a', 'b', 'c')");
  may("INSERT INTO outbox.history VALUES (now(), 1, '', gen_random_uuid(), 1, 0, 0, 0, '{}', 0, 0)");
  may("DELETE FROM outbox.history WHERE at < now()");
  may_not("UPDATE outbox.history SET delivered = 0");
  may_not("UPDATE outbox.settlement SET lanes = 0");
  may_not("DELETE FROM outbox.settlement");
  may_not("DELETE FROM outbox.event");
  may_not("DROP TABLE outbox.event_default");
  may_not("ALTER TABLE outbox.event DETACH PARTITION outbox.event_default");
  may_not("UPDATE outbox.witness SET x = '5'");
}

TEST_F(PostgresRoles, what_people_changed_is_appended_and_never_changed) {
  become("outbox_relay");
  may("INSERT INTO outbox.audit (actor, origin, verb, subscription, filter, count, reason) "
      "VALUES ('anna', 'command line', 'parked retry', 'orders', '{}', 1, '') RETURNING id");
  may("SELECT * FROM outbox.audit");
  may("SELECT outbox.prune_audit('1 day', 10)");
  may_not(
      "INSERT INTO outbox.audit (at, actor, origin, verb, subscription, filter, count, reason) "
      "VALUES (now(), 'anna', 'command line', 'parked retry', 'orders', '{}', 1, '')");
  may_not("UPDATE outbox.audit SET actor = 'bob'");
  may_not("DELETE FROM outbox.audit");
  may_not("TRUNCATE outbox.audit");
  EXPECT_EQ(connection_->value("SELECT count(*) FROM outbox.prune_audit('0 days', 10)"), "0")
      << "a day's rows stay";
  become("outbox_reader");
  EXPECT_EQ(connection_->value("SELECT count(*) FROM outbox.audit"), "1");
  may_not(
      "INSERT INTO outbox.audit (actor, origin, verb, subscription, filter, count, reason) "
      "VALUES ('anna', 'command line', 'parked retry', 'orders', '{}', 1, '')");
  may_not("SELECT outbox.prune_audit('1 day', 10)");
  become("outbox_app");
  may_not("SELECT * FROM outbox.audit");
}

TEST_F(PostgresRoles, the_reader_reads) {
  become("outbox_reader");
  may("SELECT * FROM outbox.event");
  may("SELECT * FROM outbox.settlement");
  may("SELECT * FROM outbox.history");
  may_not("DELETE FROM outbox.history");
  may_not("SELECT outbox.enqueue('order', '1', 'A', '{}')");
  may_not(
      "SELECT outbox.enqueue_many('[{\"aggregate_type\": \"a\", \"event_type\": \"E\", \"payload\": 1}]'::json)");
  may_not("SELECT outbox.enqueue_task('mail', 'send', '{}', 42)");
  may_not("SELECT outbox.receive('billing', 42)");
  may_not("UPDATE outbox.subscription SET state = 'paused'");
  may_not("SELECT outbox.make_partitions()");
}

TEST_F(PostgresRoles, everything_belongs_to_the_owner_which_cannot_log_in) {
  EXPECT_EQ(value("SELECT count(*) FROM pg_class WHERE relnamespace = 'outbox'::regnamespace "
                  "AND relowner <> 'outbox_owner'::regrole"),
            "0");
  EXPECT_EQ(value("SELECT count(*) FROM pg_proc WHERE pronamespace = 'outbox'::regnamespace "
                  "AND proowner <> 'outbox_owner'::regrole"),
            "0");
  EXPECT_EQ(
      value("SELECT bool_or(rolcanlogin OR rolsuper OR rolcreatedb OR rolcreaterole) FROM pg_roles "
            "WHERE rolname LIKE 'outbox\\_%' AND rolname IN "
            "('outbox_owner', 'outbox_app', 'outbox_relay', 'outbox_reader', 'outbox_console')"),
      "f");
}

TEST_F(PostgresRoles, the_relays_plans_do_not_depend_on_statistics) {
  EXPECT_EQ(
      value(
          "SELECT s.setconfig @> ARRAY['jit=off', 'max_parallel_workers_per_gather=0', 'enable_seqscan=off', "
          "'plan_cache_mode=force_generic_plan'] FROM pg_db_role_setting s JOIN pg_roles r ON r.oid = s.setrole "
          "WHERE r.rolname = 'outbox_relay' AND s.setdatabase = 0"),
      "t");
}

TEST_F(PostgresRoles, a_relay_with_the_relays_role_works) {
  Pg admin(database_->url());
  const std::string user = database_->name() + "_relay";
  (void)admin.exec("CREATE ROLE \"" + user + "\" LOGIN IN ROLE outbox_relay");
  std::string url = database_->url();
  url.replace(url.find("postgres@"), 9, user + "@");
  const auto store = open_at(url);
  EXPECT_TRUE(ok(store->check()));
  auto catalog = store->catalog();
  ASSERT_TRUE(ok(catalog));
  EXPECT_TRUE(ok((*catalog)->apply({.name = "mails", .sink = "null"})));
  LaneOwner relay(*store, "test");
  EXPECT_TRUE(ok(relay.keep(std::chrono::seconds(15))));
  EXPECT_TRUE(ok(relay.leave()));
  auto wakeup = store->wakeup({});
  ASSERT_TRUE(ok(wakeup));
  EXPECT_TRUE(ok((*wakeup)->arm()));
  EXPECT_TRUE(ok((*wakeup)->disarm()));
  auto maintenance = store->maintenance();
  ASSERT_TRUE(ok(maintenance));
  EXPECT_TRUE(ok((*maintenance)->run()));
  EXPECT_TRUE(ok((*catalog)->pause("mails", "test")));
  auto schedules = store->schedules();
  ASSERT_TRUE(ok(schedules));
  const Schedule nightly{.name = "nightly", .type = "report.make", .cron = "0 3 * * *"};
  EXPECT_TRUE(ok((*schedules)->apply(nightly, 0)));
  const auto due = (*schedules)->due(std::vector<std::string>{"default"});
  ASSERT_TRUE(ok(due));
  const auto ticked =
      (*schedules)
          ->tick(due->due.front(),
                 {.task = to_event(Task{.type = "report.make", .payload = "{}"}), .next_at_us = 1});
  EXPECT_TRUE(ok(ticked)) << "a worker enqueues the tasks of schedules";
  (void)admin.exec("DROP ROLE \"" + user + "\"");
}

TEST_F(PostgresRoles, a_writer_with_the_applications_role_works) {
  Pg admin(database_->url());
  const std::string user = database_->name() + "_app";
  (void)admin.exec("CREATE ROLE \"" + user + "\" LOGIN IN ROLE outbox_app");
  std::string url = database_->url();
  url.replace(url.find("postgres@"), 9, user + "@");
  const auto store = open_at(url);
  EXPECT_TRUE(ok(store->check()));
  auto writer = store->writer();
  ASSERT_TRUE(ok(writer));
  const Event event{.aggregate_type = "a", .aggregate_id = "1", .event_type = "E", .payload = "{}"};
  EXPECT_TRUE(ok((*writer)->write(std::span(&event, 1))));
  // The parts of the schema that it can read are still checked.
  (void)admin.exec("UPDATE outbox.migration SET version = 99 WHERE version = 1");
  EXPECT_EQ(store->check().error().code, Errc::unsupported);
  (void)admin.exec("DROP ROLE \"" + user + "\"");
}

}  // namespace
}  // namespace outbox::test
