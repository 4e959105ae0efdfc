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
/// @FILE reads a file, - stdin; else the text itself.
[[nodiscard]] std::string read_payload(const std::string& given);
/// A time, or how long ago. Microseconds since 1970, UTC.
[[nodiscard]] std::int64_t parse_moment(const std::string& option, const std::string& text);
/// Of --key, AGGREGATE_TYPE/AGGREGATE_ID.
[[nodiscard]] std::pair<std::string, std::string> parse_key(const std::string& text);
/// Who runs this, for what is kept of a person's decisions.
[[nodiscard]] std::string this_user();
/// Ends the verb: no event (or task: `what`) has this id. `complete`: all of the log was looked at,
/// else it says where it was looked for.
[[noreturn]] void event_not_found(const std::string& id, const std::string& what, bool complete);
/// NAME=VALUE.
[[nodiscard]] Header parse_header(const std::string& text);

}  // namespace outbox::cli
