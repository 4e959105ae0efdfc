// Tests outbox/postgres.hpp: an event exists if and only if the business transaction committed.
#include <outbox/postgres.hpp>
#include <thread>

#include "integration/postgres/harness.hpp"
#include "support/catch_error.hpp"
#include "support/eventually.hpp"

struct sqlite3;

namespace outbox::test {
namespace {

using postgres::enqueue;
using postgres::Transaction;

// Only a target that is a connection of PostgreSQL compiles.
template <class T>
concept Enqueues = requires(T target, const Event& event) {
  postgres::enqueue(target, event);
};
static_assert(Enqueues<PGconn*>);
static_assert(!Enqueues<sqlite3*> && !Enqueues<const Transaction&> && !Enqueues<int> &&
              !Enqueues<const char*> && !Enqueues<void*>);

Event order(const std::string& id = "42") {
  return Event{.aggregate_type = "order",
               .aggregate_id = id,
               .event_type = "OrderPlaced",
               .payload = R"({"total": 12.5})"};
}

class PostgresEnqueue : public PostgresTest {
 protected:
  void SetUp() override {
    PostgresTest::SetUp();
    if (IsSkipped()) return;
    connection_ = std::make_unique<Pg>(database_->url());
    (void)connection_->exec("CREATE TABLE orders (id text PRIMARY KEY)");
  }
  [[nodiscard]] PGconn* native() const { return connection_->native(); }
  [[nodiscard]] std::string count() const { return value("SELECT count(*) FROM outbox.event"); }
  [[nodiscard]] std::string orders() const { return value("SELECT count(*) FROM orders"); }

