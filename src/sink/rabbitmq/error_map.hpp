// What the server's codes mean for a message and for people. Pure.
#pragma once

#include <cstdint>
#include <outbox/error.hpp>
#include <string_view>

namespace outbox::sink::rabbitmq {

/// What is at fault when the server closes the channel or the connection.
enum class Fault : std::uint8_t {
  message,      ///< One of the messages that were sent; the server does not say which.
  destination,  ///< The exchange, rights or virtual host.
  connection,   ///< Nothing in particular, or the server goes down.
};
[[nodiscard]] Fault find_fault(std::uint16_t code) noexcept;

/// The error for people. `where` is an address, an exchange or a queue; `text` is the server's.
[[nodiscard]] Error describe(std::uint16_t code, std::string_view text, std::string_view where);
/// The error for a code while logging in, where codes mean something else.
[[nodiscard]] Error describe_login(std::uint16_t code, std::string_view text,
                                   std::string_view where);

/// The error for basic.return: no queue gets the message. `code` and `text` are the server's.
[[nodiscard]] Error describe_return(std::uint16_t code, std::string_view text,
                                    std::string_view exchange, std::string_view routing_key);
/// The error for basic.nack, to which the protocol adds no reason.
[[nodiscard]] Error describe_nack(std::string_view address);
/// The error for connection.blocked, with the server's reason ("low on memory").
[[nodiscard]] Error describe_blocked(std::string_view reason, std::string_view address);

}  // namespace outbox::sink::rabbitmq
