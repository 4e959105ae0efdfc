#include "demo/destination.hpp"

#include <fstream>
#include <utility>

#ifdef OUTBOX_WITH_KAFKA
#include "testkit/kafka.hpp"
#endif

namespace outbox::demo {
namespace {

constexpr const char* kSubscription = "demo";

class FileReading final : public Reading {
 public:
  explicit FileReading(std::string path) : path_(std::move(path)) {}

  /// Whole lines only: the last one may be half written.
  void next(const Each& each) override {
    std::ifstream file(path_, std::ios::binary);
    file.seekg(offset_);
    std::string line;
    while (std::getline(file, line) && !file.eof()) {
      offset_ += static_cast<std::streamoff>(line.size()) + 1;
      each(parse_order(line));
    }
  }

 private:
  const std::string path_;
  std::streamoff offset_{0};
};

class FileSender final : public Sender {
 public:
  explicit FileSender(std::string path) : path_(std::move(path)) {}

  void send(const std::vector<Order>& orders) override {
    std::string lines;
    for (const Order& order : orders) lines += to_event(order).payload + "\n";
    std::ofstream(path_, std::ios::app | std::ios::binary) << lines;
  }

 private:
  const std::string path_;
};

class FileDestination final : public Destination {
 public:
  explicit FileDestination(std::string path) : path_(std::move(path)) {}

  SubscriptionSpec subscription() const override {
    SubscriptionSpec spec{.name = kSubscription, .sink = "file"};
    spec.sink_settings["path"] = path_;
    return spec;
  }
  std::unique_ptr<Reading> read() const override { return std::make_unique<FileReading>(path_); }
  std::unique_ptr<Sender> sender() const override { return std::make_unique<FileSender>(path_); }
  std::string place() const override { return path_; }

 private:
  const std::string path_;
};

#ifdef OUTBOX_WITH_KAFKA

constexpr int kPartitions = 3;

class KafkaReading final : public Reading {
 public:
  explicit KafkaReading(const testkit::KafkaTopic& topic)
      : reader_(topic.brokers(), topic.name(), kPartitions) {}

  void next(const Each& each) override {
    reader_.read_to_end([&each](const rd_kafka_message_t& message) {
      each(parse_order({static_cast<const char*>(message.payload), message.len}));
    });
  }

 private:
  testkit::KafkaReader reader_;
};

class KafkaSender final : public Sender {
 public:
  explicit KafkaSender(const testkit::KafkaTopic& topic)
      : producer_(topic.brokers(), topic.name(), {{"linger.ms", "0"}}) {}

  void send(const std::vector<Order>& orders) override {
    for (const Order& order : orders)
      (void)producer_.send(std::to_string(order.customer), to_event(order).payload);
    producer_.poll(0);
  }
  void finish() override { producer_.flush(); }

 private:
  testkit::KafkaProducer producer_;
};

class KafkaDestination final : public Destination {
 public:
  KafkaDestination(const std::string& brokers, const std::string& topic) : topic_(brokers, topic) {}

  void open() override { topic_.create(kPartitions); }
  void keep() override { topic_.keep(); }
  SubscriptionSpec subscription() const override { return topic_.subscription(kSubscription); }
  std::unique_ptr<Reading> read() const override { return std::make_unique<KafkaReading>(topic_); }
  std::unique_ptr<Sender> sender() const override { return std::make_unique<KafkaSender>(topic_); }
  std::string place() const override {
    return "Kafka topic " + topic_.name() + " at " + topic_.brokers();
  }

 private:
  testkit::KafkaTopic topic_;
};

#endif

}  // namespace

std::unique_ptr<Destination> make_file_destination(std::string path) {
  return std::make_unique<FileDestination>(std::move(path));
}

#ifdef OUTBOX_WITH_KAFKA
std::unique_ptr<Destination> make_kafka_destination(const std::string& brokers,
                                                    const std::string& topic) {
  return std::make_unique<KafkaDestination>(brokers, topic);
}
#endif

}  // namespace outbox::demo
