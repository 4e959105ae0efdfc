// The Kafka sink with a real broker.
#include "conformance/sink/harness.hpp"
#include "integration/kafka/broker.hpp"
#include "integration/kafka/sink_maker.hpp"

namespace outbox::test {
namespace {

/// Text that does not compress.
std::string noise(std::size_t size) {
  std::string text;
  for (std::uint32_t x = 1; text.size() < size;) {
    x = x * 1664525U + 1013904223U;
    text.push_back(static_cast<char>('0' + (x >> 24U) % 75));
  }
  return text;
}

class KafkaHarness final : public Harness {
 public:
  std::unique_ptr<Sink> make() override { return make_kafka_sink(); }
  std::string topic() const override { return topic_.name(); }
  std::vector<Arrived> delivered() override {
    return spoiled_ ? narrow_.arrived() : topic_.arrived();
  }
  /// All are sent to a topic that accepts everything but this message, which stays rejected: nothing can be repaired.
  void spoil(Load& load, std::size_t place) override {
    narrow_.create(3, {{"max.message.bytes", "10000"}});
    for (std::size_t i = 0; i < load.size(); ++i) load.item(i).topic = narrow_.name();
    load.item(place).body = noise(20000);
    load.item(place).content_type = "text/plain";
    spoiled_ = true;
  }

 private:
  KafkaTopic topic_{3};
  KafkaTopic narrow_;
  bool spoiled_{false};
};

}  // namespace

std::vector<HarnessKind> harness_kinds() {
  return {{"kafka",
           []() -> std::unique_ptr<Harness> {
             if (!kafka_brokers()) return nullptr;
             return std::make_unique<KafkaHarness>();
           },
           "needs a Kafka broker: OUTBOX_TEST_KAFKA is not set (scripts/servers start DIR)", true}};
}

}  // namespace outbox::test
