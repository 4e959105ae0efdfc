// Tests what the source for Kafka does when the topic does not have what the consumer wants next.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "source/registry.hpp"
#include "support/eventually.hpp"
#include "support/kafka.hpp"
#include "support/servers.hpp"

namespace outbox::test {
namespace {

using namespace std::chrono_literals;
using source::Received;
using ::testing::HasSubstr;

class KafkaGaps : public ::testing::TestWithParam<ConsumeFrom> {
 protected:
  void SetUp() override {
    OUTBOX_NEEDS("OUTBOX_TEST_KAFKA", "a broker");
    topic_.emplace(*environment("OUTBOX_TEST_KAFKA"), 1);
    spec_ = {.name = "gaps-" + topic_->name(), .source = "kafka", .read = {topic_->name()}};
    spec_.start = GetParam();
    spec_.settings["brokers"] = topic_->brokers();
  }
  void send(int messages) {
    const auto client = kafka_client(RD_KAFKA_PRODUCER, topic_->brokers());
    for (int i = 0; i < messages; ++i) {
      const std::string text = std::to_string(sent_++);
      ASSERT_EQ(rd_kafka_producev(client.get(), RD_KAFKA_V_TOPIC(topic_->name().c_str()),
                                  RD_KAFKA_V_PARTITION(0), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
                                  RD_KAFKA_V_VALUE(const_cast<char*>(text.data()), text.size()),
                                  RD_KAFKA_V_END),
                RD_KAFKA_RESP_ERR_NO_ERROR);
    }
    ASSERT_EQ(rd_kafka_flush(client.get(), 30'000), RD_KAFKA_RESP_ERR_NO_ERROR);
  }
  std::unique_ptr<source::Source> open() const {
    auto made = source::make_source(spec_);
    EXPECT_TRUE(made) << made.error().text();
    const Status status = (*made)->open();
    EXPECT_TRUE(status) << status.error().text();
    return std::move(*made);
  }
  /// Reads and acknowledges until the message with this number has come.
  std::set<int> read_to(source::Source& source, int last) {
    std::set<int> numbers;
    EXPECT_TRUE(eventually([&] {
      if (read_ >= last) return true;
      numbers.merge(read_some(source));
      return false;
    })) << read_
        << " is the last of those that came, and " << last << " is missing";
    return numbers;
  }
  std::set<int> read_some(source::Source& source) {
    std::vector<Received> some;
    const Status status = source.receive({.messages = 100, .wait = 100ms}, some);
    EXPECT_TRUE(status) << status.error().text();
    EXPECT_TRUE(some.empty() || source.acknowledge(some));
    std::set<int> numbers;
    for (const Received& one : some) numbers.insert(read_ = std::stoi(one.payload));
    return numbers;
  }
  /// Sends until the source, which may begin at the end, has got something, and then everything.
  void begin(source::Source& source) {
    EXPECT_TRUE(eventually([&] {
      send(1);
      return !read_some(source).empty();
    }));
    (void)read_to(source, sent_ - 1);
  }

  std::optional<KafkaTopic> topic_;
  ConsumerSpec spec_;
  int sent_{0};
  int read_{-1};  ///< The last one.
};

TEST_P(KafkaGaps, what_is_left_is_read_when_messages_were_removed_while_it_was_away) {
  {
    const auto source = open();
    begin(*source);
  }
  const int seen = sent_;
  send(100);
  topic_->remove_before(0, seen + 60);
  const auto source = open();
  ::testing::internal::CaptureStderr();
  const std::set<int> numbers = read_to(*source, sent_ - 1);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("messages were removed from the topic before the consumer had read them"));
  EXPECT_EQ(numbers.size(), 40U);
  EXPECT_EQ(*numbers.begin(), seen + 60);
}

TEST_P(KafkaGaps, what_is_left_is_read_when_messages_were_removed_while_it_waited) {
  const auto source = open();
  begin(*source);
  // It fetches nothing while nothing is wanted. What it has fetched before it may still return.
  std::vector<Received> none;
  ASSERT_TRUE(eventually([&] {
    none.clear();
    EXPECT_TRUE(source->receive({.messages = 0, .wait = 100ms}, none));
    return none.empty();
  }));
  const int seen = sent_;
  send(100);
  topic_->remove_before(0, seen + 60);
  const std::set<int> numbers = read_to(*source, sent_ - 1);
  EXPECT_EQ(numbers.count(seen + 59), 0U);
  EXPECT_EQ(numbers.count(seen + 60), 1U);
  EXPECT_EQ(numbers.size(), 40U);
}

TEST_P(KafkaGaps, a_topic_that_is_made_again_is_new) {
  {
    const auto source = open();
    begin(*source);
    send(100);
    (void)read_to(*source, sent_ - 1);
  }
  topic_->remove();
  topic_->create(1);
  sent_ = 1000;
  send(10);
  const auto source = open();
  // With the topic the broker has forgotten the positions in it.
  if (GetParam() == ConsumeFrom::latest) return begin(*source);
  EXPECT_EQ(read_to(*source, sent_ - 1).size(), 10U);
}

INSTANTIATE_TEST_SUITE_P(Starts, KafkaGaps,
                         ::testing::Values(ConsumeFrom::earliest, ConsumeFrom::latest),
                         [](const auto& start) {
                           return start.param == ConsumeFrom::earliest ? "earliest" : "latest";
                         });

}  // namespace
}  // namespace outbox::test
