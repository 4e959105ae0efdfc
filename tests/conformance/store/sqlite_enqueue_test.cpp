// Tests outbox/sqlite.hpp: an event is written in a transaction or not at all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <future>
#include <outbox/json.hpp>
#include <outbox/sqlite.hpp>
#include <string>
#include <utility>
#include <vector>

#include "conformance/store/sqlite_database.hpp"
#include "store/store.hpp"
#include "support/catch_error.hpp"

struct pg_conn;

namespace outbox::conformance {
namespace {

using test::catch_error;
// ---- what compiles

template <class T>
concept Enqueues = requires(T&& db, const Event& event, const std::vector<Event>& events) {
  sqlite::enqueue(std::forward<T>(db), event);
  sqlite::enqueue(std::forward<T>(db), events);
};

static_assert(Enqueues<sqlite3*>);
static_assert(!Enqueues<sqlite::Transaction*>);
static_assert(!Enqueues<pg_conn*>, "another store's connection");
static_assert(!Enqueues<void*>);
static_assert(!Enqueues<int>);

// The names in a type of the application say whether it is an event or a task.
struct OrderPaid {
  static constexpr const char* aggregate_type = "order";
  static constexpr const char* event_type = "OrderPaid";
  int cents;
  NLOHMANN_DEFINE_TYPE_INTRUSIVE(OrderPaid, cents)
};
struct SendMail {
  static constexpr const char* task_type = "mail.send";
  std::string to;
  NLOHMANN_DEFINE_TYPE_INTRUSIVE(SendMail, to)
};
struct Nameless {
  int cents;
  NLOHMANN_DEFINE_TYPE_INTRUSIVE(Nameless, cents)
};
struct Unwritable {
  static constexpr const char* task_type = "mail.send";
};
template <class T>
concept IsEvent = requires(sqlite::Transaction& tx, const T& value) {
  tx.enqueue(value, "42");
};
template <class T>
concept IsTask = requires(sqlite::Transaction& tx, const T& value) {
  tx.enqueue(value);
};
template <class T>
concept Takes = requires(T&& tx, const Event& event) {
  std::forward<T>(tx).enqueue(event);
};
static_assert(Takes<sqlite::Transaction&> && !Takes<const sqlite::Transaction&>);
static_assert(!Takes<sqlite::Transaction>, "a temporary would roll back at the end of the line");
static_assert(IsEvent<OrderPaid> && !IsTask<OrderPaid> && IsTask<SendMail> && !IsEvent<SendMail>);
static_assert(!IsEvent<Nameless> && !IsTask<Nameless> && !IsTask<Unwritable> && !IsTask<int>);

// ---- what happens

class SqliteEnqueue : public ::testing::Test {
 protected:
  void SetUp() override {
    auto store = store::open_store({.url = database_.url()});
    ASSERT_TRUE(store);
    ASSERT_TRUE((*store)->migrate());
    app_ = std::make_unique<Application>(database_.path());
  }
  static Event event(const std::string& id, const std::string& payload = "{}") {
    return {.aggregate_type = "order",
            .aggregate_id = id,
            .event_type = "OrderPlaced",
            .payload = payload};
  }
  /// The events that another connection sees.
  [[nodiscard]] std::string committed() const {
    return Application(database_.path())
        .value("SELECT coalesce(group_concat(aggregate_id), '') FROM outbox_event");
  }

