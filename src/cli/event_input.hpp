// Parts of an event as they are given on the command line: of `enqueue` and `parked edit`.
#pragma once

#include <outbox/event.hpp>
#include <string>

namespace outbox::cli {

/// Whether the payload comes from a file or stdin: errors in it are then not usage errors.
[[nodiscard]] bool is_read(const std::string& payload);
/// @FILE reads a file, - stdin; else the text itself.
[[nodiscard]] std::string read_payload(const std::string& given);
/// NAME=VALUE.
[[nodiscard]] Header parse_header(const std::string& text);

}  // namespace outbox::cli
