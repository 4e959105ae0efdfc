// Parts of an event, and what selects events, as they are given on the command line of several
// verbs.
#pragma once

#include <cstdint>
#include <outbox/event.hpp>
#include <string>
#include <utility>

namespace outbox::cli {

/// Whether the payload comes from a file or stdin: errors in it are then not usage errors.
[[nodiscard]] bool is_read(const std::string& payload);
/// The payload: the contents of the file for @FILE, of stdin for -, else the text itself.
[[nodiscard]] std::string read_payload(const std::string& given);
/// The moment of a text that is a time, or says how long ago. Unit: microseconds since 1970, UTC.
[[nodiscard]] std::int64_t parse_moment(const std::string& option, const std::string& text);
/// The number of an option, or the largest that a store knows.
[[nodiscard]] std::int64_t bounded_number(std::uint64_t number);
/// The aggregate type and id of a --key AGGREGATE_TYPE/AGGREGATE_ID.
[[nodiscard]] std::pair<std::string, std::string> parse_key(const std::string& text);
/// Ends the verb because no event, or task (`what`), was found with this id. Unless `complete`, not
/// all of the log was searched, and the message says where.
[[noreturn]] void event_not_found(const std::string& id, const std::string& what, bool complete);
/// The header of a text NAME=VALUE.
[[nodiscard]] Header parse_header(const std::string& text);

}  // namespace outbox::cli
