// Makes a Kafka sink with the settings that a test wants, as the registry makes it.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "integration/kafka/broker.hpp"
#include "sink/registry.hpp"

namespace outbox::test {

[[nodiscard]] inline std::unique_ptr<Sink> make_kafka_sink(
    std::map<std::string, std::string> settings = {}) {
  SubscriptionSpec spec;
  spec.name = "orders";
  spec.sink = "kafka";
  spec.sink_settings = std::move(settings);
  spec.sink_settings.emplace("brokers", kafka_brokers().value_or(""));
  auto made = sink::make_sink(spec);
  if (!made) {
    ADD_FAILURE() << made.error().text();
    return nullptr;
  }
  return std::move(*made);
}

}  // namespace outbox::test
