// The settings of a RabbitMQ sink. See docs/sinks/rabbitmq.md.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/field_error.hpp"
#include "event/template.hpp"
#include "sink/byte_stream.hpp"
#include "sink/endpoint.hpp"
#include "sink/kind.hpp"

namespace outbox::sink::rabbitmq {

struct RabbitSettings {
  std::string url;
  std::string username;  ///< Instead of the one in url.
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

/// What must be there before events are sent.
struct Topology {
  /// Empty: the default exchange, which is always there, or one that depends on the event.
  std::string exchange;
  std::string queue;  ///< Empty: none is looked at.
  /// Made if it is missing, with these properties. Else it must be there.
  bool declare{false};
  std::string exchange_type{};
  std::string queue_type{};
  std::string binding{};
};

/// What becomes of an event that no queue gets.
enum class Unroutable : std::uint8_t { block, reject, discard };

/// Settings that were checked.
struct RabbitOptions {
  RabbitSettings plain;                   ///< What needs no more than that.
  std::vector<Endpoint> endpoints;        ///< The path is the virtual host.
  std::string connection_name{"outbox"};  ///< As the server shows it.
  event::Template exchange;
  Topology topology;
  Unroutable unroutable{Unroutable::block};
  std::optional<Endpoint> management{};  ///< Of the management API.
  std::chrono::seconds heartbeat{};
};

struct Login {
  std::string username;
  std::string password;
};
/// Both are empty where only a client certificate is given. Who gives nothing at all is the guest.
[[nodiscard]] Login login_of(const RabbitOptions& options, const Endpoint& endpoint);

/// Complains about what is wrong.
[[nodiscard]] RabbitOptions options_of(const RabbitSettings& settings, FieldErrors& errors);

}  // namespace outbox::sink::rabbitmq
