// A message as AMQP has it: the properties and headers of basic.publish. Pure.
#pragma once

#include <amqp.h>
#include <amqp_framing.h>

#include <cstddef>
#include <optional>
#include <outbox/sink.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace outbox::sink::rabbitmq {

/// Of CloudEvents attributes in headers: AMQP protocol binding, 3.1.3.1.
inline constexpr std::string_view kAttributePrefix = "cloudEvents:";
/// The message key, for which AMQP has no place of its own.
inline constexpr std::string_view kKeyHeader = "outbox-key";

/// Why it cannot be sent: its event is at fault. None: it can.
[[nodiscard]] std::optional<Error> refusal_of(const Message& message,
                                              std::size_t max_message_size);
/// The headers do not fit into a frame.
[[nodiscard]] Error too_many_headers(const Message& message);

class Publication {
 public:
  /// Valid until the next call, and as long as the message.
  [[nodiscard]] amqp_basic_properties_t& make(const Message& message);

 private:
  void add_headers(const Message& message);

  amqp_basic_properties_t properties_{};
  std::vector<amqp_table_entry_t> headers_;
  std::string id_;
};

}  // namespace outbox::sink::rabbitmq
