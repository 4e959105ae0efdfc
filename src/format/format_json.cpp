#include <charconv>

#include "event/base64.hpp"
#include "event/content_type.hpp"
#include "event/headers.hpp"
#include "event/id.hpp"
#include "event/json_scan.hpp"
#include "event/json_write.hpp"
#include "event/time_text.hpp"
#include "event/utf8.hpp"
#include "format/format.hpp"

namespace outbox::format {
namespace {

void append_seq(event::ArenaText& out, std::int64_t seq) {
  char text[24];
  out.append(text,
             static_cast<std::size_t>(std::to_chars(text, text + sizeof(text), seq).ptr - text));
}

/// Copies valid JSON byte for byte. It is checked first: an event written by plain SQL may declare
/// JSON wrongly, and the envelope must stay valid.
void append_payload(event::ArenaText& out, const EventView& event) {
  if (event::is_json_type(event.content_type) && event::is_json(event.payload)) {
    out.append("\"payload\":");
    out.append(event.payload);
  } else if (event::is_utf8(event.payload)) {
    out.append("\"payload\":");
    event::append_json_string(out, event.payload);
  } else {
    out.append("\"payloadBase64\":\"");
    event::write_base64(event.payload, out.extend(event::base64_length(event.payload.size())));
    out.push_back('"');
  }
}

/// Copies the headers object, so that values which are not strings keep their type.
void append_metadata(event::ArenaText& out, std::string_view headers) {
  const auto nothing = [](event::JsonString, std::string_view) {};
  const bool usable = !event::no_headers(headers) && !event::for_each_member(headers, nothing);
  out.append(usable ? headers : std::string_view("{}"));
}

std::string_view envelope(const EventView& event, event::Arena& arena) {
  event::ArenaText out(arena);
  out.append("{\"eventId\":\"");
  event::write_id(event.id, out.extend(event::kIdChars));
  out.append("\",\"eventType\":");
  event::append_json_string(out, event.event_type);
  out.append(",\"aggregateType\":");
  event::append_json_string(out, event.aggregate_type);
  out.append(",\"aggregateId\":");
  event::append_json_string(out, event.aggregate_id);
  out.append(",\"occurredAt\":\"");
  event::write_time(event::happened_us(event), out.extend(event::kTimeChars));
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

}  // namespace outbox::format
