// The SQL that the sink sends. Names are quoted, values are parameters. Each text is parsed each
// time, so that the sink works through poolers in transaction mode.
//
// Nothing is looked up in the login's search_path, where others may have planted operators:
// limits() pins the path of each transaction, and others use full names and no operator.
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pg/param.hpp"
#include "sink/postgres/columns.hpp"
#include "sink/postgres/table_name.hpp"

namespace outbox::sink::postgres {

struct Statement {
  std::string sql;
  pg::Params params{};
};

/// What the sink learns about a column of a table.
struct ColumnType {
  std::string cast;     ///< The type without its length, to which a cast would cut.
  bool is_text{false};  ///< Whether an empty text is kept; otherwise it becomes null.
  bool is_bytes{false};
};

[[nodiscard]] Statement begin();
/// Pins, for this transaction, that names mean the server's own objects, that the server gives up a
/// statement before we give up the connection, and that COMMIT waits for the disk.
[[nodiscard]] Statement limits(std::chrono::milliseconds deadline);
/// Makes the server free the locks of a session whose client vanished within half a minute.
[[nodiscard]] Statement keep_alive();
[[nodiscard]] Statement check_at_once();
[[nodiscard]] Statement commit();
[[nodiscard]] Statement rollback();
[[nodiscard]] Statement savepoint();
[[nodiscard]] Statement release();
[[nodiscard]] Statement rollback_to();

/// The rows are the schemas in which the login looks for a table without one, in order.
[[nodiscard]] Statement find_schemas();
/// Finds the table in its schema, or in the first of these schemas that has it. The rows are
/// schema, column, cast, is_text, is_bytes; none if there is no such table. Follows limits(), so
/// that a cast names its type in full.
[[nodiscard]] Statement find_columns(const TableName& table, std::span<const std::string> schemas);

/// The statement that makes the table, as people may run it.
[[nodiscard]] std::string define_table(const TableName& table, std::span<const Column> columns,
                                       bool id_is_key);
[[nodiscard]] std::string definition_of_delivered(const TableName& delivered);
[[nodiscard]] std::string definition_of_index(const TableName& delivered);
/// Makes sessions that create tables at the same time wait for each other.
[[nodiscard]] Statement lock_creation();

/// Inserts those events of the arrays that are not delivered yet, and remembers them. Parameters:
/// subscription, then arrays: event_id, seq, replay, and one per column. An event that was
/// delivered before is remembered for another window. That is a write, so that the COMMIT waits
/// until the first delivery is as durable as this one.
[[nodiscard]] std::string insert_remembered(const TableName& table, const TableName& delivered,
                                            std::span<const Column> columns,
                                            std::span<const ColumnType> types);
/// Inserts the events of the arrays whose id is not in the table. Parameters: one array per column.
[[nodiscard]] std::string insert_by_id(const TableName& table, const Column& id,
                                       std::span<const Column> columns,
                                       std::span<const ColumnType> types);

/// Removes the oldest ids, at most `most`; those before `from` are gone. Returns one row: how many,
/// and the latest time among them.
[[nodiscard]] Statement prune(const TableName& delivered, const std::string& subscription,
                              std::chrono::milliseconds window, const std::string& from,
                              std::size_t most);

}  // namespace outbox::sink::postgres
