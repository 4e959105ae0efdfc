// The base of tests with a relay in this process on a database of its own.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "integration/relay/harness.hpp"
#include "store/store.hpp"
#include "support/eventually.hpp"
#include "support/postgres_database.hpp"
#include "support/servers.hpp"

namespace outbox::test {

/// A subscription that a rejected event stops.
inline SubscriptionSpec stopping(const std::string& name) {
  SubscriptionSpec spec = custom(name);
  spec.on_reject = OnReject::stop;
  return spec;
}

class RelayOnPostgres : public ::testing::Test {
 protected:
  void SetUp() override {
    OUTBOX_NEEDS_POSTGRES();
    database_ = std::make_unique<PostgresDatabase>();
    options_.store_url = database_->url();
  }

  [[nodiscard]] const PostgresDatabase& database() const { return *database_; }
  [[nodiscard]] std::unique_ptr<store::Catalog> catalog() const {
    auto store = store::open_store(
        {.url = database_->url(), .schema = "outbox", .application = "outbox test"});
    return std::move((*store)->catalog().value());
  }
  [[nodiscard]] store::SubscriptionRow row(const std::string& name) const {
    const auto rows = catalog()->subscriptions();
    for (const auto& row : *rows) {
      if (row.spec.name == name) return row;
    }
    return {};
  }
  /// Whether the relay is at rest. Both numbers are of one report, since the sink may have an event
  /// before it is reported.
  static bool is_at_rest(const Relay& relay, const std::string& name, std::uint64_t delivered) {
    const SubscriptionReport report = read_report(relay, name);
    return report.delivered == delivered && report.in_window == 0;
  }
  /// Enqueues `count` small events, in one statement.
  void write(int count, const std::string& key = "k",
             const std::string& type = "OrderPlaced") const {
    database_->connect().exec(
        "INSERT INTO outbox.new_event (aggregate_type, aggregate_id, event_type, payload) "
        "SELECT 'Order', $1, $2, ('{\"n\": ' || n || '}')::jsonb FROM generate_series(1, $3::int) n",
        {key, type, std::to_string(count)});
  }

  /// Expects that the relay renews its lease from now on for longer than the lease, which must be
  /// 10 s.
  void renews_past_the_lease() const {
    Pg connection(database_->url());
    const std::string begun = connection.value("SELECT clock_timestamp()");
    EXPECT_TRUE(eventually([&] {
      return connection.value(
                 "SELECT count(*) FROM outbox.relay WHERE heartbeat_at > $1::timestamptz + '12 s'",
                 begun) == "1";
    }));
  }

  /// Makes a statement on the subscriptions fail as if it had met a deadlock, until the trigger is
  /// dropped.
  static void break_subscriptions(Pg& person, const std::string& statement) {
    person.exec(
        "CREATE FUNCTION public.deadlock() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE 'a deadlock' USING ERRCODE = '40P01'; END $$");
    person.exec("CREATE TRIGGER broken BEFORE " + statement +
                " ON outbox.subscription FOR EACH ROW EXECUTE FUNCTION public.deadlock()");
  }

  RelayOptions options_;

 private:
  std::unique_ptr<PostgresDatabase> database_;
};

}  // namespace outbox::test
