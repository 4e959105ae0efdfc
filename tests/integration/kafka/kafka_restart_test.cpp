// Tests brokers that die, hang and restart while events are in flight.
#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <fstream>
#include <future>

#include "conformance/sink/suite.hpp"
#include "integration/kafka/broker.hpp"
#include "integration/kafka/sink_maker.hpp"
#include "support/servers.hpp"

namespace outbox::test {
namespace {

using std::chrono::seconds;

class KafkaRestartTest : public testing::Test {
 protected:
  void SetUp() override {
    OUTBOX_NEEDS_KAFKA();
    OUTBOX_NEEDS("OUTBOX_TEST_SERVERS", "a broker of its own to kill");
  }

  [[nodiscard]] static pid_t broker_pid() {
    pid_t pid = 0;
    std::ifstream(*environment("OUTBOX_TEST_SERVERS") + "/kafka/pid") >> pid;
    return pid;
  }
};

TEST_F(KafkaRestartTest,
       a_broker_killed_and_restarted_under_load_loses_nothing_and_keeps_the_order) {
  BrokerTopic topic(4);
  Load load(topic.name());
  load.add_many(static_cast<std::size_t>(300'000) * static_cast<std::size_t>(soak_factor()), 500);
  const auto sink = make_kafka_sink({{"delivery_deadline", "3s"}});
  MiniRelay relay(*sink, load);
  std::atomic<bool> done{false};
  auto killer = std::async(std::launch::async, [&] {
    for (int kill = 0; kill < 3 && !done; ++kill) {
      kill_server("kafka");
      start_server("kafka");
    }
  });
  const bool delivered = relay.deliver(seconds(600));
  done = true;
  killer.get();
  ASSERT_TRUE(delivered);
  EXPECT_EQ(relay.acked(), load.size());
  expect_complete_and_ordered(places(topic.arrived(), load), load);
}

/// A process that does not run but keeps its sockets, as if it were behind a broken network.
class Frozen {
 public:
  explicit Frozen(pid_t pid) : pid_(pid) { EXPECT_EQ(::kill(pid_, SIGSTOP), 0); }
  Frozen(const Frozen&) = delete;
  Frozen& operator=(const Frozen&) = delete;
  ~Frozen() { thaw(); }
  void thaw() {
    if (pid_ != 0) ::kill(pid_, SIGCONT);
    pid_ = 0;
  }

 private:
  pid_t pid_;
};

TEST_F(KafkaRestartTest,
       a_broker_that_hangs_blocks_after_the_deadline_and_what_may_have_arrived_is_unknown) {
  BrokerTopic topic(2);
  Load load(topic.name());
  load.add_many(4000, 20);
  const auto sink = make_kafka_sink({{"delivery_deadline", "5s"}});
  MiniRelay relay(*sink, load);
  ASSERT_TRUE(sink->open());
  while (relay.acked() < 500) {  // only a few at first: the partitions learn of the producer
    relay.offer(500 - relay.acked());
    ASSERT_TRUE(relay.drain());
    ASSERT_TRUE(relay.failures().empty());
  }
  Frozen broker(broker_pid());
  ASSERT_EQ(relay.offer(1000), 1000U);
  ASSERT_TRUE(relay.drain());
  ASSERT_EQ(relay.failures().size(), 1000U);
  std::size_t in_doubt = 0;
  for (const auto& failure : relay.failures()) {
    if (failure.outcome.kind == Outcome::Kind::unknown) ++in_doubt;
    EXPECT_TRUE(failure.outcome.kind == Outcome::Kind::unknown ||
                failure.outcome.kind == Outcome::Kind::blocked);
    EXPECT_NE(failure.outcome.error.message.find("no delivery for"), std::string::npos)
        << "not the deadline: " << failure.outcome.error.message;
  }
  EXPECT_GT(in_doubt, 0U);
  const Status status = sink->open();
  EXPECT_FALSE(status) << "no broker answers";
  broker.thaw();
  relay.rewind();
  ASSERT_TRUE(relay.deliver());
  expect_complete_and_ordered(places(topic.arrived(), load), load);
}

TEST_F(KafkaRestartTest, a_short_outage_is_bridged_without_a_failure) {
  BrokerTopic topic(2);
  Load load(topic.name());
  load.add_many(2000, 20);
  const auto sink = make_kafka_sink({{"delivery_deadline", "10m"}});
  MiniRelay relay(*sink, load);
  ASSERT_TRUE(sink->open());
  while (relay.acked() < 500) {  // only a few at first: the partitions learn of the producer
    relay.offer(500 - relay.acked());
    ASSERT_TRUE(relay.drain());
    ASSERT_TRUE(relay.failures().empty());
  }
  kill_server("kafka");
  ASSERT_EQ(relay.offer(1000), 1000U);
  start_server("kafka");
  ASSERT_TRUE(relay.drain(seconds(300)));
  EXPECT_TRUE(relay.failures().empty());
  ASSERT_EQ(relay.offer(1000), 500U);
  ASSERT_TRUE(relay.drain());
  const auto arrived = places(topic.arrived(), load);
  expect_complete_and_ordered(arrived, load);
  EXPECT_EQ(arrived.size(), load.size()) << "none twice";
}

TEST_F(KafkaRestartTest, a_sink_can_be_closed_while_the_broker_is_gone) {
  BrokerTopic topic(1);
  Load load(topic.name());
  load.add_many(1000, 20);
  // A sink that waited for the broker would wait for a minute.
  const auto sink = make_kafka_sink({{"delivery_deadline", "60s"}, {"socket.timeout.ms", "60000"}});
  MiniRelay relay(*sink, load);
  ASSERT_TRUE(sink->open());
  kill_server("kafka");
  relay.offer(1000);
  const auto from = std::chrono::steady_clock::now();
  sink->purge();
  relay.receive();
  EXPECT_EQ(relay.in_flight(), 0U);
  sink->close();
  EXPECT_LT(std::chrono::steady_clock::now() - from, seconds(30));
  start_server("kafka");
  relay.rewind();
  ASSERT_TRUE(relay.deliver());
  expect_complete_and_ordered(places(topic.arrived(), load), load);
}

}  // namespace
}  // namespace outbox::test