  std::unique_ptr<Pg> connection_;
};

TEST_F(PostgresEnqueue, commit_writes_the_change_and_the_event) {
  Transaction tx(native());
  (void)connection_->exec("INSERT INTO orders VALUES ('42')");
  const EventId id = tx.enqueue(order());
  EXPECT_EQ(count(), "0");
  tx.commit();
  EXPECT_EQ(orders(), "1");
  const auto rows = connect().exec(
      "SELECT id, aggregate_type, aggregate_id, event_type, convert_from(payload, 'UTF8'), content_type, headers, "
      "xid IS NOT NULL, lane = outbox.lane_of('order', '42', id) FROM outbox.event");
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_THAT(rows[0],
              ::testing::ElementsAre(id.str(), "order", "42", "OrderPlaced", R"({"total": 12.5})",
                                     "application/json", "{}", "t", "t"));
}

TEST_F(PostgresEnqueue, rollback_leaves_neither) {
  {
    Transaction tx(native());
    (void)connection_->exec("INSERT INTO orders VALUES ('42')");
    (void)tx.enqueue(order());
  }
  Transaction tx(native());
  (void)tx.enqueue(order());
  (void)enqueue(native(), order());
  tx.rollback();
  EXPECT_EQ(count(), "0");
  EXPECT_EQ(orders(), "0");
  EXPECT_EQ(PQtransactionStatus(native()), PQTRANS_IDLE);
}

TEST_F(PostgresEnqueue, a_failed_business_statement_takes_the_event_with_it) {
  Transaction tx(native());
  (void)tx.enqueue(order());
  EXPECT_THROW((void)connection_->exec("SELECT 1 / 0"), PgError);
  const Error error = catch_error([&] { tx.commit(); });
  EXPECT_EQ(error.remedy, Remedy::retry_transaction);
  EXPECT_EQ(error.effect, Effect::none);
  EXPECT_EQ(PQtransactionStatus(native()), PQTRANS_IDLE);
  EXPECT_EQ(count(), "0");
}

TEST_F(PostgresEnqueue, a_failed_insert_takes_the_business_change_with_it) {
  Transaction tx(native());
  (void)connection_->exec("INSERT INTO orders VALUES ('42')");
  (void)tx.enqueue(order());
  (void)connection_->exec("SET LOCAL lock_timeout = '50ms'");
  Pg blocker(database_->url());
  (void)blocker.exec("BEGIN; LOCK TABLE outbox.event IN SHARE MODE");
  const Error error = catch_error([&] { tx.commit(); });
  EXPECT_EQ(error.origin, "pg:55P03");
  EXPECT_EQ(error.effect, Effect::none);
  (void)blocker.exec("ROLLBACK");
  EXPECT_EQ(orders(), "0");
  EXPECT_EQ(count(), "0");
}

TEST_F(PostgresEnqueue, outside_a_transaction_is_refused_and_nothing_is_written) {
  EXPECT_EQ(catch_error([&] { (void)enqueue(native(), order()); }).code, Errc::not_in_transaction);
  EXPECT_EQ(catch_error([&] { (void)enqueue(nullptr, order()); }).code, Errc::invalid_argument);
  Transaction done(native());
  done.commit();
  EXPECT_EQ(catch_error([&] { (void)done.enqueue(order()); }).code, Errc::not_in_transaction);
  Transaction ended_by_hand(native());
  (void)ended_by_hand.enqueue(order());
  (void)connection_->exec("COMMIT");
  EXPECT_EQ(catch_error([&] { ended_by_hand.commit(); }).code, Errc::not_in_transaction);
  EXPECT_EQ(count(), "0");
}

TEST_F(PostgresEnqueue, in_a_transaction_of_your_own) {
  (void)connection_->exec("BEGIN");
  (void)enqueue(native(), order());
  (void)enqueue(native(), order("43"));
  (void)connection_->exec("SAVEPOINT s");
  (void)enqueue(native(), order("44"));
  (void)connection_->exec("ROLLBACK TO SAVEPOINT s; COMMIT");
  EXPECT_EQ(value("SELECT string_agg(aggregate_id, ',' ORDER BY seq) FROM outbox.event"), "42,43");
}

TEST_F(PostgresEnqueue, what_is_not_valid_is_named_and_the_transaction_goes_on) {
  Transaction tx(native());
  Event bad = order();
  bad.event_type = "  ";
  const Error error = catch_error([&] { (void)enqueue(native(), bad); });
  EXPECT_EQ(error.code, Errc::invalid_argument);
  EXPECT_EQ(error.message, "event_type: is blank");
  bad = order();
  bad.payload = "{";
  EXPECT_THAT(catch_error([&] { (void)tx.enqueue(bad); }).message,
              ::testing::HasSubstr("payload: is not JSON"));
  const std::vector<Event> half{order("1"), bad};
  EXPECT_THAT(catch_error([&] { (void)tx.enqueue(half); }).message,
              ::testing::StartsWith("event 1: payload"));
  EXPECT_EQ(PQtransactionStatus(native()), PQTRANS_INTRANS);
  (void)tx.enqueue(order());
  tx.commit();
  EXPECT_EQ(count(), "1");
}

TEST_F(PostgresEnqueue, many_keep_their_order_and_ids) {
  std::vector<Event> events;
  for (int i = 0; i < 12000; ++i) events.push_back(order(std::to_string(i)));
  events[7].id = EventId::parse("0190a1b2-c3d4-7e5f-8a6b-7c8d9eafb0c1").value();
  events[8].content_type.clear();
  events[8].payload = std::string("\0\1\xff", 3);
  events[9].headers = {{"tenant", "a, \"b\" \\ {c}"}};
  Transaction tx(native());
  const auto ids = tx.enqueue(events);
  tx.commit();
  ASSERT_EQ(ids.size(), events.size());
  EXPECT_EQ(ids[7], *events[7].id);
  const auto rows = connect().exec("SELECT id, aggregate_id FROM outbox.event ORDER BY seq");
  ASSERT_EQ(rows.size(), events.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    ASSERT_EQ(*rows[i][0], ids[i].str()) << i;
    ASSERT_EQ(*rows[i][1], std::to_string(i));
  }
  EXPECT_EQ(
      value(
          "SELECT encode(payload, 'hex') || coalesce(content_type, '-') FROM outbox.event WHERE aggregate_id = '8'"),
      "0001ff-");
  EXPECT_EQ(value("SELECT headers ->> 'tenant' FROM outbox.event WHERE aggregate_id = '9'"),
            "a, \"b\" \\ {c}");
}

TEST_F(PostgresEnqueue, works_after_a_reset_and_after_discard_all) {
  const auto enqueue = [&] {
    Transaction tx(native());
    (void)tx.enqueue(order());
    tx.commit();
  };
  for (int i = 0; i < 3; ++i) enqueue();
  PQreset(native());
  for (int i = 0; i < 3; ++i) enqueue();
  (void)connection_->exec("DISCARD ALL");
  // The prepared statements are gone: one transaction has to be rerun, and the next ones work.
  const Error error = catch_error(enqueue);
  EXPECT_EQ(error.remedy, Remedy::retry_transaction);
  EXPECT_EQ(error.effect, Effect::none);
  for (int i = 0; i < 3; ++i) enqueue();
  EXPECT_EQ(count(), "9");
}

TEST_F(PostgresEnqueue, a_connection_lost_before_commit_has_no_effect) {
  Transaction tx(native());
  (void)tx.enqueue(order());
  (void)connect().exec("SELECT pg_terminate_backend(" + std::to_string(PQbackendPID(native())) +
                       ")");
  const Error error = catch_error([&] { tx.commit(); });
  EXPECT_EQ(error.remedy, Remedy::reconnect);
  EXPECT_EQ(count(), "0");
}

TEST_F(PostgresEnqueue, lock_key_makes_writers_of_a_key_wait_for_each_other) {
  Event locked = order();
  locked.lock_key = true;
  (void)connection_->exec("BEGIN");
  (void)enqueue(native(), locked);
  Pg other(database_->url());
  (void)other.exec("BEGIN; SET LOCAL lock_timeout = '50ms'");
  EXPECT_EQ(catch_error([&] { (void)enqueue(other.native(), locked); }).origin, "pg:55P03");
  (void)other.exec("ROLLBACK; BEGIN; SET LOCAL lock_timeout = '50ms'");
  Event elsewhere = order("43");
  elsewhere.lock_key = true;
  (void)enqueue(other.native(), elsewhere);
  (void)enqueue(other.native(), order());
  (void)other.exec("SET LOCAL outbox.lock_key = 'on'");
  EXPECT_EQ(catch_error([&] { (void)enqueue(other.native(), order()); }).origin, "pg:55P03");
  (void)other.exec("ROLLBACK");
  (void)connection_->exec("COMMIT");
}

TEST_F(PostgresEnqueue, lock_key_is_the_lock_that_the_sql_function_takes) {
  Event locked = order();
  locked.lock_key = true;
  (void)connection_->exec("BEGIN");
  (void)enqueue(native(), locked);
  Pg other(database_->url());
  (void)other.exec("SET lock_timeout = '50ms'");
  EXPECT_EQ(
      find_sqlstate(other, "SELECT outbox.enqueue('order', '42', 'X', '{}', lock_key => true)"),
      "55P03");
  (void)connection_->exec("COMMIT");
}

// If the place came first, the event that waited would precede events that were committed
// meanwhile.
TEST_F(PostgresEnqueue, lock_key_is_locked_before_the_event_gets_its_place) {
  const auto locked = [](const std::string& name) {
    Event event = order();
    event.event_type = name;
    event.lock_key = true;
    return event;
  };
  (void)connection_->exec("BEGIN");
  (void)enqueue(native(), locked("first"));
  std::jthread waiter([&] {
    Pg other(database_->url());
    (void)other.exec("BEGIN");
    EXPECT_NO_THROW((void)enqueue(other.native(), locked("third")));
    (void)other.exec("COMMIT");
  });
  EXPECT_TRUE(eventually([&] {
    return value(
               "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted "
               "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())") ==
           "1";
  }));
  (void)enqueue(native(), locked("second"));
  (void)connection_->exec("COMMIT");
  waiter.join();
  EXPECT_EQ(value("SELECT string_agg(event_type, ',' ORDER BY seq) FROM outbox.event"),
            "first,second,third");
}

TEST_F(PostgresEnqueue, several_keys_are_locked_in_one_order) {
  const auto write = [this](const std::vector<std::string>& keys) {
    Pg connection(database_->url());
    std::vector<Event> events;
    for (const auto& key : keys) {
      events.push_back(order(key));
      events.back().lock_key = true;
    }
    for (int i = 0; i < 50; ++i) {
      Transaction tx(connection.native());
      (void)tx.enqueue(events);
      EXPECT_NO_THROW(tx.commit());
    }
  };
  std::jthread up([&] { write({"1", "2", "3", "4"}); });
  write({"4", "3", "2", "1"});
}

TEST_F(PostgresEnqueue, through_a_pooler_that_shares_connections) {
  OUTBOX_NEEDS("OUTBOX_TEST_PGBOUNCER", "pgbouncer in transaction mode");
  const std::string url = url_of_database(*environment("OUTBOX_TEST_PGBOUNCER"), database_->name());
  {
    Pg one(url);
    Pg two(url);
    for (int i = 0; i < 10; ++i) {
      Transaction first(one.native());
      (void)first.enqueue(order("1"));
      Transaction second(two.native());
      (void)second.enqueue(order("2"));
      (void)enqueue(two.native(), order("3"));
      EXPECT_NO_THROW(second.commit());
      EXPECT_NO_THROW(first.commit());
    }
  }
  EXPECT_EQ(count(), "30");
}

TEST_F(PostgresEnqueue, another_schema) {
  ASSERT_TRUE(ok(open_at(database_->url(), "Select")->migrate()));
  Transaction tx(native(), {.schema = "Select"});
  (void)tx.enqueue(order("1"));
  (void)enqueue(native(), order("2"));
  tx.commit();
  EXPECT_EQ(value("SELECT aggregate_id FROM \"Select\".event"), "1");
  EXPECT_EQ(value("SELECT aggregate_id FROM outbox.event"), "2");
  EXPECT_THROW(Transaction(native(), {.schema = "a; DROP TABLE b"}), Exception);
}

TEST_F(PostgresEnqueue, a_transaction_cannot_begin_in_another) {
  Transaction tx(native());
  EXPECT_EQ(catch_error([&] { Transaction inner(native()); }).code, Errc::invalid_argument);
  EXPECT_EQ(catch_error([&] { Transaction none(nullptr); }).code, Errc::invalid_argument);
}

TEST_F(PostgresEnqueue, a_transaction_begins_on_an_idle_connection_only) {
  ASSERT_EQ(PQsendQuery(native(), "SELECT 1"), 1);
  EXPECT_EQ(catch_error([&] { Transaction tx(native()); }).code, Errc::invalid_argument);
  while (PGresult* const result = PQgetResult(native())) PQclear(result);
  (void)connect().exec("SELECT pg_terminate_backend(" + std::to_string(PQbackendPID(native())) +
                       ")");
  EXPECT_THROW((void)connection_->exec("SELECT 1"), PgError);
  const Error lost = catch_error([&] { Transaction tx(native()); });
  EXPECT_EQ(lost.remedy, Remedy::reconnect);
  EXPECT_EQ(lost.effect, Effect::none);
}

TEST_F(PostgresEnqueue, staged_events_are_no_part_of_a_savepoint_and_flushed_ones_are) {
  Transaction tx(native());
  (void)tx.enqueue(order("1"));
  tx.flush();
  (void)connection_->exec("SAVEPOINT s");
  (void)tx.enqueue(order("2"));
  tx.flush();
  (void)tx.enqueue(order("3"));
  (void)connection_->exec("ROLLBACK TO SAVEPOINT s");
  tx.flush();
  tx.flush();
  tx.commit();
  EXPECT_EQ(value("SELECT string_agg(aggregate_id, ',' ORDER BY seq) FROM outbox.event"), "1,3");
  EXPECT_EQ(catch_error([&] { tx.flush(); }).code, Errc::not_in_transaction);
}

TEST_F(PostgresEnqueue, what_a_flush_could_not_write_stays_for_the_next) {
  Transaction tx(native());
  (void)tx.enqueue(order());
  (void)connection_->exec("SAVEPOINT s; SET LOCAL lock_timeout = '50ms'");
  Pg blocker(database_->url());
  (void)blocker.exec("BEGIN; LOCK TABLE outbox.event IN SHARE MODE");
  EXPECT_EQ(catch_error([&] { tx.flush(); }).origin, "pg:55P03");
  (void)blocker.exec("ROLLBACK");
  (void)connection_->exec("ROLLBACK TO SAVEPOINT s");
  tx.commit();
  EXPECT_EQ(count(), "1");
}

TEST_F(PostgresEnqueue,
       a_client_encoding_that_would_convert_is_refused_before_anything_is_written) {
  (void)connection_->exec("SET client_encoding = 'LATIN1'");
  (void)connection_->exec("BEGIN");
  const Error refused = catch_error([&] { (void)enqueue(native(), order("\xC3\xBC")); });
  EXPECT_EQ(refused.code, Errc::invalid_argument);
  EXPECT_THAT(refused.message, ::testing::HasSubstr("client_encoding is LATIN1"));
  EXPECT_EQ(PQtransactionStatus(native()), PQTRANS_INTRANS);
  (void)connection_->exec("COMMIT");
  Transaction tx(native());
  EXPECT_EQ(catch_error([&] { (void)tx.enqueue(order()); }).code, Errc::invalid_argument);
  (void)connection_->exec("SET client_encoding = 'UTF8'");
  (void)tx.enqueue(order("\xC3\xBC"));
  (void)connection_->exec("SET client_encoding = 'LATIN1'");
  EXPECT_EQ(catch_error([&] { tx.commit(); }).code, Errc::invalid_argument);
  (void)connection_->exec("SET client_encoding = 'SQL_ASCII'");
  tx.commit();
  EXPECT_EQ(value("SELECT aggregate_id FROM outbox.event"), "\xC3\xBC");
  (void)connection_->exec("SET client_encoding = 'LATIN1'");
  Transaction without_events(native());
  EXPECT_NO_THROW(without_events.commit());
}

TEST_F(PostgresEnqueue, in_pipeline_mode_commit_is_refused_and_can_be_repeated) {
  Transaction tx(native());
  (void)connection_->exec("INSERT INTO orders VALUES ('42')");
  (void)tx.enqueue(order());
  ASSERT_EQ(PQenterPipelineMode(native()), 1);
  const Error refused = catch_error([&] { tx.commit(); });
  EXPECT_EQ(refused.code, Errc::invalid_argument);
  EXPECT_EQ(refused.effect, Effect::none);
  EXPECT_EQ(catch_error([&] { tx.flush(); }).code, Errc::invalid_argument);
  ASSERT_EQ(PQexitPipelineMode(native()), 1);
  tx.commit();
  EXPECT_EQ(orders(), "1");
  EXPECT_EQ(count(), "1");
}

TEST_F(PostgresEnqueue, in_pipeline_mode_rollback_really_rolls_back) {
  const auto send = [&](const char* sql) {
    EXPECT_EQ(PQsendQueryParams(native(), sql, 0, nullptr, nullptr, nullptr, nullptr, 0), 1);
  };
  for (const char* second : {"INSERT INTO orders VALUES ('2')", "SELECT 1 / 0"}) {
    {
      Transaction tx(native());
      (void)connection_->exec("INSERT INTO orders VALUES ('1')");
      ASSERT_EQ(PQenterPipelineMode(native()), 1);
      send(second);
      send("SELECT 1");
      ASSERT_EQ(PQpipelineSync(native()), 1);
      send("SELECT 2");
    }
    EXPECT_EQ(PQpipelineStatus(native()), PQ_PIPELINE_OFF);
    EXPECT_EQ(PQtransactionStatus(native()), PQTRANS_IDLE);
    EXPECT_EQ(connection_->value("SELECT count(*) FROM orders"), "0");
  }
}

TEST_F(PostgresEnqueue, isolation_is_what_was_asked_for) {
  Transaction tx(native(), {}, postgres::Isolation::serializable);
  EXPECT_EQ(connection_->value("SHOW transaction_isolation"), "serializable");
}

}  // namespace
}  // namespace outbox::test
