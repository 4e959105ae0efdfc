// Tests with_transaction() of outbox/sqlite.hpp: it does all or nothing, and begins again while
// other connections are in the way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <functional>
#include <optional>
#include <outbox/sqlite.hpp>
#include <stdexcept>
#include <string>

#include "conformance/store/sqlite_database.hpp"
#include "store/store.hpp"
#include "support/sqlite.hpp"

namespace outbox::conformance {
namespace {

using sqlite::Transaction;
using sqlite::with_transaction;
using test::SqliteFile;

class SqliteWithTransaction : public ::testing::Test {
 protected:
  void SetUp() override {
    auto store = store::open_store({.url = database_.url()});
    ASSERT_TRUE(store);
    ASSERT_TRUE((*store)->migrate());
    file_.emplace(database_.path());
    other_.emplace(database_.path());
    file_->run("CREATE TABLE stock (item TEXT, count INTEGER); INSERT INTO stock VALUES ('a', 10)");
    sqlite3_busy_handler(file_->native(), &SqliteWithTransaction::on_busy, this);
  }
  static Event order() {
    return {.aggregate_type = "order",
            .aggregate_id = "42",
            .event_type = "OrderPlaced",
            .payload = "{}"};
  }
  void sell(int code) { sqlite::check(file_->native(), code, "sell"); }
  void sell(const char* sql) {
    sell(sqlite3_exec(file_->native(), sql, nullptr, nullptr, nullptr));
  }
  [[nodiscard]] std::string value(const std::string& sql) { return other_->value(sql); }
  /// Ends the other connection's transaction at the refusal number ends_at_. SQLite never waits.
  static int on_busy(void* test, int /*waited*/) {
    auto& self = *static_cast<SqliteWithTransaction*>(test);
    if (++self.refusals_ == self.ends_at_) self.end_();
    return 0;
  }

