// Tests that each message has its effect once, and those of a key in order, although the broker has
// every message twice, and consumers and workers are killed and suspended all the time.
#include <gtest/gtest.h>

#include <deque>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "conformance/source/place.hpp"
#include "support/child_process.hpp"
#include "support/eventually.hpp"
#include "support/postgres_database.hpp"
#include "support/random.hpp"
#include "support/servers.hpp"
#include "support/temp_dir.hpp"

namespace outbox::test {
namespace {

using conformance::Place;
using conformance::Sent;
using std::chrono::milliseconds;

class ConsumerKilled : public ::testing::Test {
 protected:
  void SetUp() override {
    OUTBOX_NEEDS_POSTGRES();
    OUTBOX_NEEDS(conformance::variable(), "a broker");
    place_ = conformance::make_place();
    spec_ = place_->spec();
    database_ = std::make_unique<PostgresDatabase>();
    Pg(database_->url())
        .run(
            "CREATE TABLE effect (n bigserial PRIMARY KEY, number int NOT NULL, key text NOT NULL)");
  }

  [[nodiscard]] std::unique_ptr<ChildProcess> start() const {
    std::vector<std::string> command{OUTBOX_TEST_CONSUMER, database_->url(), "effects",
                                     spec_.source,         spec_.read.at(0), spec_.name};
    for (const auto& [name, value] : spec_.settings) command.push_back(name + "=" + value);
    return std::make_unique<ChildProcess>(ChildProcess::Options{
        .command = std::move(command), .environment = {}, .output = folder_.file("log")});
  }
  [[nodiscard]] std::string value(const std::string& sql) const {
    return Pg(database_->url()).value(sql);
  }
  [[nodiscard]] int effects() const {
    return std::stoi(value("SELECT count(DISTINCT number) FROM effect"));
  }
  /// Sends messages with ids of their own, each of them twice. The second one is far behind the
  /// first.
  void send_twice(int messages) {
    std::vector<Sent> sent;
    for (int i = 0; i < messages; ++i) {
      sent.push_back({.key = std::to_string(i % kKeys),
                      .payload = std::to_string(i),
                      .headers = {{"outbox-id", EventId::generate().str()}}});
    }
    const std::vector<Sent> again = sent;
    sent.insert(sent.end(), again.begin(), again.end());
    place_->send(sent);
  }
  void expect_each_once(int messages) const {
    EXPECT_EQ(value("SELECT count(*) FROM effect"), std::to_string(messages));
    EXPECT_EQ(effects(), messages);
    EXPECT_EQ(value("SELECT count(*) FROM outbox.inbox WHERE consumer = 'effects'"),
              std::to_string(messages));
    if (!conformance::limits().keys || !conformance::limits().ordered_after_kill) return;
    EXPECT_EQ(
        value(
            "SELECT count(*) FROM (SELECT number < lag(number) OVER (PARTITION BY key ORDER BY n) AS late "
            "FROM effect) e WHERE late"),
        "0")
        << "an effect came before an earlier one of its key";
  }

  [[nodiscard]] std::string last_lines() const {
    std::ifstream file(folder_.file("log"));
    std::deque<std::string> lines;
    for (std::string line; std::getline(file, line);) {
      lines.push_back(line);
      if (lines.size() > 20) lines.pop_front();
    }
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    return text;
  }

  static constexpr int kKeys = 20;
  const TempDir folder_;
  std::unique_ptr<Place> place_;
  ConsumerSpec spec_;
  std::unique_ptr<PostgresDatabase> database_;
};

TEST_F(ConsumerKilled, each_message_has_one_effect) {
  const int messages = 4000 * soak_factor();
  send_twice(messages);
  Random random(std::random_device{}());
  std::vector<std::unique_ptr<ChildProcess>> processes;
  // Brokers that share messages out keep no order among the members of a group.
  const std::size_t members = conformance::limits().parts ? 2 : 1;
  for (std::size_t i = 0; i < members; ++i) processes.push_back(start());
  int rounds = 0;
  const int least = 25 * soak_factor();
  const bool done = eventually(
      [&] {
        random.dawdle(milliseconds(500));
        auto& victim = processes[random.below(members)];
        // Half of them stand still for a while before they die, or go on.
        const auto what = random.below(4);
        if (what == 3) {
          victim->signal(SIGSTOP);
          random.dawdle(milliseconds(1500));
          victim->signal(SIGCONT);
        } else if (rounds < least) {
          victim->kill();
          victim = start();
        }
        return ++rounds > least && effects() == messages;
      },
      std::chrono::seconds(300 * soak_factor()));
  EXPECT_TRUE(done) << effects() << " of " << messages << " after " << rounds << " rounds";
  // What comes late must change nothing.
  EXPECT_TRUE(eventually([&] {
    return value("SELECT coalesce(sum(arrivals), 0) >= " + std::to_string(2 * messages) +
                 " FROM outbox.inbox WHERE consumer = 'effects'") == "t";
  }));
  for (auto& process : processes) {
    process->signal(SIGTERM);
    const auto status = process->wait();
    // One that has just been started may not have blocked the signal yet.
    EXPECT_TRUE(status == 0 || status == SIGTERM) << process->ended_with() << "\n" << last_lines();
  }
  expect_each_once(messages);
}

}  // namespace
}  // namespace outbox::test
