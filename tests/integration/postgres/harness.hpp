// What the tests of this folder share.
#pragma once

#include <gmock/gmock.h>

#include <memory>
#include <outbox/error.hpp>
#include <string>

#include "store/store.hpp"
#include "support/pg.hpp"
#include "support/postgres_database.hpp"
#include "support/servers.hpp"

namespace outbox::test {

template <class T>
[[nodiscard]] ::testing::AssertionResult ok(const Result<T>& result) {
  if (result) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << result.error().text();
}

[[nodiscard]] inline std::unique_ptr<store::Store> open_at(const std::string& url,
                                                           const std::string& schema = "outbox") {
  auto store = store::open_store({.url = url, .schema = schema});
  EXPECT_TRUE(ok(store));
  return store ? std::move(*store) : nullptr;
}

/// A database with the schema in it.
class PostgresTest : public ::testing::Test {
 protected:
  void SetUp() override {
    OUTBOX_NEEDS_POSTGRES();
    database_ = std::make_unique<PostgresDatabase>();
    store_ = open_at(database_->url());
  }
  [[nodiscard]] Pg connect() const { return database_->connect(); }
  [[nodiscard]] std::string value(const std::string& sql) const { return connect().value(sql); }

  std::unique_ptr<PostgresDatabase> database_;
  std::unique_ptr<store::Store> store_;
};

/// The SQLSTATE of the statement's error; empty if it succeeds.
inline std::string find_sqlstate(Pg& connection, const std::string& sql) {
  try {
    (void)connection.exec(sql);
  } catch (const PgError& error) {
    return error.state();
  }
  return {};
}

/// The message of the statement's error; empty if it succeeds.
inline std::string find_complaint(Pg& connection, const std::string& sql) {
  try {
    (void)connection.exec(sql);
  } catch (const PgError& error) {
    return error.what();
  }
  return {};
}

}  // namespace outbox::test

#define OUTBOX_NEEDS_PREPARED_TRANSACTIONS(connection)                              \
  if ((connection).value("SHOW max_prepared_transactions") == "0") {                \
    GTEST_SKIP() << "needs a PostgreSQL server with max_prepared_transactions > 0"; \
  }                                                                                 \
  static_assert(true)
