// The columns that the sink fills, and with what. Pure.
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

/// Settings `columns.NAME` are columns.
inline constexpr std::string_view kColumnPrefix = "columns.";

struct Column {
  /// `headers`: as a JSON object. `key`: the message key. Anything else: a template of the event.
  enum class Source : std::uint8_t { body, headers, key, text };

  std::string name;
  std::string written;  ///< "{id}"
  Source source{Source::text};
  format::Template text{};

  [[nodiscard]] bool is_id() const { return written == "{id}"; }
  /// None: null.
  [[nodiscard]] std::optional<std::string_view> value(const Message& message,
                                                      event::Arena& arena) const;
  /// The type it gets in a table that the sink makes, with its constraint.
  [[nodiscard]] std::string_view definition() const;
};

/// By name. Without settings: id, seq, key, type, payload, headers, occurred_at.
[[nodiscard]] std::vector<Column> read_columns(const Texts& settings, FieldErrors& errors);

/// The one that has the event's id; null: none.
[[nodiscard]] const Column* id_of(std::span<const Column> columns);

}  // namespace outbox::sink::postgres
