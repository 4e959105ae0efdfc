// One message as one line of JSON, for the sinks that write text; and the ids in such lines.
//
//   {"topic":"order.events","key":"42","headers":{"outbox-id":"..."},"body":{"total":12.5},
//   "id":"0199...","seq":7,"aggregate_type":"order","aggregate_id":"42","event_type":"OrderPlaced"}
//
// The order of the members is part of the format. `key` is null for a message without a key. `body`
// is the message's own JSON if its content type is JSON and it is valid (line breaks between tokens
// become spaces), or else a string if it is UTF-8; other bodies are in "body_base64". The file sink
// recognizes its files by the start of a line.
#pragma once

#include <optional>
#include <outbox/event.hpp>
#include <outbox/sink.hpp>
#include <string>
#include <string_view>

#include "sink/read_back.hpp"

namespace outbox::sink {

inline constexpr std::string_view kLineStart = "{\"topic\":\"";

/// Appends the line and its line feed.
void append_json_line(std::string& out, const Message& message);

// ---- The ids in files that say what was delivered: lines of JSON, or one id per line.

/// The id in a line of JSON, or the line itself; nullopt if the line is incomplete. Pure.
[[nodiscard]] std::optional<EventId> delivered_id(std::string_view line);

/// Reads one file. Its ids belong to part `number`.
[[nodiscard]] Result<ReadPart> read_delivered(const std::string& path, std::uint32_t number,
                                              const TakeId& take);

}  // namespace outbox::sink
