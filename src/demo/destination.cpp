#include "demo/destination.hpp"

#include <fstream>
#include <optional>

#include "base/reference.hpp"
#include "demo/order.hpp"
#include "testkit/failure.hpp"
#ifdef OUTBOX_WITH_KAFKA
#include "testkit/kafka.hpp"
#endif

namespace outbox::demo {
namespace {

using testkit::Delivery;

constexpr const char* kSubscription = "demo";

/// Removed with its folder.
class FileDestination final : public Destination {
 public:
  explicit FileDestination(std::string path) : path_(std::move(path)) {}

  SubscriptionSpec subscription() const override {
    SubscriptionSpec spec{.name = kSubscription, .sink = "file"};
    spec.sink_settings["path"] = literal(path_);
    return spec;
  }
  /// Whole lines only: the last one may be half written.
  void read(const Each& each) override {
    std::ifstream file(path_, std::ios::binary);
    file.seekg(read_);
    std::string line;
    while (std::getline(file, line) && !file.eof()) {
      read_ += static_cast<std::streamoff>(line.size()) + 1;
      each(delivered(line));
    }
  }
  void send(const std::vector<Delivery>& messages) override {
    std::string lines;
    for (const Delivery& message : messages) lines += message.body + "\n";
    std::ofstream(path_, std::ios::app | std::ios::binary) << lines;
  }
  std::string place() const override { return path_; }

 private:
  const std::string path_;
  std::streamoff read_{0};
};

#ifdef OUTBOX_WITH_KAFKA

constexpr int kPartitions = 3;

/// A topic of its own.
class KafkaDestination final : public Destination {
 public:
  KafkaDestination(const std::string& brokers, const std::string& topic) : topic_(brokers, topic) {}

  void open() override { topic_.create(kPartitions); }
  void keep() override { topic_.keep(); }
  SubscriptionSpec subscription() const override { return topic_.subscription(kSubscription); }
  void read(const Each& each) override {
    if (!reader_) reader_.emplace(topic_.brokers(), topic_.name(), kPartitions);
    reader_->read_to_end([&each](const rd_kafka_message_t& message) {
      each(delivered({static_cast<const char*>(message.payload), message.len}));
    });
  }
  void send(const std::vector<Delivery>& messages) override {
    if (!producer_)
      producer_.emplace(topic_.brokers(), topic_.name(),
                        testkit::KafkaProperties{{"linger.ms", "0"}});
    for (const Delivery& message : messages) (void)producer_->send(message.key, message.body);
    producer_->poll(0);
  }
  void flush() override {
    if (producer_) producer_->flush();
  }
  std::string place() const override {
    return "Kafka topic " + topic_.name() + " at " + topic_.brokers();
  }

 private:
  testkit::KafkaTopic topic_;
  std::optional<testkit::KafkaReader> reader_;
  std::optional<testkit::KafkaProducer> producer_;
};

#endif

}  // namespace

std::unique_ptr<Destination> make_destination(const std::string& where) {
  if (where.starts_with("file:")) return std::make_unique<FileDestination>(where.substr(5));
#ifdef OUTBOX_WITH_KAFKA
  const std::size_t at = where.find('@');
  if (where.starts_with("kafka:") && at != std::string::npos)
    return std::make_unique<KafkaDestination>(where.substr(at + 1), where.substr(6, at - 6));
#endif
  testkit::give_up(Errc::invalid_argument, "--publisher " + where + " is not understood",
                   "this is what --naive starts");
}

}  // namespace outbox::demo
