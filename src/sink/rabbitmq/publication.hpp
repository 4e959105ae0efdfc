// A message in terms of AMQP: the exchange, and the properties and headers of basic.publish. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <outbox/sink.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "event/arena.hpp"
#include "format/template.hpp"
#include "sink/rabbitmq/librabbitmq.hpp"

namespace outbox::sink::rabbitmq {

/// The prefix of CloudEvents attributes in headers: AMQP protocol binding, 3.1.3.1.
inline constexpr std::string_view kAttributePrefix = "cloudEvents:";
/// The header with the message key, for which AMQP has no place of its own.
inline constexpr std::string_view kKeyHeader = "outbox-key";

/// Why the message cannot be sent, which is its event's fault; nullopt if it can be sent.
[[nodiscard]] std::optional<Error> find_refusal(const Message& message, std::string_view exchange,
                                                std::size_t max_message_size);
/// The error for headers that do not fit into a frame.
[[nodiscard]] Error too_many_headers(const Message& message);

class Publication {
 public:
  explicit Publication(format::Template exchange)
      : exchange_(std::move(exchange)), exchange_varies_(!exchange_.fixed()) {}

  /// The name of the exchange for this message, valid until the next call and as long as the
  /// message. An error is the event's fault.
  [[nodiscard]] Result<std::string_view> exchange_for(const Message& message);
  /// The properties of this message, valid as long. Must follow exchange_for().
  [[nodiscard]] amqp_basic_properties_t& properties_for(const Message& message);

 private:
  [[nodiscard]] std::string_view find_correlation(const Message& message);
  void add_headers(const Message& message);

  const format::Template exchange_;
  const bool exchange_varies_;
  event::Arena arena_;
  amqp_basic_properties_t properties_{};
  std::vector<amqp_table_entry_t> headers_;
  std::string id_;
};

}  // namespace outbox::sink::rabbitmq
