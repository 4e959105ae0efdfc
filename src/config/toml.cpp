#define TOML_IMPLEMENTATION
#include "config/toml.hpp"

#include <algorithm>
#include <optional>
#include <sstream>
#include <utility>

namespace outbox::config {
namespace {

/// The limit of parts of one key. The deepest setting has five.
constexpr std::size_t kMostKeyParts = 32;

/// The end of the string that begins at `from`; with three quotes it may have several lines.
std::size_t string_end(std::string_view toml, std::size_t from) {
  const char quote = toml[from];
  const std::string three(3, quote);
  const bool lines = toml.substr(from, 3) == three;
  for (std::size_t at = from + (lines ? 3 : 1); at < toml.size(); ++at) {
    if (toml[at] == '\\' && quote == '"') {
      ++at;
    } else if (lines ? toml.substr(at, 3) == three : toml[at] == quote) {
      return at + (lines ? 3 : 1);
    } else if (!lines && toml[at] == '\n') {
      return at;
    }
  }
  return toml.size();
}

/// Where a key has too many parts. toml++ makes a table for each part, and freeing a tree that is
/// too deep overflows the stack, so this is checked before parsing.
std::optional<Position> too_many_key_parts(std::string_view toml) {
  std::size_t parts = 1;
  std::size_t at = 0;
  while (at < toml.size()) {
    const char c = toml[at];
    if (c == '"' || c == '\'') {
      at = string_end(toml, at);
      continue;
    }
    if (c == '#') {
      at = std::min(toml.find('\n', at), toml.size());
      continue;
    }
    if (c == '.' && ++parts > kMostKeyParts) {
      const std::string_view before = toml.substr(0, at);
      return Position{.line = 1 + static_cast<int>(std::count(before.begin(), before.end(), '\n')),
                      .column = static_cast<int>(at - before.rfind('\n'))};
    }
    // These characters end a key, and another one can begin after them.
    if (std::string_view("\n=,{[").find(c) != std::string_view::npos) parts = 1;
    ++at;
  }
  return std::nullopt;
}

Position position(const toml::source_region& region) {
  return {.line = static_cast<int>(region.begin.line),
          .column = static_cast<int>(region.begin.column)};
}

}  // namespace

tl::expected<toml::table, Problem> parse_toml(std::string_view text, const std::string& file) {
  const auto refused = [&](std::string what, Position at, std::string hint) {
    return tl::unexpected(Problem{.what = std::move(what),
                                  .path = {},
                                  .where = place(file, at),
                                  .at = at,
                                  .hint = std::move(hint)});
  };
  if (const auto deep = too_many_key_parts(text)) {
    return refused("a key has more than " + std::to_string(kMostKeyParts) + " parts", *deep,
                   "no setting has so many; is a quote missing?");
  }
  toml::parse_result parsed = toml::parse(text);
  if (parsed) return std::move(parsed).table();
  const Position at = position(parsed.error().source());
  const std::string said(parsed.error().description());
  if (said.find("TOML_MAX_NESTED_VALUES") != std::string::npos) {
    return refused(
        "tables or arrays are nested more than " + std::to_string(TOML_MAX_NESTED_VALUES) + " deep",
        at, "no setting needs that; is a bracket missing?");
  }
  return refused("not valid TOML: " + said, at,
                 "text values need quotes; the format is described at toml.io");
}

std::vector<Member> members(toml::table& table) {
  std::vector<Member> all;
  for (auto&& [key, value] : table)
    all.push_back({.key = std::string(key.str()), .at = position(key.source()), .value = &value});
  std::sort(all.begin(), all.end(), [](const Member& a, const Member& b) {
    return std::pair(a.at.line, a.at.column) < std::pair(b.at.line, b.at.column);
  });
  return all;
}

Position position(const toml::node& node) { return position(node.source()); }

std::string_view describe(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::string: return "a string";
    case toml::node_type::integer: return "an integer";
    case toml::node_type::floating_point: return "a number with a fraction";
    case toml::node_type::boolean: return "a boolean";
    case toml::node_type::array: return "an array";
    case toml::node_type::table: return "a table";
    default: return "a date or time";
  }
}

std::string to_text(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  std::ostringstream out;
  if (const auto* items = node.as_array()) {
    for (const toml::node& item : *items)
      out << (&item == items->get(0) ? "" : ",") << to_text(item);
  } else {
    out << toml::node_view<const toml::node>(node);
  }
  return out.str();
}

}  // namespace outbox::config
