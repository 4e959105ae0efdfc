#include "sink/json_line.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <system_error>

#include "base/error.hpp"
#include "event/base64.hpp"
#include "event/content_type.hpp"
#include "event/id.hpp"
#include "event/json_scan.hpp"
#include "event/json_write.hpp"
#include "event/time_text.hpp"
#include "event/utf8.hpp"

namespace outbox::sink {
namespace {

void append_member(std::string& out, std::string_view name, std::string_view text) {
  out.append(name);
  event::append_json_string(out, text);
}

void append_headers(std::string& out, std::span<const HeaderView> headers) {
  out.append(",\"headers\":{");
  const char* separator = "";
  for (const HeaderView& header : headers) {
    out.append(separator);
    event::append_json_string(out, header.name);
    out.push_back(':');
    event::append_json_string(out, header.value);
    separator = ",";
  }
  out.push_back('}');
}

/// Replaces line breaks by spaces: in valid JSON both occur only between tokens and mean the same.
void append_json_on_one_line(std::string& out, std::string_view json) {
  const std::size_t from = out.size();
  out.append(json);
  std::replace_if(
      out.begin() + static_cast<std::ptrdiff_t>(from), out.end(),
      [](char c) { return c == '\n' || c == '\r'; }, ' ');
}

void append_body(std::string& out, const Message& message) {
  if (event::is_json_type(message.content_type) && event::is_json(message.body)) {
    out.append(",\"body\":");
    append_json_on_one_line(out, message.body);
  } else if (event::is_utf8(message.body)) {
    append_member(out, ",\"body\":", message.body);
  } else {
    out.append(",\"body_base64\":\"");
    const std::size_t from = out.size();
    out.resize(from + event::base64_length(message.body.size()));
    event::write_base64(message.body, out.data() + from);
    out.push_back('"');
  }
}

void append_event(std::string& out, const EventView& event) {
  out.append(",\"id\":\"");
  const std::size_t from = out.size();
  out.resize(from + event::kIdChars);
  event::write_id(event.id, out.data() + from);
  out.append("\",\"seq\":");
  char digits[20];
  out.append(digits, std::to_chars(digits, digits + sizeof digits, event.seq).ptr);
  append_member(out, ",\"aggregate_type\":", event.aggregate_type);
  append_member(out, ",\"aggregate_id\":", event.aggregate_id);
  append_member(out, ",\"event_type\":", event.event_type);
  char time[event::kTimeChars];
  event::write_time(event::happened_us(event), time);
  append_member(out, ",\"occurred_at\":", {time, sizeof time});
}

}  // namespace

void append_json_line(std::string& out, const Message& message) {
  append_member(out, "{\"topic\":", message.topic);
  out.append(",\"key\":");
  if (message.key) {
    event::append_json_string(out, *message.key);
  } else {
    out.append("null");
  }
  append_headers(out, message.headers);
  append_body(out, message);
  if (message.event != nullptr) append_event(out, *message.event);
  out.append("}\n");
}

std::optional<EventId> delivered_id(std::string_view line) {
  constexpr std::string_view before = R"(,"id":")";
  constexpr std::size_t length = 36;
  if (!line.empty() && line.front() == '{') {
    const auto at = line.back() == '}' ? line.rfind(before) : std::string_view::npos;
    if (at == std::string_view::npos) return std::nullopt;
    line = line.substr(at + before.size(), length);
  }
  const auto id = EventId::parse(line);
  return id ? std::optional(*id) : std::nullopt;
}

Result<ReadPart> read_delivered(const std::string& path, std::uint32_t number, const TakeId& take) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return fail(Errc::not_found,
                "cannot read " + path + ": " + std::generic_category().message(errno),
                "is it the file that the sink wrote, on this machine, and may this user read it?");
  }
  for (std::string line; std::getline(file, line);) {
    if (const auto id = delivered_id(line)) take(number, *id);
  }
  if (file.bad())
    return fail(Errc::unavailable, "cannot read " + path + " to its end", "check its disk");
  return ReadPart{.name = path};
}

}  // namespace outbox::sink
