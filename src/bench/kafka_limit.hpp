// The limit of the Kafka figures: a librdkafka producer with the guarantees of our sink and nothing around it.
#pragma once

#include <string>

#include "testkit/failure.hpp"
#include "testkit/kafka.hpp"

namespace outbox::bench {

class BareProducer {
 public:
  BareProducer(const testkit::KafkaTopic& topic, testkit::KafkaProperties properties) {
    properties.insert({{"enable.idempotence", "true"},
                       {"enable.gapless.guarantee", "true"},
                       {"acks", "all"},
                       {"message.timeout.ms", "0"},
                       {"compression.type", "lz4"}});
    client_ = testkit::kafka_client(RD_KAFKA_PRODUCER, topic.brokers(), properties);
    topic_.reset(rd_kafka_topic_new(client_.get(), topic.name().c_str(), nullptr));
  }

  /// False: the queue is full.
  bool send(std::int64_t number, const std::string& body) {
    const std::string key = std::to_string(number % 10000);
    return rd_kafka_produce(topic_.get(), 0, RD_KAFKA_MSG_F_COPY, const_cast<char*>(body.data()),
                            body.size(), key.data(), key.size(), nullptr) == 0;
  }
  void poll(int timeout_ms) { rd_kafka_poll(client_.get(), timeout_ms); }
  void flush() {
    if (rd_kafka_flush(client_.get(), 60000) == RD_KAFKA_RESP_ERR_NO_ERROR) return;
    testkit::give_up(Errc::deadline_exceeded, "the bare producer's messages were not delivered",
                     "is the broker up, and --brokers right?");
  }

 private:
  testkit::KafkaClient client_;
  std::unique_ptr<rd_kafka_topic_t, testkit::KafkaDelete<rd_kafka_topic_destroy>> topic_;
};

}  // namespace outbox::bench
