// What can be said of a destination without asking it.
#pragma once

#include <outbox/error.hpp>
#include <string>
#include <string_view>

namespace outbox::config {

/// A topic's name, as Kafka takes it, or a template of it: what a field puts in is known with each event only.
[[nodiscard]] Status check_kafka_topic(std::string_view topic);

/// "HOST:PORT,HOST:PORT"; the port may be left out, and a protocol may stand before it (SSL://HOST).
[[nodiscard]] Status check_brokers(std::string_view brokers);

/// The path of a file sink.
[[nodiscard]] Status check_file(const std::string& path);

/// Whether it can be written there now. Looks at directory and file, and opens nothing.
[[nodiscard]] Status check_place_of_file(const std::string& path);

}  // namespace outbox::config
