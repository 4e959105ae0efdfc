// Runs the suite over the Kafka sink, with a real broker.
#include "conformance/sink/server_harness.hpp"
#include "integration/kafka/broker.hpp"

namespace outbox::test {
namespace {

/// A text that does not compress.
std::string noise(std::size_t size) {
  std::string text;
  for (std::uint32_t x = 1; text.size() < size;) {
    x = x * 1664525U + 1013904223U;
    text.push_back(static_cast<char>('0' + (x >> 24U) % 75));
  }
  return text;
}

int parse_port(const std::string& address) {
  return std::stoi(address.substr(address.rfind(':') + 1));
}

class KafkaHarness final : public ServerHarness {
 public:
  std::string server() const override { return "kafka"; }
  std::string sink() const override { return "kafka"; }
  int port() const override { return parse_port(*kafka_brokers()); }
  // This broker names a gate's address to its clients.
  int behind_gate() const override {
    return parse_port(*environment("OUTBOX_TEST_KAFKA_BEHIND_GATE"));
  }
  int gate_port() const override { return parse_port(*environment("OUTBOX_TEST_KAFKA_GATE")); }
  /// A broker takes 8 s to return. kafka_restart_test.cpp kills it more often.
  std::size_t kills() const override { return 1; }
  std::string topic() const override { return topic_.name(); }

  SinkSettings settings(int port) const override {
    return {{"brokers", "127.0.0.1:" + std::to_string(port)},
            {"delivery_deadline", "3s"},
            {"connect_timeout", "2s"},
            // With these limits the broker, not the client, refuses what is too large.
            {"message.max.bytes", "4000000"},
            {"compression.type", "none"}};
  }
  /// The listener for logins has a port of its own.
  SinkSettings wrong_password(int /*port*/) const override {
    SinkSettings all = kafka_login();
    all["password"] = "hunter2-wrong";
    return all;
  }

  std::optional<std::string> missing_topic() const override { return topic_.name() + ".missing"; }
  std::vector<std::string> illegal_topics() const override {
    return {"", ".", "..", "no spaces", "a/b", "\xc3\xa9", std::string(250, 'x')};
  }
  std::size_t too_large() const override { return 2'000'000; }

  std::vector<Arrived> delivered() override {
    return spoiled_ ? narrow_.arrived() : topic_.arrived();
  }
  /// Sends all to a topic that accepts everything but this message. Repeating the message does not
  /// help: it is too large.
  void spoil(Load& load, std::size_t place) override {
    narrow_.create(3, {{"max.message.bytes", "10000"}});
    for (std::size_t i = 0; i < load.size(); ++i) load.item(i).topic = narrow_.name();
    load.item(place).body = noise(20000);
    load.item(place).content_type = "text/plain";
    spoiled_ = true;
  }

 private:
  BrokerTopic topic_{3};
  BrokerTopic narrow_;
  bool spoiled_{false};
};

}  // namespace

ServerHarnessKind server_harness_kind() {
  return {
      .name = "kafka",
      .make = []() -> std::unique_ptr<ServerHarness> {
        if (!kafka_brokers() || !environment("OUTBOX_TEST_KAFKA_LOGIN")) return nullptr;
        return std::make_unique<KafkaHarness>();
      },
      .needs =
          "needs a Kafka broker with its other listeners: OUTBOX_TEST_KAFKA_LOGIN is not set (scripts/servers start DIR)",
      .can_fail = true};
}

}  // namespace outbox::test
