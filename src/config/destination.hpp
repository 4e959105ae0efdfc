// What can be said of a destination without asking it. Pure.
#pragma once

#include <outbox/error.hpp>
#include <string_view>

namespace outbox::config {

/// A topic's name, as Kafka takes it. What a template makes is known with each event only, and passes.
[[nodiscard]] Status check_kafka_topic(std::string_view topic);

/// "HOST:PORT,HOST:PORT"; the port may be left out, and a protocol may stand before it (SSL://HOST).
[[nodiscard]] Status check_brokers(std::string_view brokers);

}  // namespace outbox::config
