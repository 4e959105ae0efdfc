// Kafka through plain librdkafka. Makes topics of its own, and writes, reads and counts them.
// Throws Exception.
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

namespace outbox::test {

/// A deleter that calls a function of librdkafka.
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

/// A bare idempotent producer with the guarantees of our sink.
class KafkaProducer {
 public:
  KafkaProducer(const std::string& brokers, const std::string& topic,
                const KafkaProperties& properties = {});

  /// Returns false if the queue is full.
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

  /// The next message or error; null if none comes in time.
  [[nodiscard]] KafkaMessage poll(int timeout_ms);
  /// Calls `each` for all messages that are on the topic now and were not read yet, in order within
  /// each partition.
  void read_to_end(const std::function<void(const rd_kafka_message_t&)>& each);

 private:
  const std::string topic_;
  KafkaClient client_;
  std::vector<std::int64_t> read_;  ///< The next offset of each partition.
};

/// A name that no other topic has.
[[nodiscard]] std::string unique_name(const std::string& prefix);

/// A topic, which is deleted at the end if create() made it.
class KafkaTopic {
 public:
  KafkaTopic(std::string brokers, std::string name)
      : brokers_(std::move(brokers)), name_(std::move(name)) {}
  /// Makes a topic with a unique name.
  KafkaTopic(std::string brokers, int partitions, const KafkaProperties& settings = {})
      : KafkaTopic(std::move(brokers), unique_name("outbox-test")) {
    create(partitions, settings);
  }
  KafkaTopic(const KafkaTopic&) = delete;
  KafkaTopic& operator=(const KafkaTopic&) = delete;
  ~KafkaTopic();

  /// Returns once every partition can be used.
  void create(int partitions, const KafkaProperties& settings = {});
  void remove();
  /// Takes over a topic that somebody else made. It is deleted at the end all the same.
  void adopt(int partitions);
  /// Gives the topic more partitions. Returns once all can be used.
  void grow(int partitions) const;
  /// Removes the messages of the partition before this one, as the topic's retention would.
  void remove_before(int partition, std::int64_t offset) const;
  /// Changes settings of the topic.
  void change(const KafkaProperties& settings) const;
  /// Keeps the topic from being deleted.
  void keep() { made_ = false; }

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::string& brokers() const { return brokers_; }
  /// A subscription that delivers here, with defaults otherwise.
  [[nodiscard]] SubscriptionSpec subscription(const std::string& name) const;
  /// How many messages are on it; 0 while the broker does not answer.
  [[nodiscard]] std::size_t count() const;
  /// All messages, in order within each partition.
  [[nodiscard]] std::vector<KafkaRecord> read() const;

 private:
  void await_partitions(int partitions) const;

  const std::string brokers_;
  const std::string name_;
  int partitions_{1};
  bool made_{false};
};

}  // namespace outbox::test
