// The headers of an event as the store keeps them: a JSON object of strings. Whoever wrote the row with plain SQL may
// have put anything there: a value that is not a string is its JSON text; what is no JSON object is no headers. Pure.
#pragma once

#include <outbox/sink.hpp>
#include <string_view>
#include <vector>

#include "event/arena.hpp"

namespace outbox::event {

/// Names that begin so, in any case, are ours. An event cannot bring them.
inline constexpr std::string_view kReservedPrefix = "outbox-";
/// Ours when the content type is known from elsewhere; in any case.
inline constexpr std::string_view kContentTypeHeader = "content-type";
[[nodiscard]] bool is_reserved_header(std::string_view name) noexcept;

/// The usual case, seen without parsing.
[[nodiscard]] inline bool no_headers(std::string_view json) noexcept {
  return json.empty() || json == "{}";
}

/// Appends the headers in the order of the text, without the reserved ones. Views into `json` where possible, else into
/// the arena.
void read_headers(std::string_view json, Arena& arena, std::vector<HeaderView>& into);

/// The value of the first header of that name (in any case); empty when there is none.
[[nodiscard]] std::string_view find_header(std::string_view json, std::string_view name,
                                           Arena& arena);

}  // namespace outbox::event
