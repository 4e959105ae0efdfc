#include <charconv>

#include "event/base64.hpp"
#include "event/content_type.hpp"
#include "event/format.hpp"
#include "event/headers.hpp"
#include "event/id.hpp"
#include "event/json_scan.hpp"
#include "event/json_write.hpp"
#include "event/time_text.hpp"
#include "event/utf8.hpp"

namespace outbox::event {
namespace {

void append_seq(ArenaText& out, std::int64_t seq) {
  char text[24];
  out.append(text,
             static_cast<std::size_t>(std::to_chars(text, text + sizeof(text), seq).ptr - text));
}

/// Copies valid JSON byte for byte. It is checked first: an event written by plain SQL may declare
/// JSON wrongly, and the envelope must stay valid.
void append_payload(ArenaText& out, const EventView& event) {
  if (is_json_type(event.content_type) && is_json(event.payload)) {
    out.append("\"payload\":");
    out.append(event.payload);
  } else if (is_utf8(event.payload)) {
    out.append("\"payload\":");
    append_json_string(out, event.payload);
  } else {
    out.append("\"payloadBase64\":\"");
    write_base64(event.payload, out.extend(base64_length(event.payload.size())));
    out.push_back('"');
  }
}

/// Copies the headers object, so that values which are not strings keep their type.
void append_metadata(ArenaText& out, std::string_view headers) {
  const auto nothing = [](JsonString, std::string_view) {};
  const bool usable = !no_headers(headers) && !for_each_member(headers, nothing);
  out.append(usable ? headers : std::string_view("{}"));
}

std::string_view envelope(const EventView& event, Arena& arena) {
  ArenaText out(arena);
  out.append("{\"eventId\":\"");
  write_id(event.id, out.extend(kIdChars));
  out.append("\",\"eventType\":");
  append_json_string(out, event.event_type);
  out.append(",\"aggregateType\":");
  append_json_string(out, event.aggregate_type);
  out.append(",\"aggregateId\":");
  append_json_string(out, event.aggregate_id);
  out.append(",\"occurredAt\":\"");
  write_time(happened_us(event), out.extend(kTimeChars));
  out.append("\",\"seq\":");
  append_seq(out, event.seq);
  out.push_back(',');
  append_payload(out, event);
  out.append(",\"metadata\":");
  append_metadata(out, event.headers);
  out.push_back('}');
  return out.finish();
}

class Envelope final : public Format {
 public:
  void write(Draft& draft) const override {
    draft.body = envelope(draft.event, draft.arena);
    draft.content_type = "application/json";
    add_attribute_headers(draft);
  }
};

}  // namespace

FormatPointer json_format(const SubscriptionSpec& spec, FieldErrors& errors) {
  check_options(spec, {}, errors);
  return std::make_shared<const Envelope>();
}

}  // namespace outbox::event
