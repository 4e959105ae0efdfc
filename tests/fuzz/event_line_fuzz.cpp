// Parses a line of `outbox enqueue --jsonl`. What is accepted has headers that round trip, and an
// archive line with the same values.
#include <nlohmann/json.hpp>
#include <string>

#include "event/json_event.hpp"
#include "event/json_scan.hpp"
#include "event/time_text.hpp"
#include "event/utf8.hpp"
#include "fuzz/fuzz.hpp"
#include "store/archive.hpp"

namespace {

using namespace outbox;

EventView make_view(const Event& event, const std::string& headers) {
  return {.seq = 7,
          .id = event.id.value_or(EventId{}),
          .aggregate_type = event.aggregate_type,
          .aggregate_id = event.aggregate_id,
          .event_type = event.event_type,
          .payload = event.payload,
          .content_type = event.content_type,
          .headers = headers,
          .created_at = event::timestamp(1),
          .occurred_at = event.occurred_at};
}

/// Checks the archive line of an event. nlohmann refuses numbers that a double cannot hold, and the
/// line is still JSON.
void check_archive(const Event& event) {
  const std::string headers = event::headers_to_json(event.headers);
  std::string line;
  store::append_archive_line(line, make_view(event, headers));
  OUTBOX_PROPERTY(line.find('\n') == line.size() - 1 && line.find('\r') == std::string::npos);
  OUTBOX_PROPERTY(event::is_json(line));
  const auto read = nlohmann::json::parse(line, nullptr, false);
  if (read.is_discarded()) return;
  OUTBOX_PROPERTY(read["aggregate_type"] == event.aggregate_type);
  OUTBOX_PROPERTY(read["aggregate_id"] == event.aggregate_id);
  OUTBOX_PROPERTY(read["event_type"] == event.event_type);
  OUTBOX_PROPERTY(read["headers"].size() <= event.headers.size());
  // What was archived is what was enqueued.
  nlohmann::json again = read;
  again.erase("seq");
  again.erase("created_at");
  const auto event_again = event::parse_event(again.dump());
  OUTBOX_PROPERTY(event_again.has_value());
  OUTBOX_PROPERTY(event_again->occurred_at == event.occurred_at && event_again->id.has_value());
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto event = event::parse_event(fuzz::to_text(data, size));
  if (!event) {
    OUTBOX_PROPERTY(!event.error().message.empty());
    return 0;
  }
  const auto headers = event::headers_from_json(event::headers_to_json(event->headers));
  OUTBOX_PROPERTY(headers && *headers == event->headers);
  if (!validate(*event)) return 0;
  for (const auto& [name, value] : event->headers)
    OUTBOX_PROPERTY((name + value).find_first_of("\r\n") == std::string::npos);
  check_archive(*event);
  return 0;
}
