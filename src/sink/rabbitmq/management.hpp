// Asks RabbitMQ's management API (its plugin rabbitmq_management), over HTTP.
#pragma once

#include <chrono>
#include <outbox/error.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "sink/inspection.hpp"
#include "sink/rabbitmq/config.hpp"

namespace outbox::sink::rabbitmq {

/// What RabbitMQ says about the queue of the settings, as JSON. Blocks until `until` at the latest.
[[nodiscard]] Result<std::string> ask_about_queue(const RabbitOptions& options,
                                                  std::chrono::steady_clock::time_point until);

// ---- Reads which properties of a queue can lose acked events, from the management API, because
// AMQP itself does not tell them. Pure.

/// `reply` is that of GET /api/queues/VHOST/NAME.
[[nodiscard]] Result<std::vector<Weakness>> check_queue(std::string_view reply);

}  // namespace outbox::sink::rabbitmq
