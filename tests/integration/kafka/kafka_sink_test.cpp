// Tests what the Kafka sink does when a real broker refuses. librdkafka's mock cluster cannot
// replace the broker: it does not check sequence numbers, and accepts what a real broker would
// refuse.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "conformance/sink/suite.hpp"
#include "integration/kafka/broker.hpp"
#include "integration/kafka/sink_maker.hpp"
#include "support/servers.hpp"

namespace outbox::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

class KafkaSinkTest : public testing::Test {
 protected:
  void SetUp() override { OUTBOX_NEEDS_KAFKA(); }

  /// A JSON string that compresses badly.
  static std::string oversized(std::size_t size = 3000) {
    std::string text(1, '"');
    for (std::uint32_t x = 7; text.size() < size;) {
      x = x * 1664525U + 1013904223U;
      text.push_back(static_cast<char>('a' + (x >> 24U) % 26));
    }
    text.push_back('"');
    return text;
  }
};

/// Settings for batches of three, as long as there are three messages.
std::map<std::string, std::string> in_threes() {
  return {{"batch.num.messages", "3"}, {"linger", "3s"}};
}

TEST_F(KafkaSinkTest, an_oversized_event_in_a_batch_stops_everything_behind_it) {
  BrokerTopic topic(1, {{"max.message.bytes", "1000"}});
  Load load(topic.name());
  load.add_many(4, 3);
  load.add("k1", oversized());  // in the third batch: the first message goes alone, then threes
  load.add_many(13, 3);
  const auto sink = make_kafka_sink(in_threes());
  MiniRelay relay(*sink, load);
  ASSERT_TRUE(sink->open());
  relay.press_on(18);
  ASSERT_TRUE(relay.drain());

  EXPECT_EQ(places(topic.arrived(), load), (std::vector<std::size_t>{0, 1, 2, 3}));
  EXPECT_EQ(relay.acked(), 4U);
  for (const auto& failure : relay.failures()) {
    EXPECT_EQ(failure.outcome.kind, Outcome::Kind::retry)
        << failure.place << ": no event is blamed yet";
    EXPECT_FALSE(failure.outcome.error.message.empty()) << failure.place;
  }
  EXPECT_EQ(relay.failures().front().outcome.error.code, Errc::too_large);
  EXPECT_EQ(relay.offer(18), 0U) << "takes more before it was opened again";
}

/// If a producer is new to the partition, the broker accepts anything from it, also what follows a
/// gap.
TEST_F(KafkaSinkTest, an_oversized_first_event_stops_everything_behind_it) {
  for (int round = 0; round < 10; ++round) {
    BrokerTopic topic(1, {{"max.message.bytes", "1000"}});
    Load load(topic.name());
    load.add("k1", oversized());
    load.add_many(6, 1);
    const auto sink = make_kafka_sink({{"linger", "0ms"}});
    MiniRelay relay(*sink, load);
    ASSERT_TRUE(sink->open());
    while (relay.failures().empty()) {
      relay.offer(1);
      relay.receive();
    }
    ASSERT_TRUE(relay.drain());
    EXPECT_TRUE(topic.arrived().empty());
    EXPECT_EQ(relay.acked(), 0U);
  }
}

TEST_F(KafkaSinkTest, an_oversized_event_is_found_and_its_neighbours_arrive_in_order) {
  BrokerTopic topic(1, {{"max.message.bytes", "1000"}});
  Load load(topic.name());
  load.add_many(4, 3);
  load.add("k1", oversized());
  load.add_many(13, 3);
  const auto sink = make_kafka_sink(in_threes());
  MiniRelay relay(*sink, load);
  ASSERT_TRUE(relay.deliver());

  EXPECT_EQ(relay.rejected(), std::vector<std::size_t>{4});
  const auto arrived = places(topic.arrived(), load);
  expect_complete_and_ordered(arrived, load, {4});
  EXPECT_EQ(arrived.size(), 17U) << "none twice";
  const auto& culprit = relay.failures().back();
  EXPECT_EQ(culprit.place, 4U);
  EXPECT_EQ(culprit.outcome.error.code, Errc::too_large);
  EXPECT_NE(culprit.outcome.error.hint.find("max.message.bytes"), std::string::npos)
      << culprit.outcome.error.hint;
  EXPECT_EQ(relay.reopened(), 3U) << "once at first, once to isolate, once to go on";
}

