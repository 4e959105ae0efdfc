// Topics of Kafka, for the suite of sources.
#include "conformance/source/place.hpp"
#include "support/failure.hpp"
#include "support/kafka.hpp"
#include "support/servers.hpp"

namespace outbox::conformance {
namespace {

class KafkaPlace final : public Place {
 public:
  KafkaPlace() : topic_(*test::environment("OUTBOX_TEST_KAFKA"), 3) {}

  [[nodiscard]] ConsumerSpec spec() const override {
    return spec_of(topic_.name(), topic_.brokers());
  }
  /// The broker behind the shared gate tells its clients to come through the gate; this one tells
  /// its own address, so only the first connection is behind it.
  [[nodiscard]] ConsumerSpec spec_at(int port) const override {
    return spec_of(topic_.name(), "127.0.0.1:" + std::to_string(port));
  }
  [[nodiscard]] int port() const override {
    return std::stoi(topic_.brokers().substr(topic_.brokers().rfind(':') + 1));
  }
  [[nodiscard]] ConsumerSpec nowhere() const override {
    return spec_of(test::unique_name("outbox-test-nowhere"), topic_.brokers());
  }

  void send(const std::vector<Sent>& messages) override {
    const auto client = test::kafka_client(
        RD_KAFKA_PRODUCER, topic_.brokers(),
        {{"enable.idempotence", "true"}, {"queue.buffering.max.messages", "1000000"}});
    for (const Sent& one : messages) {
      rd_kafka_headers_t* const headers = rd_kafka_headers_new(one.headers.size());
      for (const auto& [name, value] : one.headers)
        rd_kafka_header_add(headers, name.data(), static_cast<ssize_t>(name.size()), value.data(),
                            static_cast<ssize_t>(value.size()));
      const auto code = rd_kafka_producev(
          client.get(), RD_KAFKA_V_TOPIC(topic_.name().c_str()),
          RD_KAFKA_V_KEY(one.key.empty() ? nullptr : one.key.data(), one.key.size()),
          RD_KAFKA_V_VALUE(const_cast<char*>(one.payload.data()), one.payload.size()),
          RD_KAFKA_V_HEADERS(headers), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END);
      if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
        test::give_up(Errc::unavailable, rd_kafka_err2str(code));
    }
    if (rd_kafka_flush(client.get(), 60'000) != RD_KAFKA_RESP_ERR_NO_ERROR)
      test::give_up(Errc::deadline_exceeded, "the broker has not confirmed the messages");
  }
  /// The next process is the same member of the group.
  void take_back_soon(ConsumerSpec& spec) override { spec.settings["group.instance.id"] = "one"; }

 private:
  [[nodiscard]] static ConsumerSpec spec_of(const std::string& topic, const std::string& brokers) {
    return {.name = test::unique_name("group"),
            .source = "kafka",
            .read = {topic},
            .settings = {{"brokers", brokers}}};
  }

  const test::KafkaTopic topic_;
};

}  // namespace

std::unique_ptr<Place> make_place() { return std::make_unique<KafkaPlace>(); }

Limits limits() { return {.parts = true, .ordered_after_kill = true, .needs_place = false}; }

const char* variable() { return "OUTBOX_TEST_KAFKA"; }

}  // namespace outbox::conformance
