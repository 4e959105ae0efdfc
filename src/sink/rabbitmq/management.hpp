// Asks RabbitMQ's management API (its plugin rabbitmq_management), over HTTP.
#pragma once

#include <chrono>
#include <outbox/error.hpp>
#include <string>

#include "sink/rabbitmq/config.hpp"

namespace outbox::sink::rabbitmq {

/// What it says about the queue of the settings, as JSON. Blocks until then at the latest.
[[nodiscard]] Result<std::string> ask_about_queue(const RabbitOptions& options,
                                                  std::chrono::steady_clock::time_point until);

}  // namespace outbox::sink::rabbitmq
