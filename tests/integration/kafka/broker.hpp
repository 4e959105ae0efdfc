// A real broker for the tests of the sink.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "conformance/sink/suite.hpp"
#include "support/kafka.hpp"

namespace outbox::test {

/// The host:port of the broker that the tests may use; nullopt if there is none.
[[nodiscard]] std::optional<std::string> kafka_brokers();

/// The properties with which a sink logs in at the broker's listener for logins. Needs
/// OUTBOX_TEST_KAFKA_LOGIN.
[[nodiscard]] KafkaProperties kafka_login();

/// A topic with a unique name, which is deleted at the end.
class BrokerTopic : public KafkaTopic {
 public:
  /// Chooses only the name; create() makes the topic.
  BrokerTopic();
  explicit BrokerTopic(int partitions, const KafkaProperties& settings = {});

  /// All messages of the topic in the form that the conformance suite uses.
  [[nodiscard]] std::vector<Arrived> arrived() const;
};

}  // namespace outbox::test
