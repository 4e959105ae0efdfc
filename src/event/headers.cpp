#include "event/headers.hpp"

#include <algorithm>
#include <cstring>

#include "base/text.hpp"
#include "event/json_scan.hpp"
#include "event/json_write.hpp"

namespace outbox::event {
namespace {

std::string_view to_text(JsonString string, Arena& arena) {
  if (!string.escaped) return string.raw;
  char* const decoded = arena.allocate(string.raw.size());
  return {decoded, decode_json(string.raw, decoded)};
}

/// The text of `value`, which is a whole JSON value.
std::string_view text_of_value(std::string_view value, Arena& arena) {
  if (value.front() != '"') return value;
  const std::string_view raw = value.substr(1, value.size() - 2);
  const bool escaped = std::memchr(raw.data(), '\\', raw.size()) != nullptr;
  return to_text(JsonString{.raw = raw, .escaped = escaped}, arena);
}

char folded(char c) noexcept { return c == '_' || c == ':' ? '-' : to_lower(c); }

}  // namespace

bool same_header(std::string_view a, std::string_view b) noexcept {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return folded(x) == folded(y); });
}

bool has_header_prefix(std::string_view name, std::string_view prefix) noexcept {
  return same_header(name.substr(0, prefix.size()), prefix);
}

bool is_reserved_header(std::string_view name) noexcept {
  return has_header_prefix(name, kReservedPrefix);
}

void read_headers(std::string_view json, Arena& arena, std::vector<HeaderView>& into) {
  if (no_headers(json)) return;
  const std::size_t before = into.size();
  const auto fault = for_each_member(json, [&](JsonString name, std::string_view value) {
    const std::string_view text = to_text(name, arena);
    if (!is_reserved_header(text) || text == kEditedFromHeader || text == kReplayHeader)
      into.push_back({.name = text, .value = text_of_value(value, arena)});
  });
  if (fault) into.resize(before);
}

std::vector<Header> inherited_headers(std::string_view json, const EventId& id) {
  Arena arena;
  std::vector<Header> headers;
  if (const auto correlation = find_header(json, "correlation_id", arena); !correlation.empty())
    headers.emplace_back("correlation_id", correlation);
  const auto message = find_header(json, "message-id", arena);
  headers.emplace_back("causation_id", message.empty() ? id.str() : std::string(message));
  return headers;
}

void inherit(std::vector<Event>& events, const std::vector<Header>& headers) {
  for (Event& event : events) {
    for (const Header& header : headers) {
      const auto same = [&](const Header& own) { return same_header(own.first, header.first); };
      if (std::none_of(event.headers.begin(), event.headers.end(), same))
        event.headers.push_back(header);
    }
  }
}

std::string with_header(std::string_view json, std::string_view name, std::string_view value) {
  std::string text = "{";
  append_json_string(text, name);
  text.push_back(':');
  append_json_string(text, value);
  bool any = false;
  const auto fault =
      for_each_member(json, [&any](const JsonString&, std::string_view) { any = true; });
  if (fault || !any) return text + "}";
  text.push_back(',');
  return text.append(json.substr(json.find('{') + 1));
}

std::string_view find_header(std::string_view json, std::string_view name, Arena& arena) {
  if (no_headers(json)) return {};
  std::string_view found;
  const auto fault = for_each_member(json, [&](JsonString member, std::string_view value) {
    if (found.data() == nullptr && equal_ignoring_case(to_text(member, arena), name))
      found = text_of_value(value, arena);
  });
  return fault ? std::string_view{} : found;
}

std::string_view read_replay(const EventView& event, Arena& arena) {
  if (event.headers.find(kReplayHeader) == std::string_view::npos) return {};
  return find_header(event.headers, kReplayHeader, arena);
}

}  // namespace outbox::event
