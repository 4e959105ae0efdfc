// Renders messages of rows that may hold anything: EVENT TYPE~AGGREGATE TYPE~AGGREGATE ID~CONTENT
// TYPE~HEADERS~PAYLOAD.
#include <nlohmann/json.hpp>
#include <string>

#include "event/headers.hpp"
#include "event/json_scan.hpp"
#include "event/time_text.hpp"
#include "event/utf8.hpp"
#include "format/render.hpp"
#include "fuzz/fuzz.hpp"
#include "sink/json_line.hpp"
#include "store/archive.hpp"

namespace {

using namespace outbox;
using nlohmann::json;

/// Checks that the only end of line is at the end, whatever the event holds.
void check_line(const std::string& line) {
  OUTBOX_PROPERTY(line.find('\n') == line.size() - 1);
  OUTBOX_PROPERTY(event::is_json(line) && event::is_utf8(line));
}

/// Checks that nlohmann-json reads the same values from the envelope.
void check_envelope(const Message& message) {
  const EventView& event = *message.event;
  OUTBOX_PROPERTY(event::is_json(message.body));
  const json body = json::parse(message.body, nullptr, false);
  if (body.is_discarded())
    return;  // a number that no double can hold, or text that is not UTF-8 in a payload
  OUTBOX_PROPERTY(body["eventId"] == event.id.str() && body["seq"] == event.seq);
  OUTBOX_PROPERTY(body["occurredAt"] == event::time_text(event::happened_us(event)));
  const auto same = [&](const char* name, std::string_view text) {
    OUTBOX_PROPERTY(!event::is_utf8(text) || body[name] == std::string(text));
  };
  same("eventType", event.event_type);
  same("aggregateType", event.aggregate_type);
  same("aggregateId", event.aggregate_id);
  OUTBOX_PROPERTY(body["metadata"].is_object());
  OUTBOX_PROPERTY(body.contains("payload") != body.contains("payloadBase64"));
  if (body.contains("payload") && event.content_type == "application/json" &&
      event::is_json(event.payload))
    OUTBOX_PROPERTY(body["payload"] == json::parse(event.payload, nullptr, false));
}

void check_headers(const Message& message) {
  int reserved = 0;
  int content_types = 0;
  for (const auto& header : message.headers) {
    if (event::is_reserved_header(header.name)) ++reserved;
    if (header.name == event::kContentTypeHeader) ++content_types;
  }
  OUTBOX_PROPERTY(reserved >= 5 &&
                  content_types <= 1 + (message.content_type.empty() ? 1 : 0) * 1000);
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto parts = fuzz::split_parts(fuzz::to_text(data, size), 6);
  const EventView event{.seq = static_cast<std::int64_t>(size),
                        .aggregate_type = parts[1],
                        .aggregate_id = parts[2],
                        .event_type = parts[0],
                        .payload = parts[5],
                        .content_type = parts[3],
                        .headers = parts[4],
                        .created_at = event::timestamp(1)};
  static const auto raw = format::Renderer::create(
      {.name = "r", .sink = "file", .headers = {{"type", "{event_type|kebab}"}}});
  static const auto enveloped =
      format::Renderer::create({.name = "j", .sink = "file", .format = "json"});
  for (const auto* renderer : {&*raw, &*enveloped}) {
    format::RenderBuffer buffer;
    renderer->render(1, event, buffer);
    const Message& message = buffer.messages()[0];
    check_headers(message);
    if (renderer == &*enveloped) {
      check_envelope(message);
    } else {
      OUTBOX_PROPERTY(message.body == event.payload);
    }
    std::string line;
    sink::append_json_line(line, message);
    check_line(line);
  }
  std::string line;
  store::append_archive_line(line, event);
  check_line(line);
  event::Arena arena;
  (void)event::find_header(parts[4], parts[0], arena);
  return 0;
}