  SqliteDatabase database_;
  std::optional<SqliteFile> file_;
  std::optional<SqliteFile> other_;
  int refusals_{0};
  int ends_at_{0};
  std::function<void()> end_{[this] { other_->run("COMMIT"); }};
  const RetryOptions at_once_{.first_pause = std::chrono::milliseconds(0)};
};

TEST_F(SqliteWithTransaction, commits_and_returns_what_the_function_returned) {
  const auto id = with_transaction(file_->native(), [&](Transaction& tx) {
    sell("UPDATE stock SET count = count - 1");
    return tx.enqueue(order());
  });
  with_transaction(file_->native(), [&](Transaction& tx) { (void)tx.enqueue(order()); });
  EXPECT_EQ(value("SELECT count FROM stock"), "9");
  EXPECT_EQ(value("SELECT count(*) FROM outbox_event"), "2");
  EXPECT_EQ(value("SELECT lower(hex(id)) FROM outbox_event ORDER BY seq LIMIT 1").substr(0, 8),
            id.str().substr(0, 8));
}

TEST_F(SqliteWithTransaction, what_the_function_throws_rolls_back_and_passes_through) {
  int calls = 0;
  EXPECT_THROW(with_transaction(file_->native(),
                                [&](Transaction& tx) {
                                  ++calls;
                                  sell("UPDATE stock SET count = 0");
                                  (void)tx.enqueue(order());
                                  throw std::domain_error("no such customer");
                                }),
               std::domain_error);
  EXPECT_THROW(with_transaction(file_->native(), [](Transaction&) { throw 7; }), int);
  try {
    with_transaction(file_->native(), [&](Transaction&) { sell("SELECT nothing"); });
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Exception& thrown) {
    EXPECT_THAT(thrown.what(), ::testing::HasSubstr("sell"));
    EXPECT_EQ(thrown.error().origin, "sqlite:1");
  }
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(value("SELECT count FROM stock"), "10");
  EXPECT_EQ(value("SELECT count(*) FROM outbox_event"), "0");
  EXPECT_EQ(with_transaction(file_->native(),
                             [&](Transaction& tx) {
                               (void)tx.enqueue(order());
                               tx.rollback();
                               return 5;
                             }),
            5);
  EXPECT_EQ(value("SELECT count(*) FROM outbox_event"), "0");
}

TEST_F(SqliteWithTransaction, calls_that_nest_and_open_transactions_are_refused) {
  const auto refused = [&] {
    with_transaction(file_->native(), [](Transaction&) { FAIL() << "was called"; });
  };
  EXPECT_THROW(with_transaction(file_->native(), [&](Transaction&) { refused(); }), Exception);
  file_->run("BEGIN; UPDATE stock SET count = 3");
  EXPECT_THROW(refused(), Exception);
  EXPECT_EQ(file_->value("SELECT count FROM stock"), "3");
  file_->run("COMMIT");
  EXPECT_THROW(with_transaction(nullptr, [](Transaction&) {}), Exception);
  EXPECT_THROW(with_transaction(file_->native(), [](Transaction&) {}, {.attempts = 0}), Exception);
}

TEST_F(SqliteWithTransaction, a_file_that_is_busy_is_tried_again) {
  other_->run("BEGIN IMMEDIATE; UPDATE stock SET count = count - 1");
  ends_at_ = 3;
  int calls = 0;
  with_transaction(
      file_->native(),
      [&](Transaction& tx) {
        ++calls;
        sell("UPDATE stock SET count = count - 1");
        (void)tx.enqueue(order());
      },
      at_once_);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(refusals_, 3);
  EXPECT_EQ(value("SELECT count FROM stock"), "8");
}

TEST_F(SqliteWithTransaction, a_commit_that_a_reader_stops_is_done_again_from_the_beginning) {
  // Without a write-ahead log a reader holds back COMMIT.
  other_.reset();
  file_->run("PRAGMA journal_mode = DELETE");
  sqlite3* reader = nullptr;
  ASSERT_EQ(sqlite3_open(database_.path().c_str(), &reader), SQLITE_OK);
  const auto read = [&](const char* sql) {
    EXPECT_EQ(sqlite3_exec(reader, sql, nullptr, nullptr, nullptr), SQLITE_OK);
  };
  read("BEGIN; SELECT * FROM stock");
  end_ = [&] { read("COMMIT"); };
  ends_at_ = 2;
  int calls = 0;
  with_transaction(
      file_->native(),
      [&](Transaction& tx) {
        ++calls;
        sell("UPDATE stock SET count = count - 1");
        (void)tx.enqueue(order());
      },
      at_once_);
  EXPECT_EQ(sqlite3_close(reader), SQLITE_OK);
  EXPECT_GE(calls, 2);
  EXPECT_EQ(file_->value("SELECT count FROM stock"), "9");
  EXPECT_EQ(file_->value("SELECT count(*) FROM outbox_event"), "1");
}

TEST_F(SqliteWithTransaction, attempts_are_bounded) {
  other_->run("BEGIN IMMEDIATE");
  try {
    with_transaction(file_->native(), [](Transaction&) { FAIL() << "was called"; },
                     {.attempts = 4, .first_pause = std::chrono::milliseconds(0)});
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Exception& thrown) {
    EXPECT_EQ(thrown.error().origin, "sqlite:5");
  }
  EXPECT_EQ(refusals_, 4);
  other_->run("COMMIT");
}

TEST_F(SqliteWithTransaction, an_exception_of_the_application_may_say_that_it_was_a_conflict) {
  struct Busy : std::runtime_error {
    using std::runtime_error::runtime_error;
  };
  int calls = 0;
  const auto place = [&](Transaction& tx) {
    (void)tx.enqueue(order());
    if (++calls < 3) throw Busy("busy");
    return calls;
  };
  RetryOptions options = at_once_;
  EXPECT_THROW((void)with_transaction(file_->native(), place, options), Busy);
  options.is_conflict = [](const std::exception& thrown) {
    return dynamic_cast<const Busy*>(&thrown) != nullptr;
  };
  calls = 0;
  EXPECT_EQ(with_transaction(file_->native(), place, options), 3);
  EXPECT_EQ(value("SELECT count(*) FROM outbox_event"), "1");
}

TEST_F(SqliteWithTransaction, what_the_function_committed_itself_is_not_done_again) {
  int calls = 0;
  const auto busy = [](const std::exception&) { return true; };
  EXPECT_THROW(with_transaction(file_->native(),
                                [&](Transaction&) {
                                  ++calls;
                                  sell("UPDATE stock SET count = count - 1; COMMIT");
                                  throw std::runtime_error("busy");
                                },
                                {.is_conflict = busy}),
               std::runtime_error);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(value("SELECT count FROM stock"), "9");
}

}  // namespace
}  // namespace outbox::conformance
