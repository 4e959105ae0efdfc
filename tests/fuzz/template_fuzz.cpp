// Compiles templates of topics, keys and headers: TEMPLATE~EVENT TYPE~AGGREGATE TYPE~AGGREGATE
// ID~HEADERS.
#include <string>

#include "event/time_text.hpp"
#include "event/utf8.hpp"
#include "format/template.hpp"
#include "fuzz/fuzz.hpp"

namespace {

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) out.append(c == '{' || c == '}' ? 2 : 1, c);
  return out;
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace outbox;
  const auto parts = fuzz::split_parts(fuzz::to_text(data, size), 5);
  const EventView event{.seq = static_cast<std::int64_t>(size) - 5,
                        .aggregate_type = parts[2],
                        .aggregate_id = parts[3],
                        .event_type = parts[1],
                        .payload = "{}",
                        .content_type = "application/json",
                        .headers = parts[4],
                        .created_at = event::timestamp(static_cast<std::int64_t>(size) << 45U)};
  event::Arena arena;
  // Braces that are doubled are characters, whatever stands between them.
  const auto literal = format::Template::compile("topic", escaped(parts[0]));
  OUTBOX_PROPERTY(literal && literal->render(event, arena) == parts[0]);
  const auto compiled = format::Template::compile("topic", parts[0]);
  if (!compiled) {
    OUTBOX_PROPERTY(compiled.error().message.starts_with("topic: ") &&
                    !compiled.error().hint.empty());
    return 0;
  }
  const std::string text(compiled->render(event, arena));
  OUTBOX_PROPERTY(text == compiled->render(event, arena));
  bool valid = true;
  for (const auto part : parts) valid = valid && event::is_utf8(part);
  OUTBOX_PROPERTY(!valid || event::is_utf8(text));
  return 0;
}
