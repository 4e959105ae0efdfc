// Kafka by librdkafka's own client: topics of our own, and what the broker says is on them. Throws Exception.
#pragma once

#include <librdkafka/rdkafka.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <outbox/subscription.hpp>
#include <string>
#include <vector>

namespace outbox::testkit {

/// Deletes with a function of librdkafka.
template <auto destroy>
struct KafkaDelete {
  template <class T>
  void operator()(T* thing) const noexcept {
    destroy(thing);
  }
};
using KafkaClient = std::unique_ptr<rd_kafka_t, KafkaDelete<rd_kafka_destroy>>;
using KafkaMessage = std::unique_ptr<rd_kafka_message_t, KafkaDelete<rd_kafka_message_destroy>>;
using KafkaProperties = std::map<std::string, std::string>;

[[nodiscard]] KafkaClient kafka_client(rd_kafka_type_t type, const std::string& brokers,
                                       const KafkaProperties& properties = {});

/// An idempotent producer (acks=all) that drops nothing, with nothing around it.
class KafkaProducer {
 public:
  KafkaProducer(const std::string& brokers, const std::string& topic,
                const KafkaProperties& properties = {});

  /// False: the queue is full.
  bool send(const std::string& key, const std::string& value,
            std::int32_t partition = RD_KAFKA_PARTITION_UA);
  void poll(int timeout_ms) { rd_kafka_poll(client_.get(), timeout_ms); }
  /// Waits until everything is delivered.
  void flush();

 private:
  KafkaClient client_;
  std::unique_ptr<rd_kafka_topic_t, KafkaDelete<rd_kafka_topic_destroy>> topic_;
};

struct KafkaRecord {
  std::int32_t partition{0};
  std::optional<std::string> key;
  std::optional<std::string> value;
  std::map<std::string, std::string> headers;
};

/// Reads a topic from its beginning.
class KafkaReader {
 public:
  KafkaReader(const std::string& brokers, std::string topic, int partitions,
              const KafkaProperties& properties = {});

  /// The next message; nothing when none comes in time.
  [[nodiscard]] KafkaMessage poll(int timeout_ms);
  /// Calls `each` for what is there now and was not read yet. Messages of a partition come in order.
  void read_to_end(const std::function<void(const rd_kafka_message_t&)>& each);

 private:
  const std::string topic_;
  KafkaClient client_;
  std::vector<std::int64_t> read_;  ///< Of each partition: how far.
};

/// A name that no other topic has.
[[nodiscard]] std::string unique_name(const std::string& prefix);

/// A topic. Deleted at the end if create() made it.
class KafkaTopic {
 public:
  KafkaTopic(std::string brokers, std::string name)
      : brokers_(std::move(brokers)), name_(std::move(name)) {}
  /// Makes one for a test.
  KafkaTopic(std::string brokers, int partitions, const KafkaProperties& settings = {})
      : KafkaTopic(std::move(brokers), unique_name("outbox-test")) {
    create(partitions, settings);
  }
  KafkaTopic(const KafkaTopic&) = delete;
  KafkaTopic& operator=(const KafkaTopic&) = delete;
  ~KafkaTopic();

  /// Returns once every partition can be used, which is a little later than made.
  void create(int partitions, const KafkaProperties& settings = {});
  /// Changes settings of the topic.
  void change(const KafkaProperties& settings) const;
  /// Leaves the topic when this object goes.
  void keep() { made_ = false; }

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::string& brokers() const { return brokers_; }
  /// One that delivers here, all else by default.
  [[nodiscard]] SubscriptionSpec subscription(const std::string& name) const;
  /// Messages on it; 0 while the broker does not answer.
  [[nodiscard]] std::size_t count() const;
  /// All of them, in order within each partition.
  [[nodiscard]] std::vector<KafkaRecord> read() const;

 private:
  const std::string brokers_;
  const std::string name_;
  int partitions_{1};
  bool made_{false};
};

}  // namespace outbox::testkit
