// What the Kafka sink makes of each error that a broker can answer, with librdkafka's mock brokers,
// which do not check sequence numbers as a real broker does (tests/integration/kafka does that).
#include <gtest/gtest.h>
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include <array>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "conformance/sink/making.hpp"
#include "conformance/sink/suite.hpp"
#include "support/eventually.hpp"

namespace outbox::test {
namespace {

using std::chrono::seconds;
using Clock = std::chrono::steady_clock;
using Kind = Outcome::Kind;

constexpr std::int16_t kProduce = 0;
constexpr std::int16_t kInitProducerId = 22;

#ifdef __SANITIZE_THREAD__
constexpr bool kSeesItsThreads = false;
#else
constexpr bool kSeesItsThreads = true;
#endif

class MockBrokers {
 public:
  MockBrokers() = default;
  void start() {
    rd_kafka_conf_t* conf = rd_kafka_conf_new();
    std::array<char, 256> why{};
    rd_kafka_conf_set(conf, "log_level", "0", why.data(), why.size());
    handle_ = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why.data(), why.size());
    cluster_ = rd_kafka_mock_cluster_new(handle_, 1);
    rd_kafka_mock_topic_create(cluster_, "order.events", 1, 1);
  }
  MockBrokers(const MockBrokers&) = delete;
  MockBrokers& operator=(const MockBrokers&) = delete;
  ~MockBrokers() {
    if (handle_ == nullptr) return;
    rd_kafka_mock_cluster_destroy(cluster_);
    rd_kafka_destroy(handle_);
  }
  [[nodiscard]] std::string brokers() const { return rd_kafka_mock_cluster_bootstraps(cluster_); }
  /// Gives this answer to the next `times` requests of that kind.
  void answer(std::int16_t request, rd_kafka_resp_err_t code, int times) {
    for (int i = 0; i < times; ++i) rd_kafka_mock_push_request_errors(cluster_, request, 1, code);
  }
  /// Sets the round trip to the broker.
  void delay(std::chrono::milliseconds there_and_back) {
    rd_kafka_mock_broker_set_rtt(cluster_, 1, static_cast<int>(there_and_back.count()));
  }
  void forget(std::int16_t request) { rd_kafka_mock_clear_request_errors(cluster_, request); }

 private:
  rd_kafka_t* handle_{nullptr};
  rd_kafka_mock_cluster_t* cluster_{nullptr};
};

class KafkaMockTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!kSeesItsThreads) {
      GTEST_SKIP() << "ThreadSanitizer does not know the threads of librdkafka (C11 thrd_create)";
    }
    mock_.start();
    load_.add_many(20, 3);
    make({{"delivery_deadline", "60s"}, {"linger", "500ms"}});
  }

  void make(std::map<std::string, std::string> settings) {
    settings["brokers"] = mock_.brokers();
    sink_ = sink::make_sink(make_spec("kafka", std::move(settings))).value();
  }

  /// Opens and makes the producer known to the partition. Then the brokers begin to give this
  /// answer, and the rest is sent at once, if possible in one batch. Waits for the outcomes.
  void send_all(rd_kafka_resp_err_t code, int times) {
    relay_.emplace(*sink_, load_);
    ASSERT_TRUE(eventually([this] { return sink_->open().has_value(); }));
    ASSERT_EQ(relay_->offer(1), 1U);
    ASSERT_TRUE(relay_->drain());
    ASSERT_EQ(relay_->acked(), 1U);
    mock_.answer(kProduce, code, times);
    // A refusal during the handover ends it, and fewer messages are taken.
    taken_ = relay_->offer(load_.size() - 1);
    ASSERT_GE(taken_, 2U);
    ASSERT_TRUE(relay_->drain(seconds(90)));
  }
  void expect_all_acked() {
    EXPECT_EQ(relay_->acked(), load_.size());
    EXPECT_TRUE(relay_->failures().empty());
  }
  void expect_recovery() {
    mock_.forget(kProduce);
    mock_.forget(kInitProducerId);
    relay_->rewind();
    EXPECT_TRUE(relay_->deliver());
    EXPECT_EQ(relay_->acked(), load_.size());
  }
  [[nodiscard]] const Outcome& first_failure() const { return relay_->failures().front().outcome; }

  MockBrokers mock_;
  Load load_;
  std::size_t taken_{0};
  std::unique_ptr<Sink> sink_;
  std::optional<MiniRelay> relay_;
};

