// Reads small texts: times, durations, sizes, ids, base64, references of the configuration,
// recurring times, zone files. What is read prints back to the same text.
#include <string>

#include "base/reference.hpp"
#include "base/units.hpp"
#include "event/base64.hpp"
#include "event/json_scan.hpp"
#include "event/time_text.hpp"
#include "event/utf8.hpp"
#include "fuzz/fuzz.hpp"
#include "schedule/cron.hpp"
#include "schedule/time_zone.hpp"
#include "sink/json_line.hpp"
#include "store/text.hpp"

namespace {

using namespace outbox;

void check_numbers(std::string_view text) {
  if (const auto time = event::read_time(text)) {
    OUTBOX_PROPERTY(event::is_time(*time));
    OUTBOX_PROPERTY(event::read_time(event::time_text(*time)) == *time);
  }
  if (const auto duration = parse_duration(text)) {
    OUTBOX_PROPERTY(duration->count() >= 0);
    const auto again = parse_duration(format_duration(*duration));
    OUTBOX_PROPERTY(again && *again == *duration);
  }
  if (const auto size = parse_size(text)) {
    const auto again = parse_size(format_size(*size));
    OUTBOX_PROPERTY(again && *again == *size);
  }
}

void check_texts(const std::string& text) {
  if (const auto bytes = event::read_base64(text)) {
    std::string again(event::base64_length(bytes->size()), '\0');
    event::write_base64(*bytes, again.data());
    OUTBOX_PROPERTY(again == text);
  }
  if (const auto id = EventId::parse(text))
    OUTBOX_PROPERTY(EventId::parse(id->str()).value() == *id);
  if (const auto id = sink::delivered_id(text)) {
    // Either form of line has the same id.
    OUTBOX_PROPERTY(sink::delivered_id(id->str()) == id);
    OUTBOX_PROPERTY(sink::delivered_id(R"({"topic":"t","id":")" + id->str() + R"("})") == id);
  }
  const std::string storable = store::storable_text(text);
  OUTBOX_PROPERTY(event::is_utf8(storable) && storable.find('\0') == std::string::npos);
  OUTBOX_PROPERTY(store::storable_text(storable) == storable);
  OUTBOX_PROPERTY(has_references(text) || resolve(text, "/nonexistent").has_value());
  (void)without_references(text);
  std::string_view value;
  if (event::JsonCursor(text).value(value)) (void)event::json_text(value);
}

void check_recurring(std::string_view text) {
  constexpr std::chrono::sys_seconds now{std::chrono::seconds(1'793'000'000)};
  const auto zone = schedule::TimeZone::read(text);
  if (zone) {
    const auto period = zone->at(now);
    OUTBOX_PROPERTY(period.begin <= now && now < period.end);
  }
  const auto cron = schedule::Cron::parse(zone ? "30 2 * * *" : text);
  if (!cron) return;
  const auto next = cron->next(now, zone ? *zone : schedule::TimeZone());
  OUTBOX_PROPERTY(zone || next);
  OUTBOX_PROPERTY(!next || *next > now);
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::to_text(data, size);
  check_numbers(text);
  check_texts(std::string(text));
  check_recurring(text);
  return 0;
}
