// The columns that the sink fills, and their values. Pure.
#pragma once

#include <optional>
#include <outbox/sink.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/field_error.hpp"
#include "event/arena.hpp"
#include "format/template.hpp"
#include "sink/kind.hpp"

namespace outbox::sink::postgres {

/// The prefix of settings that are columns: `columns.NAME`.
inline constexpr std::string_view kColumnPrefix = "columns.";

struct Column {
  /// What a value is: the body, all headers as a JSON object, the message key, or a template.
  enum class Source : std::uint8_t { body, headers, key, text };

  std::string name;
  std::string written;  ///< The text of the setting, such as "{id}".
  Source source{Source::text};
  format::Template text{};

  [[nodiscard]] bool is_id() const { return written == "{id}"; }
  /// The column's value; nullopt is null.
  [[nodiscard]] std::optional<std::string_view> value(const Message& message,
                                                      event::Arena& arena) const;
  /// The type and constraint of the column in a table that the sink makes.
  [[nodiscard]] std::string_view definition() const;
};

/// The columns by name. The default is id, seq, key, type, payload, headers, occurred_at.
[[nodiscard]] std::vector<Column> read_columns(const Texts& settings, FieldErrors& errors);

/// The column that has the event's id; null if there is none.
[[nodiscard]] const Column* find_id(std::span<const Column> columns);

}  // namespace outbox::sink::postgres
