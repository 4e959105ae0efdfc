// One message as one line of JSON, for the sinks that write text. Pure.
//
//   {"topic":"order.events","key":"42","headers":{"outbox-id":"..."},"body":{"total":12.5},"id":"0199...","seq":7,
//    "aggregate_type":"order","aggregate_id":"42","event_type":"OrderPlaced"}
//
// The order of the members is part of the format. `key` is null for a message without one. The body is, in this order:
// verbatim when its content type is JSON and it is valid JSON (line breaks between tokens become spaces); else a string when it is
// UTF-8; else the member is "body_base64". The file sink recognizes its files by the start of a line.
#pragma once

#include <outbox/sink.hpp>
#include <string>
#include <string_view>

namespace outbox::sink {

inline constexpr std::string_view kLineStart = "{\"topic\":\"";

/// Appends the line and its line feed.
void append_json_line(std::string& out, const Message& message);

}  // namespace outbox::sink