TEST_F(KafkaMockTest, errors_that_pass_are_not_seen) {
  for (const auto code :
       {RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION, RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS,
        RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT, RD_KAFKA_RESP_ERR__TRANSPORT}) {
    send_all(code, 2);
    if (HasFatalFailure()) return;
    expect_all_acked();
  }
}

TEST_F(KafkaMockTest, send_does_not_wait_for_brokers_that_do_not_answer) {
  ASSERT_TRUE(eventually([this] { return sink_->open().has_value(); }));
  mock_.delay(std::chrono::minutes(10));
  const auto from = Clock::now();
  for (int i = 0; i < 20; ++i) {
    const std::string topic = "topic" + std::to_string(i);
    Message message = load_.message(0, 1);
    message.topic = topic;  // The topic's number of partitions is not known.
    EXPECT_EQ(sink_->send(std::span(&message, 1)), 0U);
  }
  EXPECT_LT(Clock::now() - from, seconds(20)) << "to ask for each would take 3 s";
}

TEST_F(KafkaMockTest, a_duplicate_is_a_success) {
  send_all(RD_KAFKA_RESP_ERR_DUPLICATE_SEQUENCE_NUMBER, 1);
  if (HasFatalFailure()) return;
  expect_all_acked();
}

TEST_F(KafkaMockTest, missing_rights_block_and_say_so) {
  send_all(RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, 100);
  if (HasFatalFailure()) return;
  ASSERT_EQ(relay_->failures().size(), taken_);
  EXPECT_EQ(first_failure().kind, Kind::blocked);
  EXPECT_EQ(first_failure().error.code, Errc::permission_denied);
  EXPECT_EQ(first_failure().error.remedy, Remedy::fix);
  EXPECT_NE(first_failure().error.message.find("order.events"), std::string::npos)
      << first_failure().error.message;
  EXPECT_FALSE(first_failure().error.hint.empty());
  expect_recovery();
}

TEST_F(KafkaMockTest, missing_rights_to_produce_at_all_block_and_say_so) {
  mock_.answer(kInitProducerId, RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED, 100);
  relay_.emplace(*sink_, load_);
  ASSERT_TRUE(sink_->open());
  // The refusal may arrive while the messages are handed over; then the sink takes no more of them.
  const std::size_t taken = relay_->offer(load_.size());
  ASSERT_GE(taken, 1U);
  ASSERT_TRUE(relay_->drain());
  ASSERT_EQ(relay_->failures().size(), taken);
  EXPECT_EQ(first_failure().kind, Kind::blocked) << first_failure().error.text();
  EXPECT_EQ(first_failure().error.code, Errc::permission_denied);
  expect_recovery();
}

TEST_F(KafkaMockTest, too_few_replicas_block_after_the_deadline) {
  // The refused messages wait in the client: at the deadline none is on the wire and in doubt.
  make({{"delivery_deadline", "5s"}, {"linger", "500ms"}, {"retry.backoff.ms", "60000"}});
  const auto from = Clock::now();
  send_all(RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS, 1000);
  if (HasFatalFailure()) return;
  EXPECT_GE(Clock::now() - from, seconds(5));
  ASSERT_EQ(relay_->failures().size(), taken_);
  EXPECT_EQ(first_failure().kind, Kind::blocked);
  EXPECT_NE(first_failure().error.message.find("no delivery for"), std::string::npos)
      << first_failure().error.message;
  EXPECT_NE(first_failure().error.hint.find("min.insync.replicas"), std::string::npos)
      << first_failure().error.hint;
  expect_recovery();
}

TEST_F(KafkaMockTest, what_may_have_been_written_before_the_deadline_is_unknown) {
  make({{"delivery_deadline", "5s"}, {"linger", "500ms"}});
  send_all(RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND, 1000);
  if (HasFatalFailure()) return;
  ASSERT_EQ(relay_->failures().size(), taken_);
  EXPECT_EQ(first_failure().kind, Kind::unknown);
  EXPECT_EQ(first_failure().error.effect, Effect::unknown);
  expect_recovery();
}

