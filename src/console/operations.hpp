// The table of what the API can do: each row is a call of a verb (docs/design/console.md). What is
// not in the table cannot be called. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace outbox::console {

enum class Role : std::uint8_t { viewer, operator_, admin };

struct Parameter {
  enum class Kind : std::uint8_t { text, number, flag, texts };
  std::string_view name;    ///< In the query, or in the body.
  std::string_view option;  ///< Of the verb; empty: the words that stand alone.
  Kind kind{Kind::text};
  std::string_view help{};
};

struct Operation {
  std::string_view method;
  std::string_view path;  ///< Below /api/v1. "{name}" stands for one segment.
  std::vector<std::string_view> words;
  /// What the segment that is a name becomes: an option, or "" for a word that stands alone.
  std::string_view segment_option{};
  std::vector<Parameter> parameters{};
  Role role{Role::viewer};
  /// Said to the verb unless `apply` is true, if it would act without it on what is named.
  std::string_view preview{};
  /// The document of docs/reference/json that it answers with; empty: {"output": TEXT}, what the
  /// command line says.
  std::string_view document{};
  std::string_view help{};
};

[[nodiscard]] std::span<const Operation> operations();

}  // namespace outbox::console
