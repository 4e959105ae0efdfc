// A delivery of RabbitMQ, which comes in several frames, as a message of a source. Pure.
#pragma once

#include <cstddef>
#include <string>

#include "sink/rabbitmq/librabbitmq.hpp"
#include "source/source.hpp"

namespace outbox::source::rabbitmq {

/// The value of a header as text. A table or an array becomes JSON.
[[nodiscard]] std::string value_text(const amqp_field_value_t& value);

/// Collects basic.deliver, the content header and the body (specification 4.2.6).
class Delivery {
 public:
  /// Begins a delivery whose consumer tag is the name of its queue.
  void begin(const amqp_basic_deliver_t& method);
  /// Takes the properties; the body follows.
  void add(const amqp_basic_properties_t& properties, std::size_t body_size);
  void add(amqp_bytes_t piece_of_body);
  /// Whether nothing of the delivery is missing.
  [[nodiscard]] bool complete() const { return begun_ && message_.payload.size() >= size_; }
  /// The message, once it is complete.
  [[nodiscard]] Received take();

 private:
  Received message_;
  bool begun_{false};  ///< Whether the properties have come.
  std::size_t size_{0};
};

}  // namespace outbox::source::rabbitmq
