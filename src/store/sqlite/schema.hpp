// Creates the tables of the outbox in a SQLite file, and checks that they are what this program
// needs.
#pragma once

#include <outbox/error.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/diagnosis.hpp"
#include "store/migrations.hpp"
#include "store/sqlite/connection.hpp"
#include "store/store.hpp"

namespace outbox::store::sqlite {

/// The migrations that are embedded from migrations/sqlite, in their order.
[[nodiscard]] std::span<const Migration> migrations();

/// Creates the file when it is missing, switches it to WAL and applies the migrations that are
/// missing in one transaction. Returns their names.
[[nodiscard]] Result<std::vector<std::string>> migrate(const std::string& path);

/// Creates the look-up indexes that are missing in one transaction, during which nothing else is
/// written. Returns their names.
[[nodiscard]] Result<std::vector<std::string>> make_lookup_indexes(Connection& connection);

[[nodiscard]] Result<SchemaState> schema_state(Connection& connection);

/// What the outbox consists of. `sql` is one of queries.hpp.
[[nodiscard]] Result<Definitions> read_definitions(Connection& connection, std::string_view sql);

/// The random name that migrate() gave the outbox. Fails when the file is no longer the one at its
/// path.
[[nodiscard]] Result<std::string> read_identity(Connection& connection);

/// Checks that the schema is neither too old nor too new, that the file uses WAL, and that no
/// cursor is beyond the log. The error's hint says what to do.
[[nodiscard]] Status check(Connection& connection, const std::string& path);

/// The migrations as a script for sqlite3(1).
[[nodiscard]] std::string print_migrations();

}  // namespace outbox::store::sqlite
