// From a TCP connection to one that takes events: login, one channel in confirm mode, and what must be there on the server.
#pragma once

#include <memory>
#include <outbox/error.hpp>

#include "sink/rabbitmq/config.hpp"
#include "sink/rabbitmq/connection.hpp"

namespace outbox::sink::rabbitmq {

/// Opens one to the first of the addresses that takes events, until then at the latest.
[[nodiscard]] Result<std::unique_ptr<Connection>> open_connection(const RabbitOptions& options,
                                                                  Connection::TimePoint until);

}  // namespace outbox::sink::rabbitmq
