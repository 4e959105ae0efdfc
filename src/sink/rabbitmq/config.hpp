// The settings of a RabbitMQ sink. See docs/sinks/rabbitmq.md.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "base/field_error.hpp"
#include "sink/byte_stream.hpp"
#include "sink/endpoint.hpp"
#include "sink/kind.hpp"

namespace outbox::sink::rabbitmq {

struct RabbitSettings {
  std::string url;
  std::string username;
  std::string password;
  std::string tls_ca;
  std::string tls_certificate;
  std::string tls_key;
  bool insecure_tls{false};
  std::string exchange;
  bool mandatory{true};
  bool declare{false};
  std::string exchange_type{"topic"};
  std::string queue;
  std::string queue_type{"quorum"};
  std::string binding;
  std::chrono::milliseconds connect_timeout{std::chrono::seconds(5)};
  std::chrono::milliseconds deadline{std::chrono::seconds(10)};
  std::chrono::milliseconds heartbeat{std::chrono::seconds(15)};
  std::size_t max_in_flight{512};
  std::size_t max_message_size{std::size_t{16} << 20U};
};

/// What must be there before events are sent.
struct Topology {
  std::string exchange;  ///< Empty: the default exchange, which is always there.
  std::string queue;     ///< Empty: none is looked at.
  /// Made if it is missing, with these properties. Else it must be there.
  bool declare{false};
  std::string exchange_type{};
  std::string queue_type{};
  std::string binding{};
};

/// The settings, checked and taken apart.
struct RabbitOptions {
  std::vector<Endpoint> endpoints;  ///< The path is the virtual host.
  std::string username;             ///< Instead of the one of the endpoint.
  std::string password;
  Tls tls;
  std::string connection_name{"outbox"};  ///< As the server shows it.
  Topology topology;
  bool mandatory{true};
  std::chrono::milliseconds connect_timeout{};
  std::chrono::milliseconds deadline{};
  std::chrono::seconds heartbeat{};
  std::size_t max_in_flight{0};
  std::size_t max_message_size{0};
};

/// Complains about what is wrong.
[[nodiscard]] RabbitOptions options_of(const RabbitSettings& settings, FieldErrors& errors);

[[nodiscard]] SinkKind kind();

}  // namespace outbox::sink::rabbitmq
