// A real broker for the tests of the sink.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "conformance/sink/suite.hpp"
#include "support/kafka.hpp"

namespace outbox::test {

/// host:port of the broker the tests may use; nothing when there is none.
[[nodiscard]] std::optional<std::string> kafka_brokers();

/// What a sink needs to log in at the broker's listener for that. Only if OUTBOX_TEST_KAFKA_LOGIN
/// is set.
[[nodiscard]] KafkaProperties kafka_login();

/// A topic with a unique name, deleted at the end.
class BrokerTopic : public KafkaTopic {
 public:
  /// Only the name; create() makes it.
  BrokerTopic();
  explicit BrokerTopic(int partitions, const KafkaProperties& settings = {});

  /// Everything on it as the conformance suite wants it.
  [[nodiscard]] std::vector<Arrived> arrived() const;
};

}  // namespace outbox::test