TEST_F(KafkaSinkTest, after_the_culprit_was_found_batches_are_sent_again) {
  BrokerTopic topic(1, {{"max.message.bytes", "10000"}});
  Load load(topic.name());
  load.add("k1", "1");
  load.add("k1", oversized(30000));
  load.add_many(100, 3);
  const auto sink = make_kafka_sink({{"linger", "50ms"}});
  MiniRelay relay(*sink, load);
  ASSERT_TRUE(sink->open());
  ASSERT_EQ(relay.offer(10), 1U);  // the partition does not know this producer yet
  ASSERT_TRUE(relay.drain());
  ASSERT_EQ(relay.offer(10), 10U);
  ASSERT_TRUE(relay.drain());
  ASSERT_TRUE(sink->open());
  relay.rewind();
  std::size_t alone = 0;
  while (relay.rejected().empty()) {
    ASSERT_EQ(relay.offer(10), 1U) << "while one of them is guilty they go alone";
    ASSERT_TRUE(relay.drain());
    ++alone;
  }
  EXPECT_EQ(alone, 1U);
  ASSERT_TRUE(sink->open());
  relay.rewind();
  // The other suspects of the batch are still sent alone, and later messages in batches again.
  const std::size_t failures = relay.failures().size();
  std::size_t most = 0;
  while (relay.acked() < load.size() - 1) {
    const std::size_t taken = relay.offer(50);
    most = std::max(most, taken);
    ASSERT_TRUE(relay.drain());
    ASSERT_EQ(relay.failures().size(), failures);
  }
  EXPECT_EQ(most, 50U);
  expect_complete_and_ordered(places(topic.arrived(), load), load, {1});
}

TEST_F(KafkaSinkTest, a_topic_that_takes_small_batches_only_gets_small_ones) {
  BrokerTopic topic(1, {{"max.message.bytes", "20000"}});
  Load load(topic.name());
  for (std::size_t i = 0; i < 3000; ++i) load.add(fmt::format("k{}", i % 7), oversized(1000));
  const auto sink = make_kafka_sink();
  MiniRelay relay(*sink, load);
  ASSERT_TRUE(relay.deliver());
  EXPECT_TRUE(relay.rejected().empty());
  EXPECT_LT(relay.reopened(), 12U);
  expect_complete_and_ordered(places(topic.arrived(), load), load);
}

TEST_F(KafkaSinkTest, oversized_events_among_many_keys_and_partitions) {
  BrokerTopic topic(4, {{"max.message.bytes", "20000"}});
  Load load(topic.name());
  std::vector<std::size_t> guilty;
  for (std::size_t i = 0; i < 20; ++i) {
    load.add_many(487, 100);
    guilty.push_back(load.size());
    load.add(fmt::format("k{}", i), oversized(40000));
  }
  load.add_many(500, 100);
  const auto sink = make_kafka_sink();
  MiniRelay relay(*sink, load);
  ASSERT_TRUE(relay.deliver(seconds(400)));
  EXPECT_EQ(relay.rejected(), guilty);
  expect_complete_and_ordered(places(topic.arrived(), load), load, guilty);
}

