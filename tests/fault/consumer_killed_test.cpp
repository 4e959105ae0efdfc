// Tests that each message has its effect once, and those of a key in order, although brokers have
// messages twice, and consumers, workers, the database and the broker are killed.
#include <csignal>
#include <random>

#include "fault/consumer_harness.hpp"
#include "support/fault_points.hpp"
#include "support/own_postgres.hpp"
#include "support/random.hpp"

namespace outbox::test {
namespace {

using std::chrono::milliseconds;

class ConsumerKilled : public ConsumerTest {};

TEST_F(ConsumerKilled, each_message_has_one_effect) {
  send_twice(soak_factor() > 1 ? 100'000 : 4000);
  Random random(std::random_device{}());
  std::vector<Process> processes;
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
        return ++rounds > least && effects() == sent_;
      },
      std::chrono::seconds(300 * soak_factor()));
  EXPECT_TRUE(done) << effects() << " of " << sent_ << " after " << rounds << " rounds";
  // What comes late must change nothing.
  EXPECT_TRUE(eventually([&] {
    return value("SELECT coalesce(sum(arrivals), 0) >= " + std::to_string(2 * sent_) +
                 " FROM outbox.inbox WHERE consumer = 'effects'") == "t";
  }));
  for (auto& process : processes) stop(*process);
  expect_each_once();
}

TEST_F(ConsumerKilled, it_dies_at_each_step_of_a_batch) {
  place_->take_back_soon(spec_);
  const std::size_t rounds = soak_factor() > 1 ? 200 : 3 * kConsumerFaultPoints.size();
  for (std::size_t round = 0; round < rounds; ++round) {
    const std::string point = kConsumerFaultPoints.at(round % kConsumerFaultPoints.size());
    // At the first or the second batch. There are at least three.
    const std::string nth = std::to_string(1 + round / kConsumerFaultPoints.size() % 2);
    send(120);
    const auto victim = start({{"OUTBOX_FAULT_POINT", point + " " + nth + " 9"},
                               {"OUTBOX_FAULT_FILE", folder_.file("hit")}});
    ASSERT_TRUE(eventually([&] { return !victim->running(); })) << point << " is never reached\n"
                                                                << last_lines();
    ASSERT_EQ(victim->ended_with(), "signal 9") << point << "\n" << last_lines();
  }
  const auto last = start();
  EXPECT_TRUE(all_done()) << effects() << " of " << sent_;
  stop(*last);
  expect_each_once();
}

TEST_F(ConsumerKilled, what_the_database_loses_in_a_crash_was_not_acknowledged) {
  OUTBOX_NEEDS_PGBIN();
  // Only commits that ask for it flush the log. All others are lost in a crash.
  OwnPostgres server({"synchronous_commit = off", "wal_writer_delay = '10s'",
                      "wal_writer_flush_after = '1GB'", "checkpoint_timeout = '1h'"});
  use(std::make_unique<PostgresDatabase>(server.url(), PostgresDatabase::Schema::migrated));
  const auto consumer = start();
  for (int round = 0; round < 4 * soak_factor(); ++round) {
    const int seen = received();
    send(1000);
    ASSERT_TRUE(eventually([&] { return received() > seen + 100; })) << last_lines();
    server.stop_immediate();
    server.start();
  }
  EXPECT_TRUE(all_done()) << effects() << " of " << sent_ << "\n" << last_lines();
  stop(*consumer);
  expect_each_once();
  database_.reset();
}

// ctest runs it apart from the others, because it kills the broker of all.
TEST_F(ConsumerKilled, the_broker_is_killed) {
  OUTBOX_NEEDS("OUTBOX_TEST_SERVERS", "a broker that may be killed");
  place_->take_back_soon(spec_);
  place_->wait_until_kept();
  const auto consumer = start();
  for (int round = 0; round < soak_factor(); ++round) {
    const int seen = received();
    send(1000);
    ASSERT_TRUE(eventually([&] { return received() > seen + 100; })) << last_lines();
    kill_server(spec_.source);
    start_server(spec_.source);
  }
  EXPECT_TRUE(all_done()) << effects() << " of " << sent_ << "\n" << last_lines();
  stop(*consumer);
  expect_each_once();
}

}  // namespace
}  // namespace outbox::test
