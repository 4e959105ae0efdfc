// Tests an event that kills the relay. After a relay has died a few times, the next ones find the
// event and park it; the others arrive in order.
#include <fstream>
#include <map>

#include "integration/relay/both_stores.hpp"
#include "subscription/replay_filter.hpp"
#include "support/child_process.hpp"
#include "support/eventually.hpp"
#include "support/relay_process.hpp"

namespace outbox::test {
namespace {

class Culprit : public OnBothStores {
 protected:
  void SetUp() override {
    OnBothStores::SetUp();
    options_.store_url = url_;
    options_.file = folder_.file("lines");
    options_.log = folder_.file("log");
  }

  static std::string quoted(const std::string& body) { return '"' + body + '"'; }
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
    std::unique_ptr<ChildProcess> relay;
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

  RelayProcessOptions options_;
};

INSTANTIATE_TEST_SUITE_P(Store, Culprit, ::testing::Values(true, false),
                         [](const auto& store) { return store.param ? "Postgres" : "Sqlite"; });

TEST_P(Culprit, an_event_that_kills_the_relay_is_found_and_parked_and_the_others_arrive_in_order) {
  std::map<char, std::vector<std::string>> expected;
  for (int i = 10; i < 40; ++i) {
    for (const char key : {'a', 'b', 'c'}) {
      const std::string body = key + std::to_string(i);
      const bool kills = key == 'b' && i == 25;
      write(std::string(1, key), {kills ? "Killer" : "Made"}, quoted(body));
      // The events behind the killer in its key wait.
      if (key != 'b' || i < 25) expected[key].push_back(body);
    }
  }
  const int deaths = supervise([&] {
    const auto rows = parked();
    return arrived() == expected && rows.size() == 15;
  });
  EXPECT_GE(deaths, 4) << "the relay cannot know it earlier";
  EXPECT_LE(deaths, 10);
  const auto rows = parked();
  EXPECT_EQ(rows[0].event_type, "Killer");
  EXPECT_EQ(rows[0].state, store::ParkedState::retrying);
  EXPECT_GE(rows[0].attempts, 2U);
  EXPECT_NE(rows[0].error.find("the relay died "), std::string::npos) << rows[0].error;
  for (std::size_t i = 1; i < rows.size(); ++i)
    EXPECT_EQ(rows[i].state, store::ParkedState::waiting);

  // Retries of the killer kill the relay again, and are counted.
  // The first of them may have been made before the rows were read.
  const std::size_t attempts = rows[0].attempts;
  EXPECT_GE(supervise([&] { return parked()[0].attempts > attempts + 1; }), 1);
  write("a", {"Made"}, quoted("a99"));
  expected['a'].emplace_back("a99");
  supervise([&] { return arrived() == expected; });
}

TEST_P(Culprit, among_ten_thousand_it_is_found_within_sixteen_deaths) {
  constexpr int kEvents = 10000;
  constexpr int kKiller = 4095;  // the place that takes the most deaths
  std::vector<Event> events(kEvents);
  for (int i = 0; i < kEvents; ++i) {
    Event& event = events[static_cast<std::size_t>(i)];
    event.aggregate_type = "order";
    event.aggregate_id = "k" + std::to_string(i);
    event.event_type = i == kKiller ? "Killer" : "Made";
    event.payload = quoted("a" + std::to_string(i));
  }
  const auto written = store_->writer().value()->write(events);
  ASSERT_TRUE(written) << written.error().text();
  options_.page_rows = 1000;
  const int deaths =
      supervise([&] { return parked().size() == 1 && arrived()['a'].size() == kEvents - 1; });
  EXPECT_LE(deaths, 16);
  EXPECT_EQ(parked()[0].event_type, "Killer");
  EXPECT_LE(lines_in(options_.file), 3U * kEvents) << "a range is sent again, not everything";
}

TEST_P(Culprit, a_replayed_event_that_kills_the_relay_is_found_and_skipped) {
  std::map<char, std::vector<std::string>> expected;
  for (int i = 10; i < 30; ++i) {
    for (const char key : {'a', 'b', 'c'}) {
      const std::string body = key + std::to_string(i);
      const bool kills = key == 'b' && i == 15;
      write(std::string(1, key), {kills ? "Killer" : "Made"}, quoted(body));
      if (key != 'b' || i < 15) expected[key].push_back(body);
    }
  }
  {
    const auto relay = make_relay({.store_url = url_, .subscriptions = {custom("lines")}});
    const auto delivered = record(*relay, "lines");
    (void)delivered_once(*relay);
    ASSERT_EQ(delivered->events().size(), 60U);
  }
  const auto replays = store_->replays().value();
  const std::int64_t replay =
      replays
          ->start({.subscription = row().id,
                   .first = 1,
                   .last = replays->retained().value().last,
                   .filter = subscription::to_json(subscription::ReplayChoice{}),
                   .actor = "a test"})
          .value();
  const int deaths =
      supervise([&] { return replays->find(replay).value()->state == store::ReplayState::done; });
  EXPECT_GE(deaths, 4);
  EXPECT_LE(deaths, 10);
  EXPECT_EQ(arrived(), expected);
  const auto skips = replays->skips(replay, 100).value();
  ASSERT_EQ(skips.size(), 15U) << "the event, and what follows of its key";
  EXPECT_NE(skips[0].error.find("the relay died "), std::string::npos) << skips[0].error;
  EXPECT_EQ(skips[0].aggregate_id, "b");
  EXPECT_TRUE(parked().empty());

  write("b", {"Made"}, quoted("b99"));
  expected['b'].emplace_back("b99");
  EXPECT_EQ(supervise([&] { return arrived() == expected; }), 0) << "live delivery goes on";
}

TEST_P(Culprit, a_relay_that_is_killed_by_others_parks_nothing) {
  for (int round = 10; round < 16; ++round) {
    write("a", {"Made"}, quoted("a" + std::to_string(round)));
    const auto relay = start_relay(options_);
    ASSERT_TRUE(eventually([&] {
      return arrived()['a'].size() == static_cast<std::size_t>(round - 9);
    })) << log();
    relay->kill();
  }
  // The relay is killed while it is idle, again and again.
  for (int round = 0; round < 5; ++round) {
    const std::size_t starts = lines_in(options_.log);
    const auto relay = start_relay(options_);
    ASSERT_TRUE(eventually([&] { return lines_in(options_.log) > starts + 1; }));
    relay->kill();
  }
  write("a", {"Made"}, quoted("a16"));
  supervise([&] { return arrived()['a'].size() == 7; });
  EXPECT_TRUE(parked().empty());
}

TEST_P(Culprit, status_says_that_a_subscription_is_on_trial_until_it_is_over) {
  options_.environment["OUTBOX_TEST_RATE"] = "2/s";
  for (int i = 10; i < 40; ++i) write("a", {"Made"}, quoted("a" + std::to_string(i)));
  const auto trouble = [this] {
    const auto rows = store_->catalog().value()->subscriptions().value();
    return rows.empty() ? std::string() : rows.front().trouble;
  };
  const auto starts = [this] {
    const std::string text = log();
    std::size_t count = 0;
    for (auto at = text.find("subscription started"); at != std::string::npos;
         at = text.find("subscription started", at + 1))
      ++count;
    return count;
  };
  // Each relay is killed as soon as it begins, until two in a row have settled nothing.
  std::unique_ptr<ChildProcess> relay;
  ASSERT_TRUE(eventually([&] {
    const std::size_t before = starts();
    relay = start_relay(options_);
    if (!eventually([&] { return starts() > before; })) return false;
    if (log().find("relays died here again and again") != std::string::npos) return true;
    relay->kill();
    return false;
  })) << log();
  EXPECT_TRUE(eventually([&] { return trouble().find("on trial: ") == 0; })) << trouble();
  EXPECT_TRUE(eventually([&] { return arrived()['a'].size() == 30 && trouble().empty(); }))
      << trouble();
  EXPECT_TRUE(parked().empty());
}

}  // namespace
}  // namespace outbox::test
