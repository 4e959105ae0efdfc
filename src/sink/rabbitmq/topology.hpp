// Exchange, queue and binding on the server.
#pragma once

#include <outbox/error.hpp>

#include "sink/rabbitmq/config.hpp"
#include "sink/rabbitmq/requests.hpp"

namespace outbox::sink::rabbitmq {

/// Makes what is missing if the settings say so, else fails when something is missing.
[[nodiscard]] Status check_topology(Requests& requests, const Topology& topology);

}  // namespace outbox::sink::rabbitmq
