// The headers of an event as stored: a JSON object of strings. Rows written by plain SQL may hold
// anything: a value that is not a string counts as its JSON text, and text that is not a JSON
// object as no headers. Pure.
#pragma once

#include <outbox/event.hpp>
#include <outbox/sink.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "event/arena.hpp"

namespace outbox::event {

/// Whether a destination may take one name for the other. HTTP and mail ignore case. A program
/// behind an HTTP server sees '-' as '_' (CGI, WSGI, PHP); CloudEvents over AMQP reads '_' as ':'.
[[nodiscard]] bool same_header(std::string_view a, std::string_view b) noexcept;
/// Whether a destination may take the name for one with that prefix.
[[nodiscard]] bool has_header_prefix(std::string_view name, std::string_view prefix) noexcept;

/// Names with this prefix, as a destination may read it, are ours. Events cannot set them.
inline constexpr std::string_view kReservedPrefix = "outbox-";
/// The id of the event, in formats that do not have it elsewhere.
inline constexpr std::string_view kIdHeader = "outbox-id";
/// The header that a format sets if the content type of the event is known.
inline constexpr std::string_view kContentTypeHeader = "content-type";
[[nodiscard]] bool is_reserved_header(std::string_view name) noexcept;
/// The reserved header that the corrected copy of a parked event has: the id of the original.
inline constexpr std::string_view kEditedFromHeader = "outbox-edited-from";

/// The reserved header on what a replay sends again: the id of the replay.
inline constexpr std::string_view kReplayHeader = "outbox-replay";
/// The event's kReplayHeader; empty if no replay sends the event.
[[nodiscard]] std::string_view read_replay(const EventView& event, Arena& arena);
/// The headers as JSON, with this one first. Anything but a JSON object counts as no headers.
[[nodiscard]] std::string with_header(std::string_view json, std::string_view name,
                                      std::string_view value);

/// Sees the usual case of no headers without parsing.
[[nodiscard]] inline bool no_headers(std::string_view json) noexcept {
  return json.empty() || json == "{}";
}

/// The headers that what a task enqueues gets from it: its correlation_id, and as causation_id the
/// id of the message that it was (the header message-id), or its own.
[[nodiscard]] std::vector<Header> inherited_headers(std::string_view json, const EventId& id);

/// Adds those of the headers that an event does not have.
void inherit(std::vector<Event>& events, const std::vector<Header>& headers);

/// Appends the headers in the order of the text, without reserved ones other than the two above.
/// The views point into `json` where possible, otherwise into the arena.
void read_headers(std::string_view json, Arena& arena, std::vector<HeaderView>& into);

/// The value of the first header of that name, in any case; empty if there is none.
[[nodiscard]] std::string_view find_header(std::string_view json, std::string_view name,
                                           Arena& arena);

}  // namespace outbox::event
