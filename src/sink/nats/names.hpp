// What NATS allows as a subject to publish to and as a header (its architecture decision records ADR-6 and ADR-4), less what would be a
// command to the server. Pure.
#pragma once

#include <cstddef>
#include <string_view>

namespace outbox::sink::nats {

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

}  // namespace outbox::sink::nats
