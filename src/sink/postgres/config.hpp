// The settings of a PostgreSQL sink. See docs/sinks/postgres.md.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/field_error.hpp"
#include "sink/kind.hpp"
#include "sink/postgres/columns.hpp"
#include "sink/postgres/table_name.hpp"

namespace outbox::sink::postgres {

/// The settings as they are written.
struct PostgresSettings {
  std::string url;
  std::string username;  ///< Replaces the one in url.
  std::string password;
  std::string table;
  Texts columns;  ///< Keys such as "columns.id".
  bool create{false};
  std::chrono::milliseconds dedup_window{std::chrono::hours(30 * 24)};
  std::string delivered_table{"outbox_delivered"};
  std::size_t batch{1000};
  std::size_t max_in_flight{4000};
  std::chrono::milliseconds connect_timeout{std::chrono::seconds(5)};
  std::chrono::milliseconds deadline{std::chrono::seconds(10)};
};

/// The checked settings.
struct PostgresOptions {
  PostgresSettings plain;  ///< The settings that need no conversion.
  std::string subscription;
  TableTemplate table;
  TableName delivered_table;
  std::vector<Column> columns;

  /// Whether ids are remembered in a table; otherwise the target table itself has a unique id.
  [[nodiscard]] bool remembers() const { return plain.dedup_window.count() > 0; }
};

/// Adds an error for everything that is wrong, and then returns nullopt.
[[nodiscard]] std::optional<PostgresOptions> read_options(const PostgresSettings& settings,
                                                          const std::string& subscription,
                                                          FieldErrors& errors);

}  // namespace outbox::sink::postgres
