// The messages of a Kafka topic, for the judge.
#pragma once

#include <vector>

#include "support/ledger.hpp"
#include "support/shop_options.hpp"
#include "support/testkit.hpp"
#include "testkit/kafka.hpp"

namespace outbox::test {

/// Everything on the topic, in order within each key.
[[nodiscard]] inline std::vector<Delivery> deliveries_on(const KafkaTopic& topic) {
  std::vector<Delivery> all;
  for (const KafkaRecord& record : topic.read()) {
    const std::string body = record.value.value_or("");
    all.push_back({.id = id_in(body), .key = record.key.value_or(""), .body = body});
  }
  return all;
}

}  // namespace outbox::test
