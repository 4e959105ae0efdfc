// Events as JSON lines, for `outbox enqueue`. Pure.
#pragma once

#include <outbox/event.hpp>
#include <string>
#include <string_view>

namespace outbox::event {

/// Parses {"aggregate_type": "order", "aggregate_id": "42", "event_type": "OrderPlaced",
///  "payload": {...}, "headers": {"k": "v"}, "id": "uuid", "content_type": "application/json",
///  "occurred_at": "2026-01-05T08:09:12Z"}. The payload is the JSON text byte for byte; if the
///  content type is not JSON, a string is its characters. "payload_base64" carries bytes. An
///  unknown member is an error that names the nearest known one.
[[nodiscard]] Result<Event> parse_event(std::string_view line);

/// The headers of an event as a JSON object of strings, and back.
[[nodiscard]] std::string headers_to_json(const std::vector<Header>& headers);
[[nodiscard]] Result<std::vector<Header>> headers_from_json(std::string_view json);

}  // namespace outbox::event
