// Tests a relay whose connections to the database break or hang: what it remembers, and that it can
// be stopped.
#include <fstream>
#include <future>

#include "integration/relay/harness.hpp"
#include "support/eventually.hpp"
#include "support/postgres_database.hpp"
#include "support/relay_process.hpp"
#include "support/tcp_gate.hpp"
#include "support/temp_dir.hpp"

namespace outbox::test {
namespace {

using std::chrono::seconds;

constexpr std::size_t kEvents = 505;

class Reconnect : public ::testing::Test {
 protected:
  void SetUp() override {
    OUTBOX_NEEDS_POSTGRES();
    database_ = std::make_unique<PostgresDatabase>();
    options_.store_url = database_->url();
    // Nothing is settled before the end.
    options_.settle_interval = std::chrono::minutes(10);
    options_.settle_events = 100000;
  }

  void write() const {
    database_->connect().exec(
        "INSERT INTO outbox.new_event (aggregate_type, aggregate_id, event_type, payload) "
        "SELECT 'Order', n::text, 'OrderPlaced', '{}' FROM generate_series(1, $1::int) n",
        {std::to_string(kEvents)});
  }
  /// Breaks all of the relay's connections, and runs `meanwhile` before it can reconnect.
  void break_connections(const std::string& meanwhile) const {
    const std::string generation =
        database_->connect().value("SELECT max(generation) FROM outbox.lane");
    Pg(database_->url())
        .exec(
            "BEGIN; LOCK TABLE outbox.lane IN ACCESS EXCLUSIVE MODE; " + meanwhile +
            "; SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
            "AND pid <> pg_backend_pid(); COMMIT");
    ASSERT_TRUE(eventually([&] {
      return database_->connect().value("SELECT max(generation) FROM outbox.lane") != generation;
    }));
  }
  /// Waits until the relay has polled the log since it reconnected.
  static bool reads_again(const Relay& relay) {
    return eventually([&] {
      const RelayReport report = relay.report();
      return report.owner && report.fetches > 0;
    });
  }

  std::unique_ptr<PostgresDatabase> database_;
  RelayOptions options_;
};

TEST_F(Reconnect, what_turns_out_to_be_settled_is_not_called_abandoned) {
  options_.subscriptions = {custom("all")};
  const auto relay = make_relay(options_);
  const auto all = record(*relay, "all");
  ASSERT_TRUE(relay->start());
  write();
  ASSERT_TRUE(eventually([&] { return read_report(*relay, "all").delivered == kEvents; }));
  // The new row is what the store has if the settlement was committed, and the connection lost
  // before the relay got the answer.
  break_connections(
      "INSERT INTO outbox.settlement (subscription, kind, lanes, generation, s1, s2) "
      "SELECT subscription, 'settle', lanes, generation, s1, pg_current_snapshot() FROM outbox.settlement "
      "WHERE lanes <> 0 ORDER BY generation DESC, id DESC LIMIT 1");
  ASSERT_TRUE(reads_again(*relay));
  const StopReport report = relay->stop(seconds(60));
  EXPECT_TRUE(report.drained);
  EXPECT_EQ(report.abandoned, 0U);
  EXPECT_EQ(all->events().size(), kEvents);
}

TEST_F(Reconnect, what_was_acked_is_not_sent_again_when_settings_change_meanwhile) {
  const TempDir folder;
  SubscriptionSpec lines{.name = "lines", .sink = "file"};
  lines.sink_settings["path"] = folder.file("before");
  options_.subscriptions = {lines};
  const auto relay = make_relay(options_);
  ASSERT_TRUE(relay->start());
  write();
  ASSERT_TRUE(eventually([&] { return read_report(*relay, "lines").delivered == kEvents; }));
  break_connections(
      "UPDATE outbox.subscription SET config_version = config_version + 1, "
      "config = jsonb_set(config, '{sink_settings,path}', to_jsonb('" +
      folder.file("after") + "'::text))");
  write();
  ASSERT_TRUE(eventually([&] { return lines_in(folder.file("after")) >= kEvents; }));
  EXPECT_TRUE(relay->stop(seconds(60)).drained);
  EXPECT_EQ(lines_in(folder.file("before")), kEvents);
  EXPECT_EQ(lines_in(folder.file("after")), kEvents);
}

TEST_F(Reconnect, a_stop_while_it_still_connects_is_heard) {
  const std::string url = database_->url();
  const auto at = url.find("127.0.0.1:") + std::string("127.0.0.1:").size();
  const auto end = url.find('/', at);
  TcpGate gate(std::stoi(url.substr(at, end - at)));
  gate.set(TcpGate::Mode::stalled);
  options_.store_url = url.substr(0, at) + std::to_string(gate.port()) + url.substr(end);
  const auto relay = make_relay(options_);
  auto started = std::async(std::launch::async, [&] { return relay->start(); });
  ASSERT_TRUE(eventually([&] { return gate.connections() > 0; }));
  relay->request_stop();
  auto stopped = std::async(std::launch::async, [&] { return relay->stop(seconds(1)); });
  gate.set(TcpGate::Mode::open);
  ASSERT_TRUE(started.get());
  const bool ends = stopped.wait_for(seconds(60)) == std::future_status::ready;
  EXPECT_TRUE(ends);
  if (!ends) relay->request_stop();  // so that the test ends
}

}  // namespace
}  // namespace outbox::test
