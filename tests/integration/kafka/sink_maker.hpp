// Makes a Kafka sink with the settings that a test wants, as the registry makes it.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "conformance/sink/making.hpp"
#include "integration/kafka/broker.hpp"

namespace outbox::test {

[[nodiscard]] inline std::unique_ptr<Sink> make_kafka_sink(
    std::map<std::string, std::string> settings = {}) {
  settings.emplace("brokers", kafka_brokers().value_or(""));
  return make_sink(make_spec("kafka", std::move(settings)));
}

}  // namespace outbox::test