TEST_F(KafkaSinkTest, an_event_beyond_the_sinks_own_limit_is_rejected_at_once) {
  BrokerTopic topic(1);
  Load load(topic.name());
  load.add_many(2, 1);
  load.add("k0", oversized());
  load.add_many(2, 1);
  const auto sink = make_kafka_sink({{"message.max.bytes", "2000"}});
  MiniRelay relay(*sink, load);
  ASSERT_TRUE(relay.deliver());
  EXPECT_EQ(relay.rejected(), std::vector<std::size_t>{2});
  ASSERT_EQ(relay.failures().size(), 1U) << "what was sent before it is not disturbed";
  EXPECT_NE(relay.failures().front().outcome.error.message.find("message.max.bytes"),
            std::string::npos);
  expect_complete_and_ordered(places(topic.arrived(), load), load, {2});
}

TEST_F(KafkaSinkTest,
       a_missing_topic_blocks_soon_with_a_hint_and_delivery_goes_on_once_it_is_there) {
  BrokerTopic topic;
  Load load(topic.name());
  load.add_many(50, 3);
  const auto sink = make_kafka_sink({{"delivery_deadline", "5m"}});
  MiniRelay relay(*sink, load);
  ASSERT_TRUE(sink->open());
  ASSERT_EQ(relay.offer(50), 1U) << "a partition that is not known to take anything gets one";
  ASSERT_TRUE(relay.drain()) << "soon: long before the deadline of a delivery";
  ASSERT_EQ(relay.failures().size(), 1U);
  for (const auto& failure : relay.failures()) {
    EXPECT_EQ(failure.outcome.kind, Outcome::Kind::blocked);
    EXPECT_NE(failure.outcome.error.message.find(topic.name()), std::string::npos)
        << failure.outcome.error.message;
    EXPECT_NE(failure.outcome.error.hint.find("create the topic"), std::string::npos)
        << failure.outcome.error.hint;
  }
  topic.create(3);
  ASSERT_TRUE(sink->open());
  relay.rewind();
  ASSERT_TRUE(relay.deliver());
  expect_complete_and_ordered(places(topic.arrived(), load), load);
}

TEST_F(KafkaSinkTest, a_missing_topic_does_not_lose_what_goes_to_others) {
  BrokerTopic there(2);
  BrokerTopic missing;
  Load load(there.name());
  load.add_many(30, 3);
  load.item(15).topic = missing.name();
  load.item(15).key = "other";
  const auto sink = make_kafka_sink();
  MiniRelay relay(*sink, load);
  std::size_t failures = 0;
  ASSERT_TRUE(relay.deliver(seconds(60), [&] {
    if (++failures == 1) missing.create(1);
  }));
  EXPECT_EQ(places(missing.arrived(), load), std::vector<std::size_t>{15});
  EXPECT_EQ(places(there.arrived(), load).size(), 29U);
}

TEST_F(KafkaSinkTest, a_record_that_a_compacted_topic_refuses_is_the_events_fault) {
  BrokerTopic topic(1, {{"cleanup.policy", "compact"}});
  Load load(topic.name());
  load.add_many(3, 2);
  load.add(std::nullopt, R"("no key")");
  load.add_many(3, 2);
  const auto sink = make_kafka_sink();
  MiniRelay relay(*sink, load);
  ASSERT_TRUE(relay.deliver());
  EXPECT_EQ(relay.rejected(), std::vector<std::size_t>{3});
  expect_complete_and_ordered(places(topic.arrived(), load), load, {3});
}

