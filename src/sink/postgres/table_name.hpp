// The name of a table, and the setting that makes one of an event. Pure.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <outbox/error.hpp>
#include <outbox/event.hpp>
#include <outbox/sink.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "event/arena.hpp"
#include "format/template.hpp"

namespace outbox::sink::postgres {

struct TableName {
  /// Empty until the table is found; then the first schema of the login's search_path that has it.
  std::string schema;
  std::string table;

  /// The name for SQL.
  [[nodiscard]] std::string quoted() const;
  /// The name for people.
  [[nodiscard]] std::string shown() const;

  auto operator<=>(const TableName&) const = default;  // NOLINT(modernize-use-nullptr): its own
};

/// Fails for a name that the server would refuse or silently change: it cuts it off after 63 bytes.
[[nodiscard]] Status check_name(const TableName& name);

/// "schema.table" or "table". Schema and table are told apart in the template, so that no event
/// chooses the schema unless the template says so.
class TableTemplate {
 public:
  /// `field` names the setting in errors.
  [[nodiscard]] static Result<TableTemplate> compile(std::string_view field, std::string_view text);

  [[nodiscard]] TableName render(const EventView& event, event::Arena& arena) const;
  /// The name if it is the same for all events.
  [[nodiscard]] std::optional<TableName> fixed() const;

 private:
  TableTemplate(std::optional<format::Template> schema, format::Template table)
      : schema_(std::move(schema)), table_(std::move(table)) {}

  std::optional<format::Template> schema_;
  format::Template table_;
};

// ---- An event as the sink keeps it until its outcome.

struct Row {
  Token token{0};
  EventId id;
  std::int64_t seq{0};
  std::string replay;  ///< The number of the replay that sends it; empty outside a replay.
  TableName table;
  std::vector<std::optional<std::string>> values;  ///< One per column.
  /// The ordering key, and a different message key: nothing of them may follow a refused event.
  std::vector<std::string> keys;
  std::size_t bytes{0};
};

}  // namespace outbox::sink::postgres
