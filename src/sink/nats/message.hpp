// An event as a message of NATS: subject, headers, body, and where the answer goes.
#pragma once

#include <cstddef>
#include <outbox/sink.hpp>
#include <string>
#include <string_view>

#include "sink/message_id.hpp"
#include "sink/nats/handle.hpp"

namespace outbox::sink::nats {

// ---- What NATS allows as a subject to publish to and as a header (its architecture decision
// records ADR-6 and ADR-4), without what would be a command to the server. Pure.

/// A server closes the connection on a line longer than its max_control_line, by default 4096
/// bytes: subject, reply subject and two numbers.
inline constexpr std::size_t kMostSubjectBytes = 3800;
/// The longest prefix of reply subjects.
inline constexpr std::size_t kMostInboxPrefixBytes = 100;

/// What is wrong with the subject ("has an empty part"); empty if it is valid.
[[nodiscard]] std::string_view wrong_subject(std::string_view subject) noexcept;
[[nodiscard]] std::string_view wrong_header(std::string_view name, std::string_view value) noexcept;
/// What is wrong with the name of a stream or of a JetStream domain; empty if it is valid.
[[nodiscard]] std::string_view wrong_name(std::string_view name) noexcept;

// ---- Messages

/// The header with the message key; missing for an event without a key.
inline constexpr const char* kKeyHeader = "outbox-key";

struct Envelope {
  std::string subscription;
  std::string reply;   ///< The subject for the answer.
  std::string stream;  ///< The only stream that may take the message; empty for any.
};

/// JetStream stores one message for each id within the stream's duplicate_window.
using sink::message_id;

/// Fails if NATS cannot express the message, which is the event's fault.
[[nodiscard]] Result<MessageHandle> make_message(const Message& message, const Envelope& envelope);

}  // namespace outbox::sink::nats
