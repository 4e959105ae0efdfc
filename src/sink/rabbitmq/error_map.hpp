// What the server's codes mean for a message and for people. Pure.
#pragma once

#include <cstdint>
#include <outbox/error.hpp>
#include <string_view>

namespace outbox::sink::rabbitmq {

/// Who is at fault when the server closes the channel or the connection.
enum class Fault : std::uint8_t {
  message,      ///< One of the messages that were sent; the server does not say which.
  destination,  ///< Exchange, rights, virtual host.
  connection,   ///< The server goes down, or nobody in particular.
};
[[nodiscard]] Fault fault_of(std::uint16_t code) noexcept;

/// The error for people. `where`: the server's address, an exchange or a queue on it. `text`: the server's own words.
[[nodiscard]] Error describe(std::uint16_t code, std::string_view text, std::string_view where);
/// The same while logging in: codes mean something else there.
[[nodiscard]] Error describe_login(std::uint16_t code, std::string_view text,
                                   std::string_view where);

/// basic.return: no queue gets the message. `code` and `text` are the server's.
[[nodiscard]] Error describe_return(std::uint16_t code, std::string_view text,
                                    std::string_view exchange, std::string_view routing_key);
/// basic.nack, for which the protocol has no reason.
[[nodiscard]] Error describe_nack(std::string_view address);
/// connection.blocked, with the server's reason ("low on memory").
[[nodiscard]] Error describe_blocked(std::string_view reason, std::string_view address);

}  // namespace outbox::sink::rabbitmq