  SqliteDatabase database_;
  std::unique_ptr<Application> app_;
};

TEST_F(SqliteEnqueue, commit_publishes_event_and_business_together) {
  app_->run("CREATE TABLE orders (id INTEGER)");
  sqlite::Transaction tx(app_->db());
  app_->run("INSERT INTO orders VALUES (42)");
  const EventId id = tx.enqueue(event("42"));
  EXPECT_EQ(committed(), "");
  tx.commit();
  EXPECT_EQ(committed(), "42");
  EXPECT_EQ(app_->value("SELECT lower(hex(id)) FROM outbox_event"),
            app_->value("SELECT replace('" + id.str() + "', '-', '')"));
  EXPECT_EQ(app_->value("SELECT count(*) FROM orders"), "1");
}

TEST_F(SqliteEnqueue, types_of_the_application_are_written_with_their_names) {
  sqlite::Transaction tx(app_->db());
  tx.enqueue(OrderPaid{.cents = 1250}, "42");
  tx.enqueue(SendMail{.to = "a"}, {.queue = "mails", .key = "7"});
  tx.commit();
  EXPECT_EQ(
      app_->value(
          "SELECT group_concat(aggregate_type || ' ' || aggregate_id || ' ' || event_type || ' ' || payload, ', ')"
          " FROM outbox_event"),
      R"(order 42 OrderPaid {"cents":1250}, outbox-task:mails 7 mail.send {"to":"a"})");
  EXPECT_EQ(Payload<SendMail>::read(R"({"to":"b"})")->to, "b");
  EXPECT_THAT(Payload<SendMail>::read(R"({"two":"b"})").error().message,
              ::testing::HasSubstr("'to' not found"));
  EXPECT_FALSE(Payload<SendMail>::read("{"));
}

TEST_F(SqliteEnqueue, rollback_and_destructor_take_it_back) {
  {
    sqlite::Transaction tx(app_->db());
    tx.enqueue(event("1"));
    tx.rollback();
    EXPECT_EQ(catch_error([&] { tx.enqueue(event("1")); }).code, Errc::not_in_transaction);
  }
  {
    sqlite::Transaction tx(app_->db());
    tx.enqueue(event("2"));
  }
  EXPECT_EQ(sqlite3_get_autocommit(app_->db()), 1);
  EXPECT_EQ(committed(), "");
}

TEST_F(SqliteEnqueue, a_transaction_of_the_callers_own_serves) {
  app_->run("BEGIN IMMEDIATE");
  sqlite::enqueue(app_->db(), event("1"));
  const std::vector<Event> more{event("2"), event("3")};
  EXPECT_EQ(sqlite::enqueue(app_->db(), more).size(), 2U);
  app_->run("COMMIT");
  EXPECT_EQ(committed(), "1,2,3");
}

TEST_F(SqliteEnqueue, a_connection_outside_a_transaction_is_refused) {
  const Error error = catch_error([&] { sqlite::enqueue(app_->db(), event("1")); });
  EXPECT_EQ(error.code, Errc::not_in_transaction);
  EXPECT_THAT(error.hint, ::testing::HasSubstr("BEGIN IMMEDIATE"));
  EXPECT_EQ(committed(), "");
  EXPECT_EQ(catch_error([&] { sqlite::enqueue(nullptr, event("1")); }).code,
            Errc::invalid_argument);
}

TEST_F(SqliteEnqueue, a_bad_event_leaves_the_transaction_usable) {
  sqlite::Transaction tx(app_->db());
  Event bad = event("1");
  bad.aggregate_type = " ";
  const Error error = catch_error([&] { tx.enqueue(bad); });
  EXPECT_EQ(error.code, Errc::invalid_argument);
  EXPECT_THAT(error.message, ::testing::StartsWith("aggregate_type:"));
  EXPECT_EQ(catch_error([&] { tx.enqueue(event("1", "{")); }).code, Errc::invalid_argument);
  tx.enqueue(event("2"));
  tx.commit();
  EXPECT_EQ(committed(), "2");
}

TEST_F(SqliteEnqueue, limits_are_the_callers) {
  const sqlite::Options large{.limits = {.payload_bytes = std::size_t{4} << 20U}};
  const Event big = event("1", '"' + std::string(std::size_t{2} << 20U, 'x') + "\"");
  sqlite::Transaction small(app_->db(), {.limits = {.payload_bytes = 10}});
  EXPECT_EQ(catch_error([&] { small.enqueue(event("1", R"({"a":"bcdef"})")); }).code,
            Errc::too_large);
  small.rollback();
  sqlite::Transaction tx(app_->db());
  EXPECT_EQ(catch_error([&] { tx.enqueue(big); }).code, Errc::too_large);
  EXPECT_NO_THROW(sqlite::enqueue(app_->db(), big, large));
}

TEST_F(SqliteEnqueue, many_are_checked_before_one_is_written) {
  std::vector<Event> events{event("1"), event("2"), event("3")};
  events[2].event_type = "";
  sqlite::Transaction tx(app_->db());
  const Error error = catch_error([&] { tx.enqueue(events); });
  EXPECT_THAT(error.message, ::testing::HasSubstr("event 2: event_type:"));
  EXPECT_TRUE(tx.enqueue(std::vector<Event>{}).empty());
  tx.commit();
  EXPECT_EQ(committed(), "");
}

TEST_F(SqliteEnqueue, many_are_written_whole_or_not_at_all) {
  app_->run(
      "CREATE TRIGGER boom BEFORE INSERT ON outbox_event WHEN NEW.aggregate_id = 'boom'"
      " BEGIN SELECT RAISE(ABORT, 'boom'); END");
  sqlite::Transaction tx(app_->db());
  tx.enqueue(event("before"));
  const std::vector<Event> events{event("1"), event("boom"), event("3")};
  EXPECT_EQ(catch_error([&] { tx.enqueue(events); }).code, Errc::invalid_argument);
  tx.enqueue(event("after"));
  tx.commit();
  EXPECT_EQ(committed(), "before,after");
}

TEST_F(SqliteEnqueue, a_transaction_that_sqlite_has_ended_cannot_be_committed) {
  app_->run(
      "CREATE TRIGGER boom BEFORE INSERT ON outbox_event WHEN NEW.aggregate_id = 'boom'"
      " BEGIN SELECT RAISE(ROLLBACK, 'boom'); END");
  sqlite::Transaction tx(app_->db());
  tx.enqueue(event("1"));
  EXPECT_THROW(tx.enqueue(event("boom")), Exception);
  EXPECT_EQ(catch_error([&] { tx.enqueue(event("2")); }).code, Errc::not_in_transaction);
  EXPECT_EQ(catch_error([&] { tx.commit(); }).code, Errc::not_in_transaction);
  EXPECT_EQ(committed(), "");
}

TEST_F(SqliteEnqueue, a_deferred_transaction_that_has_read_says_what_to_do) {
  app_->run("BEGIN");
  EXPECT_EQ(app_->value("SELECT count(*) FROM outbox_event"), "0");
  {
    const Application other(database_.path());
    sqlite::Transaction tx(other.db());
    tx.enqueue(event("other"));
    tx.commit();
  }
  const Error error = catch_error([&] { sqlite::enqueue(app_->db(), event("late")); });
  EXPECT_EQ(error.code, Errc::unavailable);
  EXPECT_EQ(error.remedy, Remedy::retry_transaction);
  EXPECT_EQ(error.effect, Effect::none);
  EXPECT_EQ(error.origin, "sqlite:517");
  EXPECT_THAT(error.hint, ::testing::HasSubstr("BEGIN IMMEDIATE"));
  app_->run("ROLLBACK");
  EXPECT_EQ(committed(), "other");
}

TEST_F(SqliteEnqueue, a_lock_that_is_held_too_long_can_be_tried_again) {
  const Application other(database_.path());
  sqlite::Transaction holds(other.db());
  sqlite3_busy_timeout(app_->db(), 1);
  const Error error = catch_error([&] { const sqlite::Transaction tx(app_->db()); });
  EXPECT_EQ(error.code, Errc::unavailable);
  EXPECT_EQ(error.remedy, Remedy::retry_call);
  holds.rollback();
  const sqlite::Transaction now(app_->db());
}

TEST_F(SqliteEnqueue, a_transaction_inside_another_is_refused) {
  sqlite::Transaction tx(app_->db());
  EXPECT_EQ(catch_error([&] { const sqlite::Transaction inner(app_->db()); }).code,
            Errc::invalid_argument);
  EXPECT_EQ(catch_error([] { const sqlite::Transaction none(nullptr); }).code,
            Errc::invalid_argument);
  tx.enqueue(event("1"));
  tx.commit();
  EXPECT_EQ(catch_error([&] { tx.commit(); }).code, Errc::not_in_transaction);
  EXPECT_EQ(committed(), "1");
}

TEST_F(SqliteEnqueue, a_moved_transaction_goes_on) {
  sqlite::Transaction first(app_->db());
  first.enqueue(event("1"));
  sqlite::Transaction second(std::move(first));
  second.enqueue(event("2"));
  second.commit();
  EXPECT_EQ(committed(), "1,2");
}

TEST_F(SqliteEnqueue, a_file_without_an_outbox_says_how_to_make_one) {
  const SqliteDatabase empty;
  const Application other(empty.path());
  sqlite::Transaction tx(other.db());
  const Error error = catch_error([&] { tx.enqueue(event("1")); });
  EXPECT_EQ(error.code, Errc::not_found);
  EXPECT_THAT(error.hint, ::testing::HasSubstr("outbox migrate"));
}

TEST_F(SqliteEnqueue, a_connection_closes_as_always_and_its_address_may_be_used_again) {
  for (int i = 0; i < 20; ++i) {
    const Application app(database_.path());  // Its destructor checks sqlite3_close().
    sqlite::Transaction tx(app.db());
    tx.enqueue(event("1"));
    tx.commit();
  }
  EXPECT_EQ(app_->value("SELECT count(*) FROM outbox_event"), "20");
}

TEST_F(SqliteEnqueue, a_connection_that_could_not_be_closed_goes_on) {
  const auto publish = [&] {
    sqlite::Transaction tx(app_->db());
    tx.enqueue(event("1"));
    tx.commit();
  };
  publish();
  sqlite3_stmt* own = nullptr;
  ASSERT_EQ(sqlite3_prepare_v2(app_->db(), "SELECT 1", -1, &own, nullptr), SQLITE_OK);
  EXPECT_EQ(sqlite3_close(app_->db()), SQLITE_BUSY);
  publish();
  publish();
  sqlite3_finalize(own);
  EXPECT_EQ(committed(), "1,1,1");
}

TEST_F(SqliteEnqueue, an_application_that_finalizes_every_statement_before_closing) {
  sqlite::Transaction tx(app_->db());
  tx.enqueue(event("1"));
  tx.commit();
  while (sqlite3_stmt* stmt = sqlite3_next_stmt(app_->db(), nullptr)) sqlite3_finalize(stmt);
}

TEST_F(SqliteEnqueue, a_schema_that_changed_meanwhile_is_followed) {
  const auto publish = [&](const std::string& id) {
    sqlite::Transaction tx(app_->db());
    tx.enqueue(event(id));
    tx.commit();
  };
  publish("1");
  Application(database_.path())
      .run("CREATE TABLE more (id); ALTER TABLE outbox_event ADD COLUMN more TEXT");
  publish("2");
  EXPECT_EQ(committed(), "1,2");
}

TEST_F(SqliteEnqueue, threads_have_a_connection_each) {
  std::vector<std::future<void>> threads;
  for (int t = 0; t < 4; ++t) {
    threads.push_back(std::async(std::launch::async, [this, t] {
      const Application own(database_.path());
      sqlite3_busy_timeout(own.db(), 120'000);  // By default a connection does not wait.
      for (int i = 0; i < 50; ++i) {
        sqlite::Transaction tx(own.db());
        tx.enqueue(event(std::to_string(t)));
        if (i % 5 != 0) tx.commit();
      }
    }));
  }
  for (auto& thread : threads) thread.get();
  EXPECT_EQ(app_->value("SELECT count(*) || ' ' || count(DISTINCT id) FROM outbox_event"),
            "160 160");
}

}  // namespace
}  // namespace outbox::conformance
