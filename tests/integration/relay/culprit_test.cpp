// An event that kills the relay: after it has died a few times the relays find which one it is and park it; the others arrive in order.
#include <fstream>
#include <map>

#include "integration/relay/harness.hpp"
#ifdef OUTBOX_WITH_POSTGRES
#include "support/postgres_database.hpp"
#endif
#include "support/relay_process.hpp"
#include "support/testkit.hpp"

namespace outbox::test {
namespace {

class Culprit : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (GetParam()) {
#ifdef OUTBOX_WITH_POSTGRES
      OUTBOX_NEEDS_POSTGRES();
      database_ = std::make_unique<PostgresDatabase>();
      options_.store_url = database_->url();
#else
      GTEST_SKIP() << "needs a build with PostgreSQL: OUTBOX_WITH_POSTGRES=ON";
#endif
    } else {
      options_.store_url = "sqlite:" + folder_.file("shop.db");
    }
    options_.file = folder_.file("lines");
    options_.log = folder_.file("log");
    store_ = std::move(*store::open_store(
        {.url = options_.store_url, .schema = "outbox", .application = "outbox test"}));
    if (!GetParam()) {
      ASSERT_TRUE(store_->migrate());
    }
  }

  void write(const std::string& key, const std::string& type, const std::string& body) const {
    Event event;
    event.aggregate_type = "order";
    event.aggregate_id = key;
    event.event_type = type;
    event.payload = "\"" + body + "\"";
    const std::vector<Event> one{event};
    auto writer = store_->writer();
    ASSERT_TRUE(writer);
    ASSERT_TRUE((*writer)->write(one));
  }
  /// The bodies in the order of their first arrival, by key.
  [[nodiscard]] std::map<char, std::vector<std::string>> arrived() const {
    std::map<char, std::vector<std::string>> keys;
    std::set<std::string> seen;
    std::ifstream in(options_.file);
    for (std::string line; std::getline(in, line);) {
      if (line.size() < 3 || !seen.insert(line).second) continue;
      keys[line[1]].push_back(line.substr(1, line.size() - 2));
    }
    return keys;
  }
  [[nodiscard]] std::vector<store::ParkedListing> parked() const {
    return store_->parked_events().value()->list({}, 100, false).value();
  }
  [[nodiscard]] std::string log() const {
    std::ifstream in(options_.log);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  /// Starts a relay again whenever it has died, as a supervisor does. Returns how often it died.
  int supervise(const std::function<bool()>& done) const {
    int deaths = 0;
    std::unique_ptr<testkit::ChildProcess> relay;
    EXPECT_TRUE(eventually([&] {
      if (relay && !relay->running()) {
        EXPECT_EQ(relay->ended_with(), "signal 11") << log();
        ++deaths;
        relay.reset();
      }
      if (!relay) relay = start_relay(options_);
      return done();
    })) << log();
    if (relay && relay->running()) {
      relay->signal(SIGTERM);
      (void)relay->wait();
    }
    return deaths;
  }

  testkit::TempDir folder_;
#ifdef OUTBOX_WITH_POSTGRES
  std::unique_ptr<PostgresDatabase> database_;
#endif
  RelayProcessOptions options_;
  std::unique_ptr<store::Store> store_;
};

INSTANTIATE_TEST_SUITE_P(Store, Culprit, ::testing::Values(true, false),
                         [](const auto& store) { return store.param ? "Postgres" : "Sqlite"; });

TEST_P(Culprit, an_event_that_kills_the_relay_is_found_and_parked_and_the_others_arrive_in_order) {
  std::map<char, std::vector<std::string>> expected;
  for (int i = 10; i < 40; ++i) {
    for (const char key : {'a', 'b', 'c'}) {
      const std::string body = key + std::to_string(i);
      const bool kills = key == 'b' && i == 25;
      write(std::string(1, key), kills ? "Killer" : "Made", body);
      // What comes behind it in its key waits.
      if (key != 'b' || i < 25) expected[key].push_back(body);
    }
  }
  const int deaths = supervise([&] {
    const auto rows = parked();
    return arrived() == expected && rows.size() == 15;
  });
  EXPECT_GE(deaths, 4) << "the relay cannot know it earlier";
  EXPECT_LE(deaths, 7);
  const auto rows = parked();
  EXPECT_EQ(rows[0].event_type, "Killer");
  EXPECT_EQ(rows[0].state, store::ParkedState::retrying);
  EXPECT_GE(rows[0].attempts, 2U);
  EXPECT_NE(rows[0].error.find("the relay died "), std::string::npos) << rows[0].error;
  for (std::size_t i = 1; i < rows.size(); ++i)
    EXPECT_EQ(rows[i].state, store::ParkedState::waiting);

  // Its retries kill the relay again, and count.
  const std::size_t attempts = rows[0].attempts;
  EXPECT_GE(supervise([&] { return parked()[0].attempts > attempts; }), 1);
  write("a", "Made", "a99");
  expected['a'].emplace_back("a99");
  supervise([&] { return arrived() == expected; });
}

TEST_P(Culprit, a_relay_that_is_killed_by_others_parks_nothing) {
  for (int round = 10; round < 16; ++round) {
    write("a", "Made", "a" + std::to_string(round));
    const auto relay = start_relay(options_);
    ASSERT_TRUE(eventually([&] {
      return arrived()['a'].size() == static_cast<std::size_t>(round - 9);
    })) << log();
    relay->kill();
  }
  // Idle, again and again.
  for (int round = 0; round < 5; ++round) {
    const std::size_t starts = lines_in(options_.log);
    const auto relay = start_relay(options_);
    ASSERT_TRUE(eventually([&] { return lines_in(options_.log) > starts + 1; }));
    relay->kill();
  }
  write("a", "Made", "a16");
  supervise([&] { return arrived()['a'].size() == 7; });
  EXPECT_TRUE(parked().empty());
}

}  // namespace
}  // namespace outbox::test
