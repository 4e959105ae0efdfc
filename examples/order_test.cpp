// How to test a service that enqueues: what it enqueued arrives at a sink of the test, through a
// real relay that runs as long as there is something to deliver. Needs GoogleTest, and before the
// first run: outbox migrate --store sqlite:shop.db
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <chrono>
#include <memory>
#include <outbox/relay.hpp>
#include <outbox/sqlite.hpp>
#include <outbox/status.hpp>
#include <outbox/testing.hpp>
#include <string>
#include <utility>
#include <vector>

namespace {

constexpr const char* kStore = "sqlite:shop.db";

// ---- the service

outbox::EventId place_order(sqlite3* db, const std::string& order, const std::string& type) {
  return outbox::sqlite::with_transaction(db, [&](outbox::sqlite::Transaction& tx) {
    return tx.enqueue({.aggregate_type = "order",
                       .aggregate_id = order,
                       .event_type = type,
                       .payload = R"({"total": "12.50"})"});
  });
}

// ---- its tests

class OrderTest : public ::testing::Test {
 protected:
  OrderTest() { EXPECT_EQ(sqlite3_open("shop.db", &db_), SQLITE_OK); }
  ~OrderTest() override { sqlite3_close(db_); }

  /// Gives the sink all events that this subscription has not delivered.
  static outbox::Result<outbox::RunReport> deliver(const std::string& subscription,
                                                   std::unique_ptr<outbox::Sink> sink) {
    outbox::RelayOptions options{.store_url = kStore};
    options.subscriptions = {{.name = subscription, .sink = "custom", .max_attempts = 1}};
    auto relay = outbox::Relay::create(options);
    if (!relay) return outbox::unexpected(relay.error());
    if (auto used = (*relay)->use(subscription, std::move(sink)); !used)
      return outbox::unexpected(used.error());
    return (*relay)->run_once(std::chrono::seconds(60));
  }

  sqlite3* db_{nullptr};
};

TEST_F(OrderTest, each_order_arrives_in_its_order) {
  place_order(db_, "1", "OrderPlaced");
  place_order(db_, "1", "OrderPaid");
  auto sink = std::make_unique<outbox::testing::RecordingSink>();
  const auto recording = sink->recording();
  const auto report = deliver("arrives", std::move(sink));
  ASSERT_TRUE(report && report->settled);
  std::vector<std::string> types;
  for (const auto& event : recording->events()) types.push_back(event.event_type);
  EXPECT_EQ(types, (std::vector<std::string>{"OrderPlaced", "OrderPaid"}));
  EXPECT_EQ(recording->events().front().body, R"({"total": "12.50"})");
}

TEST_F(OrderTest, one_that_the_destination_refuses_does_not_hold_the_others) {
  const outbox::EventId refused = place_order(db_, "2", "OrderPlaced");
  place_order(db_, "3", "OrderPlaced");
  auto sink = std::make_unique<outbox::testing::FailingSink>([](const outbox::EventView& event) {
    return event.aggregate_id == "2" ? outbox::Outcome::Kind::rejected
                                     : outbox::Outcome::Kind::acked;
  });
  const auto recording = sink->recording();
  const auto report = deliver("refused", std::move(sink));
  ASSERT_TRUE(report && report->settled);
  EXPECT_EQ(report->parked, 1U);
  EXPECT_EQ(recording->events().back().aggregate_id, "3");

  const auto status = outbox::StatusReader::open({.store_url = kStore});
  const auto events = status->events(refused);
  ASSERT_TRUE(events);
  for (const auto& one : events->at(0).subscriptions) {
    if (one.subscription == "refused") {
      EXPECT_EQ(one.state, outbox::EventState::dead);
    }
  }
}

}  // namespace
