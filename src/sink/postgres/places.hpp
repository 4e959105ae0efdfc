// The tables that the sink inserts into, with the types of their columns and the statements. Asking
// the server is a Work of its own.
#pragma once

#include <map>
#include <outbox/error.hpp>
#include <span>
#include <string>
#include <vector>

#include "sink/postgres/config.hpp"
#include "sink/postgres/session.hpp"
#include "sink/postgres/statements.hpp"
#include "sink/postgres/table_name.hpp"

namespace outbox::sink::postgres {

/// A table that exists and has the columns.
struct Place {
  std::string insert;
  std::vector<ColumnType> types;
};

class Places {
 public:
  explicit Places(const PostgresOptions& options) : options_(options) {}

  /// Sets where the login of a new connection looks for tables whose name has no schema, and
  /// forgets what an earlier connection taught.
  void begin(std::vector<std::string> schemas) {
    schemas_ = std::move(schemas);
    forget();
  }
  [[nodiscard]] const std::vector<std::string>& schemas() const { return schemas_; }

  [[nodiscard]] bool knows(const TableName& table) const { return places_.contains(table); }
  void forget() { places_.clear(); }
  /// Forgets tables beyond a limit: events that make ever new names must not fill the memory.
  void trim() {
    if (places_.size() > kMost) forget();
  }
  /// Learns a table from the rows of find_columns(). An error says what the table lacks, or that it
  /// is missing, with its definition.
  [[nodiscard]] Status learn(const TableName& table, const pg::Rows& found);
  /// Sets the table of the ids, with its schema.
  void set_delivered(TableName table) { delivered_ = std::move(table); }
  [[nodiscard]] const TableName& delivered() const { return delivered_; }
  /// One statement for each table. All tables must be known.
  [[nodiscard]] std::vector<Statement> insert(std::span<const Row* const> rows) const;

 private:
  static constexpr std::size_t kMost = 1000;

  [[nodiscard]] Error missing(const TableName& table) const;
  [[nodiscard]] pg::Params parameters(const Place& place, std::span<const Row* const> rows) const;

  const PostgresOptions& options_;
  std::vector<std::string> schemas_;
  TableName delivered_;
  std::map<TableName, Place> places_;
};

/// Learns one table, and makes it if it is missing and the settings say so.
class Look {
 public:
  enum class Kind : std::uint8_t { target, delivered };
  Look(const PostgresOptions& options, TableName table, Kind kind, const Places& places)
      : options_(options), table_(std::move(table)), kind_(kind), schemas_(places.schemas()) {}

  /// The statements of the next round trip; empty if the look is over.
  [[nodiscard]] std::vector<Statement> next();
  void answered(const Answer& answer, Places& places);
  /// The result, once the look is over.
  [[nodiscard]] const Status& status() const { return status_; }
  [[nodiscard]] const TableName& table() const { return table_; }

 private:
  enum class Step : std::uint8_t { look, create, look_again, undo, over };

  [[nodiscard]] std::vector<Statement> creation() const;
  void found(const pg::Rows& rows, Places& places);
  void create();
  [[nodiscard]] Status learn_delivered(const pg::Rows& rows, Places& places) const;

  const PostgresOptions& options_;
  const TableName table_;
  const Kind kind_;
  const std::vector<std::string>& schemas_;
  Step step_{Step::look};
  Status status_;
};

}  // namespace outbox::sink::postgres
