// toml++ with limits, members in the order of the file, and the names of types for messages.
#pragma once

// toml.cpp compiles the library, so that the binary needs no shared object for it.
#define TOML_HEADER_ONLY 0
#define TOML_EXCEPTIONS 0
// Nested tables and arrays are walked and freed by recursion.
#define TOML_MAX_NESTED_VALUES 16
#include <toml++/toml.h>

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "config/problem.hpp"

namespace outbox::config {

/// The root table. `file` is only named in the problem.
[[nodiscard]] tl::expected<toml::table, Problem> parse_toml(std::string_view text,
                                                            const std::string& file);

struct Member {
  std::string key;
  Position at;  ///< Of the key.
  toml::node* value{nullptr};
};
/// In the order of the file.
[[nodiscard]] std::vector<Member> members(toml::table& table);

[[nodiscard]] Position position(const toml::node& node);
/// "an integer", "a string": for messages.
[[nodiscard]] std::string_view describe(const toml::node& node);
/// A scalar as text; an array of scalars as their texts with commas.
[[nodiscard]] std::string text_of(const toml::node& node);

}  // namespace outbox::config
