// Reads what RabbitMQ's management API says about a queue: with which of its properties events that were acked can be lost. AMQP itself does
// not tell them. Pure.
#pragma once

#include <outbox/error.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "sink/inspection.hpp"

namespace outbox::sink::rabbitmq {

/// `reply`: to GET /api/queues/VHOST/NAME.
[[nodiscard]] Result<std::vector<Weakness>> check_queue(std::string_view reply);

}  // namespace outbox::sink::rabbitmq
