// The settings of a Redis sink. See docs/sinks/redis.md.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "base/field_error.hpp"
#include "sink/endpoint.hpp"
#include "sink/kind.hpp"
#include "sink/redis/connection.hpp"

namespace outbox::sink::redis {

struct RedisSettings {
  std::string url;
  std::string username;
  std::string password;
  TlsSettings tls{};
  std::chrono::milliseconds connect_timeout{std::chrono::seconds(5)};
  std::chrono::milliseconds deadline{std::chrono::seconds(10)};
  std::size_t max_in_flight{1000};
  std::chrono::milliseconds dedup_window{std::chrono::minutes(10)};
  std::size_t max_length{0};
  std::size_t wait_replicas{0};
  std::chrono::milliseconds wait_timeout{std::chrono::seconds(1)};
  std::size_t max_message_bytes{0};
};

/// The settings, checked and taken apart.
struct RedisOptions {
  std::vector<Endpoint> endpoints;  ///< The path is the number of the database.
  std::string username;             ///< Instead of the one of the endpoint.
  std::string password;
  TlsSettings tls{};
  std::chrono::milliseconds connect_timeout{};
  std::chrono::milliseconds deadline{};
  std::size_t max_in_flight{0};
  std::chrono::milliseconds dedup_window{};  ///< 0: ids are not remembered.
  std::size_t max_length{0};                 ///< 0: any.
  std::size_t wait_replicas{0};              ///< 0: no WAIT.
  std::chrono::milliseconds wait_timeout{};
  std::size_t max_message_bytes{0};  ///< 0: what the server takes.
};

/// Complains about what is wrong.
[[nodiscard]] RedisOptions options_of(const RedisSettings& settings, FieldErrors& errors);

[[nodiscard]] SinkKind kind();

}  // namespace outbox::sink::redis
