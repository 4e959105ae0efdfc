// An event as a message of NATS: subject, headers, body, and where the answer goes.
#pragma once

#include <outbox/sink.hpp>
#include <string>

#include "sink/nats/handle.hpp"

namespace outbox::sink::nats {

/// The header with the message key. None for an event without a key.
inline constexpr const char* kKeyHeader = "outbox-key";

struct Envelope {
  std::string subscription;
  std::string reply;   ///< Where the answer goes.
  std::string stream;  ///< Only this one may take it; empty: any.
};

/// JetStream stores a message once for each id, within the stream's duplicate_window. So it is the same each time this subscription sends
/// this event, and of nothing else: two subscriptions may send an event to one stream, two events may have one id, and a replay sends events again
/// on purpose.
[[nodiscard]] std::string message_id(const EventView& event, const std::string& subscription);

/// Fails when NATS cannot express it: the event is at fault.
[[nodiscard]] Result<MessageHandle> make_message(const Message& message, const Envelope& envelope);

}  // namespace outbox::sink::nats
