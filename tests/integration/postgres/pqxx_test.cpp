// Tests outbox/pqxx.hpp: an event exists if and only if the transaction of libpqxx committed.
#include <outbox/pqxx.hpp>

#include "integration/postgres/harness.hpp"
#include "support/catch_error.hpp"

namespace outbox::test {
namespace {

using libpqxx::enqueue;

template <class T>
concept Enqueues = requires(T&& tx, const Event& event) {
  libpqxx::enqueue(tx, event);
};
static_assert(Enqueues<pqxx::work&> && Enqueues<pqxx::subtransaction&> &&
              Enqueues<pqxx::transaction<pqxx::serializable>&>);
static_assert(!Enqueues<pqxx::nontransaction&>, "it commits each statement by itself");
static_assert(!Enqueues<pqxx::connection&> && !Enqueues<std::nullptr_t> && !Enqueues<int>);

Event order(const std::string& id = "42") {
  return Event{.aggregate_type = "order",
               .aggregate_id = id,
               .event_type = "OrderPlaced",
               .payload = R"({"total": 12.5})"};
}

class PqxxEnqueue : public PostgresTest {
 protected:
  void SetUp() override {
    PostgresTest::SetUp();
    if (!IsSkipped()) connection_ = std::make_unique<pqxx::connection>(database_->url());
  }
  [[nodiscard]] std::string count() const { return value("SELECT count(*) FROM outbox.event"); }

  std::unique_ptr<pqxx::connection> connection_;
};

TEST_F(PqxxEnqueue, commit_writes_all_of_the_event) {
  Event event = order();
  event.payload = std::string("\0\1\xff\\'", 5);
  event.content_type = "application/octet-stream";
  event.headers = {{"tenant", "a, \"b\" \\ {c}"}};
  event.id = EventId::parse("0190a1b2-c3d4-7e5f-8a6b-7c8d9eafb0c1").value();
  event.occurred_at = Timestamp(std::chrono::microseconds(1'600'000'000'123'456));
  event.lock_key = true;
  Event untyped = order("43");
  untyped.content_type.clear();
  untyped.payload = "no JSON";
  {
    pqxx::work tx(*connection_);
    EXPECT_EQ(enqueue(tx, event), *event.id);
    EXPECT_EQ(enqueue(tx, std::vector{untyped, order("Zo\xc3\xab")}).size(), 2U);
    EXPECT_EQ(count(), "0");
    tx.commit();
  }
  const auto rows = connect().exec(
      "SELECT id, aggregate_id, encode(payload, 'hex'), content_type, headers ->> 'tenant',"
      " extract(epoch FROM occurred_at) FROM outbox.event ORDER BY seq");
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_THAT(rows[0], ::testing::ElementsAre(event.id->str(), "42", "0001ff5c27",
                                              "application/octet-stream", "a, \"b\" \\ {c}",
                                              "1600000000.123456"));
  EXPECT_EQ(rows[1][3].value_or(""), "");
  EXPECT_EQ(rows[2][1], "Zo\xc3\xab");
}

TEST_F(PqxxEnqueue, rollback_and_a_subtransaction_that_is_rolled_back_leave_nothing) {
  {
    pqxx::work tx(*connection_);
    (void)enqueue(tx, order());
  }
  pqxx::work tx(*connection_);
  (void)enqueue(tx, order("1"));
  {
    pqxx::subtransaction inner(tx);
    (void)enqueue(inner, order("2"));
    inner.abort();
  }
  {
    pqxx::subtransaction inner(tx);
    (void)enqueue(inner, order("3"));
    inner.commit();
  }
  tx.commit();
  EXPECT_EQ(value("SELECT string_agg(aggregate_id, ',' ORDER BY seq) FROM outbox.event"), "1,3");
}

TEST_F(PqxxEnqueue, what_is_not_valid_is_named_and_the_transaction_goes_on) {
  pqxx::work tx(*connection_);
  Event bad = order();
  bad.event_type = " ";
  const Error blank = catch_error([&] { (void)enqueue(tx, bad); });
  EXPECT_EQ(blank.code, Errc::invalid_argument);
  EXPECT_EQ(blank.message, "event_type: is blank");
  bad = order();
  bad.payload = "{";
  EXPECT_THAT(catch_error([&] {
                (void)enqueue(tx, std::vector{order(), bad});
              }).message,
              ::testing::StartsWith("event 1: payload"));
  EXPECT_EQ(catch_error([&] { (void)enqueue(tx, order(), {.schema = "a\";b"}); }).code,
            Errc::invalid_argument);
  (void)enqueue(tx, order());
  tx.commit();
  EXPECT_EQ(count(), "1");
}

TEST_F(PqxxEnqueue, errors_of_the_server_are_those_of_the_library) {
  {
    pqxx::work tx(*connection_);
    (void)tx.exec("SET LOCAL lock_timeout = '50ms'");
    Pg blocker(database_->url());
    blocker.run("BEGIN; LOCK TABLE outbox.event IN SHARE MODE");
    const Error error = catch_error([&] { (void)enqueue(tx, order()); });
    EXPECT_EQ(error.origin, "pg:55P03");
    EXPECT_EQ(error.remedy, Remedy::retry_transaction);
    EXPECT_EQ(error.effect, Effect::none);
    blocker.run("ROLLBACK");
    EXPECT_EQ(catch_error([&] { (void)enqueue(tx, order()); }).code, Errc::not_in_transaction)
        << "libpqxx ends a transaction whose statement failed";
  }
  {
    pqxx::work tx(*connection_);
    EXPECT_THAT(catch_error([&] { (void)enqueue(tx, order(), {.schema = "nowhere"}); }).text(),
                ::testing::HasSubstr("outbox migrate"));
  }
  {
    pqxx::work tx(*connection_);
    (void)tx.exec("SET LOCAL client_encoding = 'LATIN1'");
    EXPECT_THAT(catch_error([&] { (void)enqueue(tx, order()); }).message,
                ::testing::HasSubstr("client_encoding"));
    tx.commit();
  }
  EXPECT_EQ(count(), "0");
  try {
    pqxx::work tx(*connection_);
    connect().run("SELECT pg_terminate_backend(" + std::to_string(connection_->backendpid()) + ")");
    const Error lost = catch_error([&] { (void)enqueue(tx, order()); });
    EXPECT_EQ(lost.code, Errc::unavailable);
    EXPECT_EQ(lost.remedy, Remedy::reconnect);
  } catch (const pqxx::broken_connection&) {
    // libpqxx may report the loss again at the end of the transaction.
  }
  EXPECT_EQ(count(), "0");
}

TEST_F(PqxxEnqueue, tasks_and_the_inbox) {
  pqxx::work tx(*connection_);
  Task task;
  task.queue = "reports";
  task.type = "report.make";
  task.payload = "{}";
  task.unique_key = "2026-10";
  const EventId first = enqueue(tx, task);
  EXPECT_EQ(enqueue(tx, task), first);
  task.on_conflict = OnConflict::error;
  EXPECT_EQ(catch_error([&] { (void)enqueue(tx, task); }).code, Errc::already_exists);
  task.on_conflict = OnConflict::replace;
  EXPECT_NE(enqueue(tx, task), first);
  EXPECT_TRUE(libpqxx::receive(tx, "billing", "message-1"));
  EXPECT_FALSE(libpqxx::receive(tx, "billing", "message-1"));
  tx.commit();
  EXPECT_EQ(count(), "2");
  EXPECT_EQ(value("SELECT DISTINCT aggregate_type FROM outbox.event"), "outbox-task:reports");
}

}  // namespace
}  // namespace outbox::test
