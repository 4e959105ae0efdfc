// Tests relays that share a replay and are killed and frozen in the middle of it. The others go on,
// each key in order.
#include <array>
#include <fstream>
#include <map>

#include "integration/relay/harness.hpp"
#include "support/child_process.hpp"
#include "support/eventually.hpp"
#include "support/ledger_check.hpp"
#include "support/postgres_database.hpp"
#include "support/relay_process.hpp"
#include "support/temp_dir.hpp"

namespace outbox::test {
namespace {

constexpr int kKeys = 200;
constexpr int kEach = 30;

class ReplayTakeover : public ::testing::Test {
 protected:
  void SetUp() override {
    OUTBOX_NEEDS_POSTGRES();
    database_ = std::make_unique<PostgresDatabase>();
    store_ = std::move(*store::open_store(
        {.url = database_->url(), .schema = "outbox", .application = "outbox test"}));
  }

  [[nodiscard]] RelayProcessOptions relay_options(std::chrono::milliseconds lease) const {
    // Pages of one event and a limited rate keep each relay from finishing its share before it is
    // killed or frozen.
    return {.store_url = database_->url(),
            .file = file_,
            .lease = lease,
            .page_rows = 1,
            .log = log_,
            .environment = {{"OUTBOX_TEST_RATE", "1000/s"}}};
  }
  /// Writes the events from number `from` to before `to` of each key.
  void write(int from, int to) const {
    std::vector<Event> events;
    for (int n = from; n < to; ++n) {
      for (int key = 0; key < kKeys; ++key) {
        Event event;
        event.aggregate_type = "order";
        event.aggregate_id = std::to_string(key);
        event.event_type = "Placed";
        event.payload = "{\"n\":[" + std::to_string(key) + "," + std::to_string(n) + "]}";
        events.push_back(event);
      }
    }
    const auto written = store_->writer().value()->write(events);
    ASSERT_TRUE(written) << written.error().text();
  }
  /// The numbers of each key's events in the order of the lines, from line `from` on.
  [[nodiscard]] std::map<int, std::vector<int>> arrived(std::size_t from) const {
    std::map<int, std::vector<int>> all;
    std::ifstream in(file_);
    std::size_t lines = 0;
    for (std::string line; std::getline(in, line);) {
      int key = 0;
      int n = 0;
      char end = 0;
      if (std::sscanf(line.c_str(), "{\"n\":[%d,%d]%c", &key, &n, &end) != 3 || end != '}')
        continue;
      if (lines++ >= from) all[key].push_back(n);
    }
    return all;
  }
  [[nodiscard]] std::size_t lines() const {
    std::size_t all = 0;
    for (const auto& [key, numbers] : arrived(0)) all += numbers.size();
    return all;
  }
  [[nodiscard]] store::SubscriptionRow row() const {
    return store_->catalog().value()->subscriptions().value().front();
  }
  [[nodiscard]] bool shared_by(int relays) const {
    return eventually([&] {
      return database_->connect().value(
                 "SELECT count(DISTINCT owner) || ' ' || count(owner) FROM outbox.lane WHERE lane_group = 'custom:lines'") ==
             std::to_string(relays) + " 64";
    });
  }
  [[nodiscard]] std::int64_t start_replay() const {
    const auto replays = store_->replays().value();
    return replays
        ->start({.subscription = row().id,
                 .first = 1,
                 .last = replays->retained().value().last,
                 .filter = "{}",
                 .actor = "a test"})
        .value();
  }
  [[nodiscard]] store::Replay find(std::int64_t id) const {
    return store_->replays().value()->find(id).value().value();
  }
  [[nodiscard]] bool goes_on(std::int64_t id, std::int64_t more) const {
    const std::int64_t sent = find(id).sent;
    return eventually([&] { return find(id).sent >= sent + more; });
  }
  /// Expects that the lines from `from` on have all events of the replay and then the new ones,
  /// with the first arrivals of each key in order.
  void expect_all_in_order(std::size_t from) const {
    const auto all = arrived(from);
    ASSERT_EQ(all.size(), std::size_t{kKeys});
    for (const auto& [key, numbers] : all) {
      int next = 0;
      for (const int n : numbers) {
        EXPECT_LE(n, next) << "key " << key << " skipped an event";
        if (n == next) ++next;
      }
      EXPECT_EQ(next, kEach + 1) << "key " << key;
    }
  }

  const TempDir folder_;
  const std::string file_{folder_.file("lines")};
  const std::string log_{folder_.file("log")};
  std::unique_ptr<PostgresDatabase> database_;
  std::unique_ptr<store::Store> store_;
};

TEST_F(ReplayTakeover, relays_that_are_killed_and_frozen_leave_it_to_the_others) {
  const auto options = relay_options(std::chrono::seconds(5));
  std::array<std::unique_ptr<ChildProcess>, 3> relays;
  for (auto& relay : relays) relay = start_relay(options);
  ASSERT_TRUE(shared_by(3));
  write(0, kEach);
  ASSERT_TRUE(eventually_settled(database_->url(), "lines"));
  const std::size_t before = lines();
  ASSERT_EQ(before, std::size_t{kKeys} * kEach);
  const auto id = start_replay();
  // Until all lanes have joined the replay, a relay that has not seen it yet delivers live.
  ASSERT_TRUE(eventually([&] {
    return database_->connect().value(
               "SELECT coalesce(bit_or(lanes), 0) FROM outbox.replay_progress") == "-1";
  }));
  write(kEach, kEach + 1);
  relays[0]->kill();
  ASSERT_TRUE(goes_on(id, 100));
  relays[1]->signal(SIGSTOP);
  ASSERT_TRUE(shared_by(1));
  EXPECT_EQ(find(id).state, store::ReplayState::running);
  ASSERT_TRUE(goes_on(id, 100));
  relays[0] = start_relay(options);
  relays[1]->signal(SIGCONT);
  ASSERT_TRUE(eventually([&] { return find(id).state == store::ReplayState::done; }));
  ASSERT_TRUE(eventually_settled(database_->url(), "lines"));
  expect_all_in_order(before);
  for (const auto& relay : relays) {
    relay->signal(SIGTERM);
    EXPECT_EQ(relay->wait(), 0);
  }
  Pg connection(database_->url());
  EXPECT_EQ(ledger_fault(connection, "lines"), "");
}

}  // namespace
}  // namespace outbox::test
