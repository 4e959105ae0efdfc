// A TOML file as a plain tree that remembers where everything stands. Hides the TOML library: its headers are included in
// document.cpp and nowhere else.
#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "config/problem.hpp"

namespace outbox::config {

struct Member;

struct Node {
  enum class Type { string, integer, real, boolean, time, array, table };

  Type type{Type::table};
  Position at{};
  std::string text{};           ///< A scalar's value as text.
  std::vector<Node> items{};    ///< Of an array.
  std::vector<Member> members;  ///< Of a table, in the order of the file.
};

struct Member {
  std::string key;
  Position at;  ///< Of the key.
  Node value;
};

/// "an integer", "a string": for messages.
[[nodiscard]] std::string_view describe(Node::Type type);

/// The root table. `file` is only named in the problem.
[[nodiscard]] tl::expected<Node, Problem> parse_document(std::string_view text,
                                                         const std::string& file);

}  // namespace outbox::config
