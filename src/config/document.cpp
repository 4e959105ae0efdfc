#include "config/document.hpp"

// The whole library is compiled here, so that the binary needs no shared object for reading a file at start.
#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
// Tables and arrays within each other, which are walked and freed by recursion.
#define TOML_MAX_NESTED_VALUES 16
#include <toml++/toml.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "config/nesting.hpp"

namespace outbox::config {
namespace {

Position position(const toml::source_region& region) {
  return {.line = static_cast<int>(region.begin.line),
          .column = static_cast<int>(region.begin.column)};
}

template <class T>
std::string printed(const T& value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

Node made(Node::Type type, const toml::node& from) {
  Node node;
  node.type = type;
  node.at = position(from.source());
  return node;
}

Node convert(const toml::node& from);

Node scalar(const toml::node& from) {
  Node node = made(Node::Type::string, from);
  if (const auto* text = from.as_string()) {
    node.text = text->get();
  } else if (const auto* integer = from.as_integer()) {
    node.type = Node::Type::integer;
    node.text = std::to_string(integer->get());
  } else if (const auto* real = from.as_floating_point()) {
    node.type = Node::Type::real;
    node.text = printed(real->get());
  } else if (const auto* boolean = from.as_boolean()) {
    node.type = Node::Type::boolean;
    node.text = boolean->get() ? "true" : "false";
  } else {
    node.type = Node::Type::time;
    node.text = printed(toml::node_view<const toml::node>(from));
  }
  return node;
}

Node array(const toml::array& from) {
  Node node = made(Node::Type::array, from);
  for (const toml::node& item : from) node.items.push_back(convert(item));
  return node;
}

Node table(const toml::table& from) {
  Node node = made(Node::Type::table, from);
  for (const auto& [key, value] : from) {
    node.members.push_back(
        {.key = std::string(key.str()), .at = position(key.source()), .value = convert(value)});
  }
  std::sort(node.members.begin(), node.members.end(), [](const Member& a, const Member& b) {
    return std::pair(a.at.line, a.at.column) < std::pair(b.at.line, b.at.column);
  });
  return node;
}

Node convert(const toml::node& from) {
  if (const auto* inner = from.as_table()) return table(*inner);
  if (const auto* items = from.as_array()) return array(*items);
  return scalar(from);
}

}  // namespace

std::string_view describe(Node::Type type) {
  switch (type) {
    case Node::Type::string: return "a string";
    case Node::Type::integer: return "an integer";
    case Node::Type::real: return "a number with a fraction";
    case Node::Type::boolean: return "a boolean";
    case Node::Type::time: return "a date or time";
    case Node::Type::array: return "an array";
    case Node::Type::table: return "a table";
  }
  return "something else";
}

tl::expected<Node, Problem> parse_document(std::string_view text, const std::string& file) {
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
  const toml::parse_result parsed = toml::parse(text);
  if (parsed) return table(parsed.table());
  const Position at = position(parsed.error().source());
  const std::string said(parsed.error().description());
  if (said.find("TOML_MAX_NESTED_VALUES") != std::string::npos) {
    return refused("tables or arrays stand more than " + std::to_string(TOML_MAX_NESTED_VALUES) +
                       " deep within each other",
                   at, "no setting needs that; is a bracket missing?");
  }
  return refused("not valid TOML: " + said, at,
                 "text values need quotes; the format is described at toml.io");
}

}  // namespace outbox::config