TEST_F(KafkaSinkTest, headers_keys_and_bodies_arrive_as_they_are) {
  BrokerTopic topic(1);
  Load load(topic.name());
  load.add("key", "body");
  load.add(std::nullopt, "");
  load.item(0).headers.push_back({.name = "empty", .value = {}});
  load.item(0).headers.push_back({.name = "correlation_id", .value = "c-1"});
  load.item(0).headers.push_back({.name = "causation_id", .value = "Größe 日本"});
  load.item(0).headers.push_back(
      {.name = "traceparent", .value = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"});
  const auto sink = make_kafka_sink();
  MiniRelay relay(*sink, load);
  ASSERT_TRUE(relay.deliver());
  const auto records = topic.read();
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0].key, "key");
  EXPECT_EQ(records[0].value, "body");
  EXPECT_EQ(records[0].headers.at("empty"), "");
  EXPECT_EQ(records[0].headers.at("correlation_id"), "c-1");
  EXPECT_EQ(records[0].headers.at("causation_id"), "Größe 日本");
  EXPECT_EQ(records[0].headers.at("traceparent"),
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
  EXPECT_EQ(records[0].headers.at("outbox-id"), load.item(0).id_text);
  EXPECT_EQ(records[1].key, std::nullopt);
  EXPECT_EQ(records[1].value, "") << "an empty body is no tombstone";
}

TEST_F(KafkaSinkTest, keys_go_where_a_java_producer_puts_them) {
  // Kafka's own client uses murmur2: Utils.toPositive(Utils.murmur2(key)) % 12 for 12 partitions.
  BrokerTopic topic(12);
  Load load(topic.name());
  for (const char* key : {"21", "foobar", "a-little-bit-long-string",
                          "lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8"}) {
    load.add(key, "1");
  }
  const auto sink = make_kafka_sink();
  MiniRelay relay(*sink, load);
  ASSERT_TRUE(relay.deliver());
  // These are published test vectors of murmur2 in Kafka: -973932308, -790332482, -985981536,
  // -58897971.
  const std::map<std::string, std::int32_t> expected{
      {"21", (-973932308 & 0x7fffffff) % 12},
      {"foobar", (-790332482 & 0x7fffffff) % 12},
      {"a-little-bit-long-string", (-985981536 & 0x7fffffff) % 12},
      {"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", (-58897971 & 0x7fffffff) % 12}};
  for (const auto& record : topic.read())
    EXPECT_EQ(record.partition, expected.at(record.key.value())) << *record.key;
}

TEST_F(KafkaSinkTest, purges_under_load_lose_nothing_and_keep_the_order) {
  BrokerTopic topic(3);
  Load load(topic.name());
  load.add_many(30'000, 50);
  const auto sink = make_kafka_sink();
  MiniRelay relay(*sink, load);
  for (int round = 0; round < 5; ++round) {
    ASSERT_TRUE(sink->open());
    relay.rewind();
    for (int batch = 0; batch < 4; ++batch) relay.offer(1000);
    sink->purge();
    relay.receive();
    ASSERT_EQ(relay.in_flight(), 0U);
  }
  relay.rewind();
  ASSERT_TRUE(relay.deliver());
  expect_complete_and_ordered(places(topic.arrived(), load), load);
}

TEST_F(KafkaSinkTest, a_single_event_that_never_fits_the_queue_blocks_instead_of_waiting_for_ever) {
  BrokerTopic topic(1);
  Load load(topic.name());
  load.add("k", '"' + std::string(5000, 'x') + '"');
  const auto sink = make_kafka_sink({{"queue.buffering.max.kbytes", "1"}});
  MiniRelay relay(*sink, load);
  ASSERT_TRUE(sink->open());
  ASSERT_EQ(relay.offer(1), 1U);
  ASSERT_TRUE(relay.drain());
  ASSERT_EQ(relay.failures().size(), 1U);
  EXPECT_EQ(relay.failures().front().outcome.kind, Outcome::Kind::blocked);
  EXPECT_NE(relay.failures().front().outcome.error.hint.find("queue.buffering.max.kbytes"),
            std::string::npos);
}

TEST(KafkaSinkWithoutBroker, open_says_that_no_broker_answers) {
  const auto sink = make_kafka_sink({{"brokers", "127.0.0.1:1"}});
  const auto from = Clock::now();
  const Status status = sink->open();
  EXPECT_LT(Clock::now() - from, seconds(30));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Errc::unavailable);
  EXPECT_NE(status.error().message.find("127.0.0.1:1"), std::string::npos)
      << status.error().message;
  EXPECT_FALSE(status.error().hint.empty());
}

}  // namespace
}  // namespace outbox::test
