// Tests that the configuration of the relay that first has the lanes counts. The group of a file
// has one owner.
#include <fstream>
#include <sstream>

#include "integration/relay/harness.hpp"
#include "support/child_process.hpp"
#include "support/eventually.hpp"
#include "support/postgres_database.hpp"
#include "support/relay_process.hpp"
#include "support/temp_dir.hpp"

namespace outbox::test {
namespace {

class RelayConfiguration : public ::testing::Test {
 protected:
  void SetUp() override {
    OUTBOX_NEEDS_POSTGRES();
    database_ = std::make_unique<PostgresDatabase>();
    store_ = store::open_store({.url = database_->url()}).value();
  }

  /// Starts a relay whose configuration delivers only events of this type, to a file of its own.
  [[nodiscard]] std::unique_ptr<ChildProcess> start(const std::string& relay,
                                                    const std::string& event_type) const {
    std::ofstream(file(relay, ".toml"))
        << "[store]\nurl = \"" << database_->url() << "\"\n[subscription.orders]\nsink = \"file\"\n"
        << "event_types = [\"" << event_type << "\"]\nheaders = { secret-of-" << relay
        << " = \"hidden-words\" }\n[subscription.orders.file]\npath = \"" << file(relay, ".out")
        << "\"\n";
    return start_outbox_relay(file(relay, ".toml"), file(relay, ".log"));
  }
  [[nodiscard]] std::string file(const std::string& relay, const std::string& what) const {
    return folder_.file(relay + what);
  }
  [[nodiscard]] bool logs(const std::string& relay, const std::string& words) const {
    return eventually([&] { return read_log(relay).find(words) != std::string::npos; });
  }
  [[nodiscard]] std::string read_log(const std::string& relay) const {
    std::ifstream in(file(relay, ".log"));
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
  }
  /// The number of log lines that contain the words.
  [[nodiscard]] std::size_t times(const std::string& relay, const std::string& words) const {
    std::istringstream in(read_log(relay));
    std::size_t count = 0;
    for (std::string line; std::getline(in, line);)
      count += line.find(words) == std::string::npos ? 0 : 1;
    return count;
  }
  void write(const std::string& type, int events) const {
    database_->connect().exec(
        "SELECT outbox.enqueue('Order', n::text, $1, '{}'::jsonb) FROM generate_series(1, $2::int) n",
        {type, std::to_string(events)});
  }
  [[nodiscard]] bool arrive(const std::string& relay, std::size_t lines) const {
    return eventually([&] { return lines_in(file(relay, ".out")) >= lines; });
  }
  [[nodiscard]] store::SubscriptionRow row() const {
    return (*store_->catalog())->subscriptions().value().at(0);
  }
  void apply(SubscriptionSpec spec) const { ASSERT_TRUE((*store_->catalog())->apply(spec)); }

  const TempDir folder_;
  std::unique_ptr<PostgresDatabase> database_;
  std::unique_ptr<store::Store> store_;
};

TEST_F(RelayConfiguration, a_relay_without_the_lanes_changes_nothing_and_says_what_it_would) {
  const auto first = start("first", "OrderPlaced");
  ASSERT_TRUE(logs("first", "subscription created from the configuration subscription=orders"));
  const auto second = start("second", "OrderPaid");
  ASSERT_TRUE(logs("second", "is not applied"));
  EXPECT_NE(read_log("second").find(
                R"(event_types: store [\"OrderPlaced\"], configuration [\"OrderPaid\"])"),
            std::string::npos)
      << read_log("second");
  EXPECT_EQ(row().config_version, 1);
  write("OrderPlaced", 10);
  ASSERT_TRUE(arrive("first", 10));
  EXPECT_EQ(lines_in(file("second", ".out")), 0U);

  // Then the second relay takes over, and applies its own configuration.
  first->signal(SIGTERM);
  EXPECT_EQ(first->wait(), 0);
  ASSERT_TRUE(
      logs("second", R"(setting=event_types before="[\"OrderPlaced\"]" after="[\"OrderPaid\"]")"));
  EXPECT_EQ(row().config_version, 2);
  EXPECT_EQ(times("second", "is not applied"), 1U) << read_log("second");
  write("OrderPlaced", 5);
  write("OrderPaid", 10);
  ASSERT_TRUE(arrive("second", 10));
  second->signal(SIGTERM);
  EXPECT_EQ(second->wait(), 0);
  EXPECT_EQ(lines_in(file("first", ".out")), 10U);
  EXPECT_EQ(lines_in(file("second", ".out")), 10U);
  for (const char* relay : {"first", "second"}) {
    EXPECT_EQ(read_log(relay).find("hidden-words"), std::string::npos) << "may be secret";
    EXPECT_EQ(read_log(relay).find(".out"), std::string::npos) << "may be secret";
  }
}

TEST_F(RelayConfiguration, what_a_person_changed_outlives_a_reconnect_and_is_said_once) {
  const auto relay = start("relay", "OrderPlaced");
  ASSERT_TRUE(logs("relay", "subscription created"));
  SubscriptionSpec changed = row().spec;
  changed.event_types = {"OrderPaid"};
  apply(changed);
  ASSERT_TRUE(logs("relay", "the store was changed"));
  for (int round = 0; round < 2; ++round) {
    const std::string generation = "SELECT max(generation) FROM outbox.lane";
    const std::string before = database_->connect().value(generation);
    database_->connect().exec(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
        "AND pid <> pg_backend_pid()");
    ASSERT_TRUE(eventually([&] { return database_->connect().value(generation) != before; }));
    write("OrderPaid", 3);
    ASSERT_TRUE(arrive("relay", static_cast<std::size_t>(3 * (round + 1))));
  }
  EXPECT_EQ(row().config_version, 2);
  EXPECT_EQ(times("relay", "is not applied"), 1U) << read_log("relay");
  // Another change makes another difference, which is logged again.
  changed.event_types = {"OrderPaid", "OrderSent"};
  apply(changed);
  EXPECT_TRUE(eventually([&] { return times("relay", "is not applied") == 2; }))
      << read_log("relay");
  relay->signal(SIGTERM);
  EXPECT_EQ(relay->wait(), 0);
  // After a restart it applies its configuration.
  const auto again = start("relay", "OrderPlaced");
  EXPECT_TRUE(eventually(
      [&] { return row().spec.event_types == std::vector<std::string>{"OrderPlaced"}; }));
  again->signal(SIGTERM);
  EXPECT_EQ(again->wait(), 0);
}

}  // namespace
}  // namespace outbox::test
