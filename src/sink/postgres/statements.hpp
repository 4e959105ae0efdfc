// The SQL that the sink sends. Names are quoted, values are parameters. Each text is parsed each time it is sent, so that the sink works
// through poolers in transaction mode.
//
// Nothing is looked up in the login's search_path, where others may have planted operators: limits() pins the path of each transaction,
// and what is sent outside of one names everything in full and uses no operator.
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
  std::string cast;     ///< The type, without the length that a cast would cut to.
  bool is_text{false};  ///< An empty text is one; else it is null.
  bool is_bytes{false};
};

[[nodiscard]] Statement begin();
/// Of the transaction: names mean the server's own objects, the server gives up a statement before we give up the connection, and COMMIT
/// waits for the disk.
[[nodiscard]] Statement limits(std::chrono::milliseconds deadline);
/// Of the session: a server whose client is gone without a word frees the locks of its transaction within half a minute.
[[nodiscard]] Statement keep_alive();
[[nodiscard]] Statement check_at_once();
[[nodiscard]] Statement commit();
[[nodiscard]] Statement rollback();
[[nodiscard]] Statement savepoint();
[[nodiscard]] Statement release();
[[nodiscard]] Statement rollback_to();

/// Rows: the schemas in which the login looks for a table without one, in this order.
[[nodiscard]] Statement find_schemas();
/// The table in the first of these schemas that has it, or in its own. Rows: schema, column, cast, is_text, is_bytes. None: there is no
/// such table. Behind limits(), so that a cast names its type in full.
[[nodiscard]] Statement find_columns(const TableName& table, std::span<const std::string> schemas);

/// As people may run it.
[[nodiscard]] std::string definition_of(const TableName& table, std::span<const Column> columns,
                                        bool id_is_key);
[[nodiscard]] std::string definition_of_delivered(const TableName& delivered);
[[nodiscard]] std::string definition_of_index(const TableName& delivered);
/// Makes those who create tables at once wait for each other.
[[nodiscard]] Statement lock_creation();

/// Inserts the events of the arrays that are not delivered yet, and remembers them. Parameters: subscription, then arrays: event_id, seq,
/// replay, and one per column. An event that was delivered before is remembered for another window: as a write, so that the
/// COMMIT waits for the first delivery to be as durable as this one.
[[nodiscard]] std::string insert_remembered(const TableName& table, const TableName& delivered,
                                            std::span<const Column> columns,
                                            std::span<const ColumnType> types);
/// Inserts the events of the arrays whose id is not in the table. Parameters: one array per column.
[[nodiscard]] std::string insert_by_id(const TableName& table, const Column& id,
                                       std::span<const Column> columns,
                                       std::span<const ColumnType> types);

/// Removes the oldest ids, at most `most`. One row: how many, and the latest time among them. `from`: those before are gone.
[[nodiscard]] Statement prune(const TableName& delivered, const std::string& subscription,
                              std::chrono::milliseconds window, const std::string& from,
                              std::size_t most);

}  // namespace outbox::sink::postgres
