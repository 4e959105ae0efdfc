#include "format/json_path.hpp"

#include <charconv>
#include <optional>

#include "event/attribute_text.hpp"
#include "event/json_scan.hpp"

namespace outbox::format {
namespace {

std::optional<std::string_view> member(std::string_view object, std::string_view name) {
  std::optional<std::string_view> found;
  const auto fault =
      event::for_each_member(object, [&](const event::JsonString& key, std::string_view value) {
        const bool same = key.escaped ? event::decode_json(key) == name : key.raw == name;
        if (same) found = value;  // The last value counts, as in most parsers.
      });
  return fault ? std::nullopt : found;
}

std::optional<std::string_view> element(std::string_view array, std::string_view number) {
  std::size_t wanted = 0;
  const auto read = std::from_chars(number.data(), number.data() + number.size(), wanted);
  if (read.ec != std::errc() || read.ptr != number.data() + number.size()) return {};
  event::JsonCursor cursor(array);
  cursor.space();
  if (!cursor.take('[')) return {};
  std::string_view value;
  for (std::size_t at = 0;; ++at) {
    cursor.space();
    if (cursor.peek() == ']' || !cursor.value(value)) return {};
    if (at == wanted) return value;
    cursor.space();
    if (!cursor.take(',')) return {};
  }
}

}  // namespace

std::string_view find_json(std::string_view json, std::string_view path, event::Arena& arena) {
  if (!event::is_json(json)) return {};
  const std::size_t begin = json.find_first_not_of(" \t\r\n");
  std::string_view value = json.substr(begin);
  while (!path.empty()) {
    const std::size_t dot = path.find('.');
    const std::string_view step = path.substr(0, dot);
    path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
    const auto next = value.front() == '{'   ? member(value, step)
                      : value.front() == '[' ? element(value, step)
                                             : std::nullopt;
    if (!next) return {};
    value = *next;
  }
  if (value == "null") return {};
  if (value.front() != '"') return value;
  return kept(event::json_text(value), arena);
}

}  // namespace outbox::format
