// Tests topics that the Kafka sink makes, those that it cannot make, and many topics.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <future>

#include "conformance/sink/suite.hpp"
#include "integration/kafka/broker.hpp"
#include "integration/kafka/sink_maker.hpp"
#include "sink/kafka/kafka_sink.hpp"
#include "support/servers.hpp"
#include "support/tcp_gate.hpp"

namespace outbox::test {
namespace {

int count_partitions(const std::string& topic) {
  const auto client = kafka_client(RD_KAFKA_PRODUCER, *kafka_brokers());
  const std::unique_ptr<rd_kafka_topic_t, KafkaDelete<rd_kafka_topic_destroy>> asked(
      rd_kafka_topic_new(client.get(), topic.c_str(), nullptr));
  const rd_kafka_metadata_t* answer = nullptr;
  if (rd_kafka_metadata(client.get(), 0, asked.get(), &answer, 10'000) != 0) return -1;
  const int partitions = answer->topic_cnt == 1 ? answer->topics[0].partition_cnt : -1;
  rd_kafka_metadata_destroy(answer);
  return partitions;
}

class KafkaTopics : public testing::Test {
 protected:
  void SetUp() override { OUTBOX_NEEDS_KAFKA(); }

  static std::unique_ptr<Sink> maker(const std::string& partitions,
                                     const std::string& replication) {
    return make_kafka_sink(
        {{"create.partitions", partitions}, {"create.replication", replication}});
  }
};

TEST_F(KafkaTopics, that_do_not_exist_are_made) {
  BrokerTopic topics[3];
  Load load(topics[0].name());
  load.add_many(60, 7);
  for (std::size_t i = 0; i < load.size(); ++i) load.item(i).topic = topics[i % 7 % 3].name();
  const auto sink = maker("4", "1");
  MiniRelay relay(*sink, load);
  ASSERT_TRUE(relay.deliver());
  EXPECT_TRUE(relay.failures().empty());
  std::vector<Arrived> all;
  for (BrokerTopic& topic : topics) {
    topic.adopt(4);
    EXPECT_EQ(count_partitions(topic.name()), 4);
    const auto arrived = topic.arrived();
    all.insert(all.end(), arrived.begin(), arrived.end());
  }
  expect_complete_and_ordered(places(all, load), load);
}

TEST_F(KafkaTopics, that_two_sinks_make_at_once_are_made_once) {
  BrokerTopic topic;
  Load load(topic.name());
  load.add_many(20, 5);
  const auto deliver = [&load] {
    const auto sink = maker("3", "0");
    MiniRelay relay(*sink, load);
    EXPECT_TRUE(relay.deliver());
    EXPECT_TRUE(relay.failures().empty());
  };
  auto other = std::async(std::launch::async, deliver);
  deliver();
  other.get();
  topic.adopt(3);
  EXPECT_EQ(count_partitions(topic.name()), 3);
  EXPECT_EQ(topic.arrived().size(), 2 * load.size());
}

TEST_F(KafkaTopics, that_exist_are_left_as_they_are) {
  BrokerTopic topic(2);
  Load load(topic.name());
  load.add_many(20, 5);
  const auto sink = maker("6", "3");  // which this broker could not make
  MiniRelay relay(*sink, load);
  ASSERT_TRUE(relay.deliver());
  EXPECT_EQ(count_partitions(topic.name()), 2);
}

TEST_F(KafkaTopics, that_cannot_be_made_block_with_the_brokers_reason) {
  BrokerTopic topic;
  Load load(topic.name());
  load.add_many(20, 5);
  const auto sink = maker("2", "3");
  MiniRelay relay(*sink, load);
  ASSERT_TRUE(sink->open());
  ASSERT_EQ(relay.offer(20), 1U);
  ASSERT_TRUE(relay.drain());
  ASSERT_EQ(relay.failures().size(), 1U);
  const Outcome& outcome = relay.failures().front().outcome;
  EXPECT_EQ(outcome.kind, Outcome::Kind::blocked);
  EXPECT_NE(outcome.error.message.find(topic.name()), std::string::npos) << outcome.error.text();
  EXPECT_NE(outcome.error.message.find("eplication factor"), std::string::npos)
      << "not the broker's words: " << outcome.error.text();
  EXPECT_NE(outcome.error.hint.find("create.replication"), std::string::npos);
  EXPECT_EQ(relay.offer(20), 0U) << "takes more before it was opened again";
  topic.create(1);
  ASSERT_TRUE(sink->open());
  relay.rewind();
  ASSERT_TRUE(relay.deliver());
  expect_complete_and_ordered(places(topic.arrived(), load), load);
}

/// Brokers do not distinguish a.b from a_b in the names of their metrics.
TEST_F(KafkaTopics, whose_name_is_like_another_ones_are_the_events_fault) {
  const std::string name = unique_name("outbox");
  KafkaTopic dots(*kafka_brokers(), name + ".a.b");
  dots.create(1);
  Load load(dots.name());
  load.add_many(5, 5);
  load.item(2).topic = name + ".a_b";
  const auto sink = maker("1", "1");
  MiniRelay relay(*sink, load);
  ASSERT_TRUE(relay.deliver());
  EXPECT_EQ(relay.rejected(), std::vector<std::size_t>{2});
  EXPECT_EQ(dots.read().size(), 4U);
}

TEST_F(KafkaTopics, are_made_without_making_send_or_close_wait) {
  OUTBOX_NEEDS("OUTBOX_TEST_KAFKA_GATE", "a broker that names a gate to its clients");
  TcpGate gate(std::stoi(*environment("OUTBOX_TEST_KAFKA_BEHIND_GATE")),
               std::stoi(*environment("OUTBOX_TEST_KAFKA_GATE")));
  BrokerTopic topic;
  Load load(topic.name());
  load.add_many(10, 1);
  const auto sink = make_kafka_sink(
      {{"brokers", "127.0.0.1:" + std::to_string(gate.port())}, {"create.partitions", "1"}});
  ASSERT_TRUE(sink->open());
  gate.set(TcpGate::Mode::stalled);
  const Message message = load.message(0, 1);
  for (int i = 0; i < 1000; ++i)  // far beyond the limit of the test if each waited for an answer
    ASSERT_EQ(sink->send({&message, 1}), 0U);
  sink->purge();
  sink->close();
  gate.set(TcpGate::Mode::open);
  MiniRelay relay(*sink, load);
  ASSERT_TRUE(relay.deliver());
  topic.adopt(1);
  expect_complete_and_ordered(places(topic.arrived(), load), load);
}

/// A client keeps each topic that it ever knew. Therefore the sink replaces it.
TEST_F(KafkaTopics, more_than_a_client_should_know_lose_nothing_and_keep_the_order) {
  std::vector<std::unique_ptr<BrokerTopic>> topics;
  for (int i = 0; i < 5; ++i) topics.push_back(std::make_unique<BrokerTopic>());
  Load load(topics[0]->name());
  load.add_many(100, 8);
  for (std::size_t i = 0; i < load.size(); ++i) load.item(i).topic = topics[i / 5 % 5]->name();
  FieldErrors errors;
  sink::kafka::KafkaSettings settings;
  settings.brokers = *kafka_brokers();
  sink::kafka::KafkaSink sink(sink::kafka::make_conf(settings, errors),
                              {.create = {.partitions = 1, .replication = 1}, .most_topics = 2});
  MiniRelay relay(sink, load);
  ASSERT_TRUE(relay.deliver());
  EXPECT_TRUE(relay.failures().empty());
  EXPECT_EQ(relay.reopened(), 1U) << "the relay sees nothing of it";
  std::size_t arrived = 0;
  for (const auto& topic : topics) {
    topic->adopt(1);
    const auto found = places(topic->arrived(), load);
    EXPECT_TRUE(std::is_sorted(found.begin(), found.end()));
    arrived += found.size();
  }
  EXPECT_EQ(arrived, load.size());
  sink.close();
}

}  // namespace
}  // namespace outbox::test
