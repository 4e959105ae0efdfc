// Makes a TCP connection one with a channel: login, and what the sink needs on it, which is confirm
// mode and checks of what must exist on the server.
#pragma once

#include <functional>
#include <memory>
#include <outbox/error.hpp>
#include <string_view>

#include "sink/rabbitmq/config.hpp"
#include "sink/rabbitmq/connection.hpp"

namespace outbox::sink::rabbitmq {

// ---- Methods that the server answers while a connection is opened. Each call waits for its
// answer; an answer that closes the channel or the connection is an error.

class Requests {
 public:
  Requests(Connection& connection, Connection::TimePoint until)
      : connection_(connection), until_(until) {}

  /// Makes the error of a reply code (error_map.hpp).
  using Describe = Error (*)(std::uint16_t code, std::string_view text, std::string_view where);

  /// Waits for this method. The result is its structure, valid until the next request.
  [[nodiscard]] Result<const void*> await(amqp_channel_t channel, amqp_method_number_t id,
                                          Describe describe);
  /// Sends a method on our channel and waits for its answer.
  template <class Method>
  [[nodiscard]] Status call(amqp_method_number_t id, Method method, amqp_method_number_t answer) {
    connection_.send(kChannel, id, method);
    return await_answer(answer);
  }

  [[nodiscard]] Status open_channel();
  [[nodiscard]] Status confirm_messages();

 private:
  [[nodiscard]] Status await_answer(amqp_method_number_t id);

  Connection& connection_;
  const Connection::TimePoint until_;
};

// ---- Exchange, queue and binding on the server.

/// Makes what is missing if the settings say so; otherwise fails if something is missing.
[[nodiscard]] Status check_topology(Requests& requests, const Topology& topology);

/// What must succeed on the new channel for the connection to be used.
using Prepare = std::function<Status(Requests&)>;

/// Opens a connection to the first address that can be prepared, by `until` at the latest.
[[nodiscard]] Result<std::unique_ptr<Connection>> open_connection(const RabbitOptions& options,
                                                                  Connection::TimePoint until,
                                                                  const Prepare& prepare);

}  // namespace outbox::sink::rabbitmq
