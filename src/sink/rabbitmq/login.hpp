// From a TCP connection to one that takes events: login, one channel in confirm mode, and what must be there on the server.
#pragma once

#include <memory>
#include <outbox/error.hpp>

#include "sink/rabbitmq/config.hpp"
#include "sink/rabbitmq/connection.hpp"

namespace outbox::sink::rabbitmq {

/// Opens one to the first of the addresses that takes events, within connect_timeout in all.
[[nodiscard]] Result<std::unique_ptr<Connection>> open_connection(const RabbitOptions& options);

}  // namespace outbox::sink::rabbitmq
