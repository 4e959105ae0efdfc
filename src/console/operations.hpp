// The table of what the API can do: each row is a call of a verb (docs/design/console.md). What is
// not in the table cannot be called. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "console/access.hpp"

namespace outbox::console {

struct Parameter {
  enum class Kind : std::uint8_t { text, number, flag, texts };
  std::string_view name;    ///< In the query, or in the body.
  std::string_view option;  ///< Of the verb; empty: the words that stand alone.
  Kind kind{Kind::text};
  std::uint64_t most{UINT64_MAX};  ///< The largest number.
};

/// What an answer has of what events contain: payloads, headers, results.
enum class Contents : std::uint8_t {
  none,
  some,  ///< They are left out for whoever may not see them.
  all,   ///< Whoever may not see them may not ask.
};

struct Operation {
  std::string_view method;
  std::string_view path;  ///< Below /api/v1. "{name}" stands for one segment.
  std::vector<std::string_view> words;
  std::vector<Parameter> parameters{};
  /// What the segment that is a name becomes: an option, or "" for a word that stands alone.
  std::string_view segment_option{};
  /// Whether the verb answers with a JSON document; otherwise with what the command line says.
  bool document{true};
  /// Whether the verb acts at once on what is named, unless it is told to show what it would do.
  bool acts_on_names{false};
  Role role{Role::views};  ///< The least that the person must have.
  Contents contents{Contents::none};
};

[[nodiscard]] std::span<const Operation> operations();

}  // namespace outbox::console
