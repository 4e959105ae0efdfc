// An event as a message of NATS: subject, headers, body, and where the answer goes.
#pragma once

#include <outbox/sink.hpp>
#include <string>

#include "sink/message_id.hpp"
#include "sink/nats/handle.hpp"

namespace outbox::sink::nats {

/// The header with the message key. None for an event without a key.
inline constexpr const char* kKeyHeader = "outbox-key";

struct Envelope {
  std::string subscription;
  std::string reply;   ///< Where the answer goes.
  std::string stream;  ///< Only this one may take it; empty: any.
};

/// JetStream stores a message once for each, within the stream's duplicate_window.
using sink::message_id;

/// Fails when NATS cannot express it: the event is at fault.
[[nodiscard]] Result<MessageHandle> make_message(const Message& message, const Envelope& envelope);

}  // namespace outbox::sink::nats
