#include "sink/rabbitmq/topology.hpp"

#include <fmt/format.h>

#include <utility>

#include "sink/rabbitmq/table.hpp"

namespace outbox::sink::rabbitmq {
namespace {

/// The code to a declaration means that it exists with other properties; to a message it means something else.
Status about(Status done, const char* setting) {
  if (done) return done;
  Error& error = done.error();
  if (error.origin == fmt::format("rabbitmq:{}", AMQP_PRECONDITION_FAILED)) {
    error.code = Errc::already_exists;
    error.hint = fmt::format(
        "it exists with other properties than {} says: make the setting agree, or declare = false",
        setting);
  }
  return done;
}

Status check_exchange(Requests& requests, const Topology& topology) {
  amqp_exchange_declare_t method{};
  method.exchange = bytes_of(topology.exchange);
  method.type = bytes_of(topology.exchange_type);
  method.passive = topology.declare ? 0 : 1;
  method.durable = 1;
  return about(requests.call(AMQP_EXCHANGE_DECLARE_METHOD, method, AMQP_EXCHANGE_DECLARE_OK_METHOD),
               "rabbitmq.exchange_type");
}

Status check_queue(Requests& requests, const Topology& topology) {
  amqp_table_entry_t type = entry_of("x-queue-type", topology.queue_type);
  amqp_queue_declare_t method{};
  method.queue = bytes_of(topology.queue);
  method.passive = topology.declare ? 0 : 1;
  method.durable = 1;
  if (topology.declare) method.arguments = table_of({&type, 1});
  return about(requests.call(AMQP_QUEUE_DECLARE_METHOD, method, AMQP_QUEUE_DECLARE_OK_METHOD),
               "rabbitmq.queue_type");
}

Status bind(Requests& requests, const Topology& topology) {
  amqp_queue_bind_t method{};
  method.queue = bytes_of(topology.queue);
  method.exchange = bytes_of(topology.exchange);
  method.routing_key = bytes_of(topology.binding);
  return requests.call(AMQP_QUEUE_BIND_METHOD, method, AMQP_QUEUE_BIND_OK_METHOD);
}

}  // namespace

Status check_topology(Requests& requests, const Topology& topology) {
  if (!topology.exchange.empty()) {
    if (Status done = check_exchange(requests, topology); !done) return done;
  }
  if (topology.queue.empty()) return {};
  if (Status done = check_queue(requests, topology); !done) return done;
  // Every queue is bound to the default exchange by its name, and only so.
  if (!topology.declare || topology.exchange.empty()) return {};
  return bind(requests, topology);
}

}  // namespace outbox::sink::rabbitmq
