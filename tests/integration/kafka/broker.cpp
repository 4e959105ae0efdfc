#include "integration/kafka/broker.hpp"

#include "support/servers.hpp"

namespace outbox::test {

std::optional<std::string> kafka_brokers() { return environment("OUTBOX_TEST_KAFKA"); }

KafkaProperties kafka_login() {
  return {{"brokers", *environment("OUTBOX_TEST_KAFKA_LOGIN")},
          {"tls", "true"},
          {"tls_ca", *environment("OUTBOX_TEST_KAFKA_TLS_FOLDER") + "/ca.pem"},
          {"sasl_mechanism", "PLAIN"},
          {"username", *environment("OUTBOX_TEST_KAFKA_USER")},
          {"password", *environment("OUTBOX_TEST_KAFKA_PASSWORD")}};
}

BrokerTopic::BrokerTopic() : KafkaTopic(kafka_brokers().value_or(""), unique_name("outbox-test")) {}

BrokerTopic::BrokerTopic(int partitions, const KafkaProperties& settings) : BrokerTopic() {
  create(partitions, settings);
}

std::vector<Arrived> BrokerTopic::arrived() const {
  std::vector<Arrived> all;
  for (const KafkaRecord& record : read()) {
    const auto id = record.headers.find("outbox-id");
    all.push_back({.id = id == record.headers.end() ? "" : id->second,
                   .key = record.key,
                   .body = record.value.value_or("(null)")});
  }
  return all;
}

}  // namespace outbox::test
