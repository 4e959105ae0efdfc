// The tables of the outbox in a SQLite file: bringing them there, and seeing whether they are what this program needs.
#pragma once

#include <outbox/error.hpp>
#include <span>
#include <string>
#include <vector>

#include "store/migration.hpp"
#include "store/sqlite/connection.hpp"
#include "store/store.hpp"

namespace outbox::store::sqlite {

/// Embedded from migrations/sqlite, in order.
[[nodiscard]] std::span<const Migration> migrations();

/// Creates the file when it is missing, switches it to WAL and applies what is missing in one transaction.
[[nodiscard]] Result<std::vector<std::string>> migrate(const std::string& path);

[[nodiscard]] Result<SchemaState> schema_state(Connection& connection);

/// The random name that the outbox got from migrate(). Fails when the file is no longer the one at its path.
[[nodiscard]] Result<std::string> identity_of(Connection& connection);

/// Says in one line what a person must do when the schema is not what this program needs.
[[nodiscard]] Status check_schema(const SchemaState& state, const std::string& path);

/// The file's properties that the cursors stand on: WAL, and no cursor beyond the log.
[[nodiscard]] Status check_log(Connection& connection, const std::string& path);

}  // namespace outbox::store::sqlite
