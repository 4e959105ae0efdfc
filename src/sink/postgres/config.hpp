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

/// As they are written.
struct PostgresSettings {
  std::string url;
  std::string username;  ///< Instead of the one in url.
  std::string password;
  std::string table;
  Texts columns;  ///< "columns.id" and so on.
  bool create{false};
  std::chrono::milliseconds dedup_window{std::chrono::hours(30 * 24)};
  std::string delivered_table{"outbox_delivered"};
  std::size_t batch{1000};
  std::size_t max_in_flight{4000};
  std::chrono::milliseconds connect_timeout{std::chrono::seconds(5)};
  std::chrono::milliseconds deadline{std::chrono::seconds(10)};
};

/// Settings that were checked.
struct PostgresOptions {
  PostgresSettings plain;  ///< What needs no more than that.
  std::string subscription;
  TableTemplate table;
  TableName delivered_table;
  std::vector<Column> columns;

  /// Otherwise the table has a unique id itself.
  [[nodiscard]] bool remembers() const { return plain.dedup_window.count() > 0; }
};

/// Complains about everything that is wrong; then there are none.
[[nodiscard]] std::optional<PostgresOptions> read_options(const PostgresSettings& settings,
                                                          const std::string& subscription,
                                                          FieldErrors& errors);

}  // namespace outbox::sink::postgres
