// An event as a message of NATS: subject, headers, body, and where the answer goes.
#pragma once

#include <cstddef>
#include <outbox/sink.hpp>
#include <string>
#include <string_view>

#include "sink/message_id.hpp"
#include "sink/nats/handle.hpp"

namespace outbox::sink::nats {

// ---- What NATS allows as a subject to publish to and as a header (its architecture decision records ADR-6 and ADR-4), less what would be a
// command to the server. Pure.

/// A server closes the connection on a longer line than its max_control_line, by default 4096 bytes: subject, reply subject and two
/// numbers.
inline constexpr std::size_t kMostSubjectBytes = 3800;
/// What precedes the name of each reply subject.
inline constexpr std::size_t kMostInboxPrefixBytes = 100;

/// What is wrong with it ("has an empty part"); empty: nothing.
[[nodiscard]] std::string_view wrong_subject(std::string_view subject) noexcept;
[[nodiscard]] std::string_view wrong_header(std::string_view name, std::string_view value) noexcept;
/// Of a stream, or of a JetStream domain.
[[nodiscard]] std::string_view wrong_name(std::string_view name) noexcept;

// ---- Messages

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
