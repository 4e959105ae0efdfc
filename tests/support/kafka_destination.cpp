// A topic of Kafka with three partitions.
#include <optional>

#include "support/destinations.hpp"
#include "support/failure.hpp"
#include "support/kafka.hpp"

namespace outbox::test {
namespace {

constexpr int kPartitions = 3;

class KafkaDestination final : public Destination {
 public:
  KafkaDestination(const std::string& topic, const std::string& brokers) : topic_(brokers, topic) {}

  void open() override { topic_.create(kPartitions); }
  void keep() override { topic_.keep(); }
  SubscriptionSpec subscription(const std::string& name) const override {
    return topic_.subscription(name);
  }
  void read(const Each& each, std::chrono::milliseconds wait) override {
    if (!reader_) reader_.emplace(topic_.brokers(), topic_.name(), kPartitions);
    (void)wait;  // read_to_end() waits for the end of each partition
    reader_->read_to_end([&each](const rd_kafka_message_t& message) {
      each({static_cast<const char*>(message.payload), message.len});
    });
  }
  std::size_t count() override { return topic_.count(); }
  void send(const std::string& key, const std::string& message) override {
    if (!producer_)
      producer_.emplace(topic_.brokers(), topic_.name(), KafkaProperties{{"linger.ms", "0"}});
    while (!producer_->send(key, message)) producer_->poll(1);
  }
  void poll() override {
    if (producer_) producer_->poll(0);
  }
  void flush() override {
    if (producer_) producer_->flush();
  }
  std::string place() const override {
    return "Kafka topic " + topic_.name() + " at " + topic_.brokers();
  }

 private:
  KafkaTopic topic_;
  std::optional<KafkaReader> reader_;
  std::optional<KafkaProducer> producer_;
};

}  // namespace

std::unique_ptr<Destination> kafka_destination(const std::string& topic,
                                               const std::string& brokers) {
  return std::make_unique<KafkaDestination>(topic, brokers);
}

}  // namespace outbox::test
