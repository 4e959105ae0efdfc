// Tests a consumer group of Kafka whose members come and go, a failover of their database, and
// messages before others that nobody can work off.
#include <csignal>
#include <iostream>

#include "base/steady.hpp"
#include "fault/consumer_harness.hpp"
#include "support/kafka.hpp"
#include "support/own_postgres.hpp"
#include "support/tcp_gate.hpp"

namespace outbox::test {
namespace {

class ConsumerOfKafka : public ConsumerTest {
 protected:
  /// Sends messages until each one that was sent before has had its effect.
  [[nodiscard]] bool goes_on() {
    const std::string before = std::to_string(sent_);
    return eventually(
        [&] {
          if (sent_ - effects() < 500) send(20);
          return value("SELECT count(DISTINCT number) = " + before +
                       " FROM effect WHERE number < " + before) == "t";
        },
        std::chrono::seconds(300));
  }
  void say(const std::string& what) const {
    const auto passed =
        std::chrono::duration_cast<std::chrono::milliseconds>(now_steady() - began_);
    std::cout << what << " after " << passed.count() << " ms" << std::endl;
  }
  [[nodiscard]] int dead() const { return count("outbox.parked_state WHERE state = 'dead'"); }
  /// The most memory that the process has had, in MiB.
  [[nodiscard]] static int peak_memory(const ChildProcess& process) {
    std::ifstream status("/proc/" + std::to_string(process.pid()) + "/status");
    for (std::string word; status >> word;) {
      int kib = 0;
      if (word == "VmHWM:" && status >> kib) return kib / 1024;
    }
    return -1;
  }

  const std::chrono::steady_clock::time_point began_ = now_steady();
};

TEST_F(ConsumerOfKafka, members_come_and_go_under_load) {
  std::vector<Process> members;
  const auto join = [&](std::size_t count) {
    while (members.size() < count) members.push_back(start());
    return goes_on();
  };
  for (int round = 0; round < soak_factor(); ++round) {
    ASSERT_TRUE(join(2)) << last_lines();
    ASSERT_TRUE(join(3)) << last_lines();
    // One leaves, and one dies.
    stop(*members.at(1));
    members.at(2)->kill();
    members.resize(1);
    ASSERT_TRUE(goes_on()) << last_lines();
    ASSERT_TRUE(join(3)) << last_lines();
    // One stands still until others have what was its part.
    members.at(0)->signal(SIGSTOP);
    ASSERT_TRUE(goes_on()) << last_lines();
    members.at(0)->signal(SIGCONT);
    // Keys that had messages before may have another partition now, so there are others from here.
    KafkaTopic(spec_.settings.at("brokers"), spec_.read.at(0)).grow(4 + round);
    first_key_ += 100;
    ASSERT_TRUE(goes_on()) << last_lines();
    members.at(0)->kill();
    members.erase(members.begin());
    say("round " + std::to_string(round));
  }
  EXPECT_TRUE(all_done()) << effects() << " of " << sent_ << "\n" << last_lines();
  for (const auto& member : members) stop(*member);
  expect_each_once();
}

TEST_F(ConsumerOfKafka, poison_before_all_others_stops_no_other_key) {
  place_->take_back_soon(spec_);
  place_->send({{.key = "fails", .payload = "fail"}, {.key = "crashes", .payload = "crash"}});
  auto process = start();
  ASSERT_TRUE(eventually([&] { return !process->running(); }));
  send(1000);
  int deaths = 0;
  const auto goes_on_until = [&](const auto& condition) {
    return eventually([&] {
      if (!process->running()) {
        EXPECT_EQ(process->ended_with(), "signal 11") << last_lines();
        process = start();
        ++deaths;
      }
      return condition();
    });
  };
  EXPECT_TRUE(goes_on_until([&] { return effects() == sent_; })) << last_lines();
  say("the others are done, with " + std::to_string(deaths) + " deaths,");
  EXPECT_TRUE(goes_on_until([&] { return dead() == 2; })) << last_lines();
  say("both are dead, with " + std::to_string(deaths) + " deaths,");
  EXPECT_EQ(value("SELECT error FROM outbox.parked_state WHERE aggregate_id = 'fails'"), "poison");
  stop(*process);
  EXPECT_EQ(count("effect"), sent_);
}

TEST_F(ConsumerOfKafka, unreadable_messages_are_dead_and_cost_no_memory) {
  constexpr int kUnreadable = 10'000;
  std::vector<conformance::Sent> all = numbered(200);
  const conformance::Sent unreadable{.key = "k",
                                     .payload = "{" + std::string(2000, 'x'),
                                     .headers = {{"content-type", "application/json"}}};
  for (int i = 0; i < 200; ++i)
    all.insert(all.begin() + i * (kUnreadable / 200 + 1), kUnreadable / 200, unreadable);
  place_->send(all);
  const auto process = start();
  EXPECT_TRUE(all_done()) << last_lines();
  say("the readable ones are done");
  EXPECT_TRUE(eventually([&] { return dead() == kUnreadable; })) << dead() << last_lines();
  say("the unreadable ones are dead");
  EXPECT_EQ(count("outbox.parked_state WHERE state = 'dead' AND error LIKE '%is not JSON%' "
                  "AND headers ->> 'task-unreadable' LIKE '%is not JSON%'"),
            kUnreadable);
  const int peak = peak_memory(*process);
  say("at most " + std::to_string(peak) + " MiB");
  EXPECT_LT(peak, 300);
  stop(*process);
  EXPECT_EQ(count("effect"), sent_);
}

TEST_F(ConsumerOfKafka, what_a_failover_loses_was_not_acknowledged) {
  OUTBOX_NEEDS_PGBIN();
  OwnPostgres primary;
  use(std::make_unique<PostgresDatabase>(primary.url(), PostgresDatabase::Schema::migrated));
  TcpGate gate(primary.port());
  const auto standby = OwnPostgres::start_standby(gate.port());
  Pg admin(primary.url());
  admin.exec("ALTER SYSTEM SET synchronous_standby_names = '*'");
  admin.exec("SELECT pg_reload_conf()");
  ASSERT_TRUE(eventually([&] {
    return admin.value("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") == "1";
  }));
  url_ = "postgresql://postgres@127.0.0.1:" + std::to_string(primary.port()) +
         ",127.0.0.1:" + std::to_string(standby->port()) + "/" + database_->name() +
         "?target_session_attrs=read-write&connect_timeout=60";
  const auto consumer = start();
  send(500);
  ASSERT_TRUE(eventually([&] { return received() > 100; })) << last_lines();
  // From now on each commit waits, and would be lost.
  gate.set(TcpGate::Mode::stalled);
  send(500);
  ASSERT_TRUE(eventually([&] {
    return admin.value(
               "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep' "
               "AND application_name LIKE 'outbox consumer%'") == "1";
  }));
  primary.stop_immediate();
  gate.cut();
  EXPECT_EQ(Pg(standby->url()).value("SELECT pg_promote(true, 60)"), "t");
  EXPECT_TRUE(all_done()) << effects() << " of " << sent_ << "\n" << last_lines();
  stop(*consumer);
  expect_each_once();
}

}  // namespace
}  // namespace outbox::test
