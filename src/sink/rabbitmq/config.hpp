// The settings of a RabbitMQ sink. See docs/sinks/rabbitmq.md.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/field_error.hpp"
#include "format/template.hpp"
#include "sink/byte_stream.hpp"
#include "sink/endpoint.hpp"
#include "sink/kind.hpp"

namespace outbox::sink::rabbitmq {

struct RabbitSettings {
  std::string url;
  std::string username;  ///< Replaces the one in url.
  std::string password;
  TlsSettings tls{};
  std::string exchange;
  std::string unroutable{"block"};
  bool declare{false};
  std::string exchange_type{"topic"};
  std::string queue;
  std::string queue_type{"quorum"};
  std::string binding;
  std::string management_url;
  std::chrono::milliseconds connect_timeout{std::chrono::seconds(5)};
  std::chrono::milliseconds deadline{std::chrono::seconds(10)};
  std::chrono::milliseconds heartbeat{std::chrono::seconds(15)};
  std::size_t max_in_flight{512};
  std::size_t max_message_size{std::size_t{16} << 20U};
};

/// What must exist on the server before events are sent.
struct Topology {
  /// Empty for the default exchange, which always exists, and for one that depends on the event.
  std::string exchange;
  std::string queue;  ///< No queue is looked at if empty.
  /// Whether what is missing is made with these properties; otherwise it must exist.
  bool declare{false};
  std::string exchange_type{};
  std::string queue_type{};
  std::string binding{};
};

/// What happens to an event that no queue gets.
enum class Unroutable : std::uint8_t { block, reject, discard };

/// The checked settings.
struct RabbitOptions {
  RabbitSettings plain;                   ///< The settings that need no conversion.
  std::vector<Endpoint> endpoints;        ///< The addresses; a path is the virtual host.
  std::string connection_name{"outbox"};  ///< The name that the server shows.
  format::Template exchange;
  Topology topology;
  Unroutable unroutable{Unroutable::block};
  std::optional<Endpoint> management{};  ///< The address of the management API.
  std::chrono::seconds heartbeat{};
};

struct Login {
  std::string username;
  std::string password;
};
/// Empty if only a client certificate is given; the guest's if nothing at all is given.
[[nodiscard]] Login make_login(const RabbitOptions& options, const Endpoint& endpoint);

/// The rows of the settings and their checks.
[[nodiscard]] const Declaration<RabbitSettings>& declaration();

/// Adds an error for each setting that is wrong.
[[nodiscard]] RabbitOptions parse_options(const RabbitSettings& settings, FieldErrors& errors);

}  // namespace outbox::sink::rabbitmq
