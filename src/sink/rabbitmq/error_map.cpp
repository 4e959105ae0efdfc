#include "sink/rabbitmq/error_map.hpp"

#include <fmt/format.h>

#include <string>

#include "base/text.hpp"
#include "event/utf8.hpp"
#include "sink/rabbitmq/librabbitmq.hpp"

namespace outbox::sink::rabbitmq {
namespace {

struct Meaning {
  std::uint16_t code;
  Fault fault;
  Errc errc;
  Remedy remedy;
  const char* hint;
};

using enum Fault;
using enum Remedy;

constexpr const char* kMessage =
    "the server refuses this message: is it larger than its max_message_size? Set "
    "rabbitmq.max_message_size as low, or raise it there";
constexpr const char* kMissing =
    "create what is missing, or set rabbitmq.declare = true; events wait";
constexpr const char* kRights =
    "give the sink's user the right to write to the exchange; with rabbitmq.declare also to configure and read exchange and "
    "queue (rabbitmqctl set_permissions)";
constexpr const char* kOurs = "the server did not expect what the sink sent: report it as a bug";
constexpr const char* kAgain = "check the server and its log; events wait and nothing is lost";

/// Reply codes of specification 1.2 ("Domain: reply-code"), with RabbitMQ's use of them.
constexpr Meaning kMeanings[] = {
    {AMQP_CONTENT_TOO_LARGE, message, Errc::too_large, fix, kMessage},
    // For basic.publish: a size above max_message_size, or a wrong value of a known property or
    // header.
    {AMQP_PRECONDITION_FAILED, message, Errc::invalid_argument, fix, kMessage},
    {AMQP_FRAME_ERROR, message, Errc::invalid_argument, fix, kMessage},
    {AMQP_SYNTAX_ERROR, message, Errc::invalid_argument, fix, kMessage},

    {AMQP_ACCESS_REFUSED, destination, Errc::permission_denied, fix, kRights},
    {AMQP_NOT_FOUND, destination, Errc::not_found, fix, kMissing},
    {AMQP_RESOURCE_LOCKED, destination, Errc::unavailable, fix,
     "another connection uses the queue exclusively"},
    {AMQP_INVALID_PATH, destination, Errc::not_found, fix,
     "check the virtual host in rabbitmq.url"},
    {AMQP_NOT_ALLOWED, destination, Errc::permission_denied, fix, kRights},
    {AMQP_NOT_IMPLEMENTED, destination, Errc::unsupported, fix,
     "the server lacks what the sink needs: is it RabbitMQ 3.8 or later?"},

    {AMQP_CONNECTION_FORCED, connection, Errc::unavailable, reconnect, kAgain},
    {AMQP_RESOURCE_ERROR, connection, Errc::unavailable, reconnect, kAgain},
    {AMQP_INTERNAL_ERROR, connection, Errc::unavailable, reconnect, kAgain},
    {AMQP_COMMAND_INVALID, connection, Errc::internal, reconnect, kOurs},
    {AMQP_CHANNEL_ERROR, connection, Errc::internal, reconnect, kOurs},
    {AMQP_UNEXPECTED_FRAME, connection, Errc::internal, reconnect, kOurs},
};

constexpr Meaning kUnknown{0, connection, Errc::unavailable, reconnect, kAgain};

const Meaning& find_meaning(std::uint16_t code) noexcept {
  for (const Meaning& meaning : kMeanings) {
    if (meaning.code == code) return meaning;
  }
  return kUnknown;
}

/// The server's text, which begins with the name of the code. It may quote any bytes.
std::string shown(std::string_view words, std::string_view otherwise) {
  if (words.empty()) words = otherwise;
  std::string out(words);
  if (event::is_utf8(words) && !has_control(words)) return out;
  for (char& c : out) {
    if (c < ' ' || c > '~') c = '?';
  }
  return out;
}

std::string shown(std::uint16_t code, std::string_view words) {
  return shown(words, fmt::format("code {}", code));
}

std::string exchange_name(std::string_view exchange) {
  return exchange.empty() ? "the default exchange" : "exchange " + in_quotes(exchange);
}

}  // namespace

Fault find_fault(std::uint16_t code) noexcept { return find_meaning(code).fault; }

Error describe(std::uint16_t code, std::string_view text, std::string_view where) {
  const Meaning& meaning = find_meaning(code);
  return {.code = meaning.errc,
          .remedy = meaning.remedy,
          .effect = Effect::none,
          .message = fmt::format("rabbitmq: {}: {}", where, shown(code, text)),
          .hint = meaning.hint,
          .origin = fmt::format("rabbitmq:{}", code)};
}

Error describe_login(std::uint16_t code, std::string_view text, std::string_view where) {
  Error error = describe(code, text, where);
  if (code == AMQP_ACCESS_REFUSED) {
    error.hint =
        "check rabbitmq.username and rabbitmq.password; the user guest may log in from the server's own machine only";
  } else if (code == AMQP_NOT_ALLOWED) {
    error.hint =
        "check the virtual host in rabbitmq.url, and that the user may use it (rabbitmqctl set_permissions)";
  }
  return error;
}

Error describe_return(std::uint16_t code, std::string_view text, std::string_view exchange,
                      std::string_view routing_key) {
  return {
      .code = Errc::not_found,
      .remedy = fix,
      .effect = Effect::none,
      .message = fmt::format("rabbitmq: {}: no queue for routing key {} ({})",
                             exchange_name(exchange), in_quotes(routing_key), shown(code, text)),
      .hint =
          exchange.empty()
              ? "create a queue of this name, or set rabbitmq.exchange"
              : "bind a queue to the exchange with a pattern that fits, or see rabbitmq.unroutable",
      .origin = fmt::format("rabbitmq:{}", code)};
}

/// One of several queues refused the message, so others may have it.
Error describe_nack(std::string_view address) {
  return {
      .code = Errc::unavailable,
      .remedy = retry_call,
      .effect = Effect::unknown,
      .message = fmt::format("rabbitmq: {}: a queue did not take the event (basic.nack)", address),
      .hint =
          "is the queue full (max-length with overflow = reject-publish)? See the server's log; events wait",
      .origin = "rabbitmq:nack"};
}

Error describe_blocked(std::string_view reason, std::string_view address) {
  return {
      .code = Errc::unavailable,
      .remedy = retry_call,
      .effect = Effect::none,
      .message = fmt::format("rabbitmq: {}: the server takes no messages now: {}", address,
                             shown(reason, "it does not say why")),
      .hint =
          "free memory or disk space of the server (rabbitmqctl status lists its alarms); events wait",
      .origin = "rabbitmq:blocked"};
}

}  // namespace outbox::sink::rabbitmq