TEST_F(KafkaMockTest, a_client_that_gives_up_is_replaced) {
  send_all(RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER, 1);
  if (HasFatalFailure()) return;
  ASSERT_FALSE(relay_->failures().empty());
  for (const auto& failure : relay_->failures()) {
    EXPECT_TRUE(failure.outcome.kind == Kind::retry || failure.outcome.kind == Kind::unknown)
        << to_string(failure.outcome.kind) << " " << failure.outcome.error.text();
    EXPECT_FALSE(failure.outcome.error.message.empty());
  }
  expect_recovery();
}

/// The mock takes any sequence number, as a real broker does from a producer that is new to a
/// partition. So nothing may be in flight behind the first message.
TEST_F(KafkaMockTest, behind_a_first_message_that_is_refused_nothing_is_written) {
  make({{"delivery_deadline", "60s"}, {"linger", "1ms"}});
  relay_.emplace(*sink_, load_);
  ASSERT_TRUE(sink_->open());
  mock_.delay(std::chrono::milliseconds(100));
  mock_.answer(kProduce, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, 1);
  // The messages are further apart than the linger, so that each could be a batch, but all come
  // before the first answer.
  std::size_t taken = 0;
  for (int i = 0; i < 5; ++i) {
    taken += relay_->offer(1);
    const auto until = Clock::now() + std::chrono::milliseconds(10);
    while (Clock::now() < until) relay_->receive();
  }
  EXPECT_EQ(taken, 1U);
  ASSERT_TRUE(relay_->drain());
  EXPECT_EQ(relay_->acked(), 0U);
  ASSERT_EQ(relay_->failures().size(), 1U);
  mock_.delay(std::chrono::milliseconds(0));
  relay_->rewind();
  EXPECT_TRUE(relay_->deliver());
}

TEST_F(KafkaMockTest, a_full_disk_of_the_broker_is_waited_for) {
  send_all(RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR, 3);
  if (HasFatalFailure()) return;
  expect_all_acked();
}

TEST_F(KafkaMockTest, a_refused_batch_blames_nobody_and_a_message_refused_alone_is_rejected) {
  send_all(RD_KAFKA_RESP_ERR_INVALID_RECORD, 100);
  if (HasFatalFailure()) return;
  mock_.forget(kProduce);
  ASSERT_EQ(relay_->failures().size(), taken_);
  for (const auto& failure : relay_->failures()) EXPECT_EQ(failure.outcome.kind, Kind::retry);
  mock_.answer(kProduce, RD_KAFKA_RESP_ERR_INVALID_RECORD, 1);
  ASSERT_TRUE(sink_->open());
  relay_->rewind();
  ASSERT_EQ(relay_->offer(20), 1U);
  ASSERT_TRUE(relay_->drain());
  EXPECT_EQ(relay_->rejected(), std::vector<std::size_t>{1});
}

TEST_F(KafkaMockTest, an_event_that_is_refused_before_it_is_sent_stops_nothing) {
  relay_.emplace(*sink_, load_);
  ASSERT_TRUE(eventually([this] { return sink_->open().has_value(); }));
  ASSERT_EQ(relay_->offer(1), 1U);
  ASSERT_TRUE(relay_->drain());
  load_.item(5).topic = "not a topic";
  load_.item(9).body.assign(2'000'000, 'x');
  EXPECT_EQ(relay_->offer(20), 5U) << "each ends the call, so that the relay can keep back its key";
  EXPECT_EQ(relay_->offer(20), 4U) << "though others are in flight";
  EXPECT_EQ(relay_->offer(20), 10U);
  ASSERT_TRUE(relay_->drain());
  EXPECT_EQ(relay_->rejected(), (std::vector<std::size_t>{5, 9}));
  EXPECT_EQ(relay_->acked(), load_.size() - 2);
  for (const auto& failure : relay_->failures()) {
    EXPECT_TRUE(failure.outcome.unsent);
    EXPECT_FALSE(failure.outcome.error.hint.empty());
  }
}

}  // namespace
}  // namespace outbox::test
