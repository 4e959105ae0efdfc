// The tables of the outbox in a SQLite file: creates them and checks that they are what this
// program needs.
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

/// Embedded from migrations/sqlite, in order.
[[nodiscard]] std::span<const Migration> migrations();

/// Creates the file when it is missing, switches it to WAL and applies what is missing in one
/// transaction.
[[nodiscard]] Result<std::vector<std::string>> migrate(const std::string& path);

/// In one transaction, beside which nothing is written. Returns the names of what was made.
[[nodiscard]] Result<std::vector<std::string>> make_lookup_indexes(Connection& connection);

[[nodiscard]] Result<SchemaState> schema_state(Connection& connection);

/// What the outbox consists of (`sql`: one of queries.hpp).
[[nodiscard]] Result<Definitions> read_definitions(Connection& connection, std::string_view sql);

/// The random name that migrate() gave the outbox. Fails when the file is no longer the one at its
/// path.
[[nodiscard]] Result<std::string> identity_of(Connection& connection);

/// Schema neither too old nor too new, WAL, no cursor beyond the log: refuses with what to do.
[[nodiscard]] Status check(Connection& connection, const std::string& path);

/// The migrations as a script for sqlite3(1).
[[nodiscard]] std::string print_migrations();

}  // namespace outbox::store::sqlite
