// The base of tests that run on both stores, each time with an outbox of its own.
#pragma once

#include "integration/relay/harness.hpp"
#ifdef OUTBOX_WITH_POSTGRES
#include "support/ledger_check.hpp"
#include "support/postgres_database.hpp"
#endif
#include "support/temp_dir.hpp"

namespace outbox::test {

/// The parameter says whether the store is PostgreSQL; otherwise it is SQLite. A class that derives
/// from this one returns from its SetUp() when IsSkipped().
class OnBothStores : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (GetParam()) {
#ifdef OUTBOX_WITH_POSTGRES
      OUTBOX_NEEDS_POSTGRES();
      database_ = std::make_unique<PostgresDatabase>();
      url_ = database_->url();
#else
      GTEST_SKIP() << "needs a build with PostgreSQL: OUTBOX_WITH_POSTGRES=ON";
#endif
    } else {
      url_ = "sqlite:" + folder_.file("shop.db");
    }
    store_ = std::move(
        *store::open_store({.url = url_, .schema = "outbox", .application = "outbox test"}));
    if (!GetParam()) {
      ASSERT_TRUE(store_->migrate());
    }
  }

  /// Writes events of one key, one of each type.
  void write(const std::string& key, const std::vector<std::string>& types,
             const std::string& payload = "{}") const {
    std::vector<Event> events;
    for (const std::string& type : types) {
      Event event;
      event.aggregate_type = "order";
      event.aggregate_id = key;
      event.event_type = type;
      event.payload = payload;
      events.push_back(event);
    }
    const auto written = store_->writer().value()->write(events);
    ASSERT_TRUE(written) << written.error().text();
  }
  /// The row of the only subscription.
  [[nodiscard]] store::SubscriptionRow row() const {
    return store_->catalog().value()->subscriptions().value().front();
  }
  /// Expects that the ledger balances. The suite's own check of the ledger reads PostgreSQL only.
  void expect_sound_ledger([[maybe_unused]] const std::string& subscription) const {
#ifdef OUTBOX_WITH_POSTGRES
    if (!database_) return;
    Pg connection(database_->url());
    EXPECT_EQ(ledger_fault(connection, subscription), "");
#endif
  }

  const TempDir folder_;
#ifdef OUTBOX_WITH_POSTGRES
  std::unique_ptr<PostgresDatabase> database_;
#endif
  std::string url_;
  std::unique_ptr<store::Store> store_;
};

}  // namespace outbox::test
