// A topic of the benchmark's own: made, filled by a bare producer, counted, read.
#pragma once

#include <librdkafka/rdkafka.h>

#include <cstdint>
#include <memory>
#include <outbox/error.hpp>
#include <outbox/subscription.hpp>
#include <string>

namespace outbox::bench {

class KafkaTopic {
 public:
  /// Creates a topic with a new name and one partition.
  [[nodiscard]] static Result<std::unique_ptr<KafkaTopic>> create(const std::string& brokers,
                                                                  const std::string& prefix);
  KafkaTopic(const KafkaTopic&) = delete;
  KafkaTopic& operator=(const KafkaTopic&) = delete;
  KafkaTopic(KafkaTopic&&) = delete;
  KafkaTopic& operator=(KafkaTopic&&) = delete;
  /// Deletes the topic.
  ~KafkaTopic();

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::string& brokers() const { return brokers_; }
  /// One that delivers here, all else by default.
  [[nodiscard]] SubscriptionSpec subscription(const std::string& name) const;
  /// Messages on the topic, by the broker's word.
  [[nodiscard]] Result<std::int64_t> count();
  /// Rate of a bare idempotent producer (acks=all) with 200-byte messages and nothing around it.
  [[nodiscard]] Result<double> bare_produce(std::int64_t messages);

 private:
  KafkaTopic(std::string brokers, std::string name)
      : brokers_(std::move(brokers)), name_(std::move(name)) {}
  [[nodiscard]] Status administer(bool create);

  std::string brokers_;
  std::string name_;
};

struct DestroyKafka {
  void operator()(rd_kafka_t* client) const { rd_kafka_destroy(client); }
};
using KafkaClient = std::unique_ptr<rd_kafka_t, DestroyKafka>;

/// A client with these properties ("name", "value", ...).
[[nodiscard]] Result<KafkaClient> make_client(
    rd_kafka_type_t type, std::initializer_list<std::pair<const char*, std::string>> properties);

}  // namespace outbox::bench
