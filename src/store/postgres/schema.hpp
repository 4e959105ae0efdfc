// Creates the tables of the outbox in a PostgreSQL database, and checks that they are what this
// program and its cursors rely on.
#pragma once

#include <outbox/error.hpp>
#include <span>
#include <string>
#include <vector>

#include "store/migrations.hpp"
#include "store/postgres/connection.hpp"
#include "store/store.hpp"

namespace outbox::store::postgres {

/// The migrations that are embedded from migrations/postgres, in their order.
[[nodiscard]] std::span<const Migration> migrations();

/// Applies the migrations that are missing, each in a transaction of its own, and returns their
/// names. When two processes migrate at once, the second one finds nothing to do.
[[nodiscard]] Result<std::vector<std::string>> migrate(Connection& connection);

[[nodiscard]] Result<SchemaState> schema_state(Connection& connection);

/// Checks that the server is a primary and the schema is neither too old nor too new.
[[nodiscard]] Status check_current(Connection& connection);

/// Checks the same and, for a login that may read the log, also lineage, sequence and indexes. The
/// error's hint says what to do.
[[nodiscard]] Status check(Connection& connection);

/// The migrations as a script for psql.
[[nodiscard]] std::string print_migrations(const std::string& schema);

}  // namespace outbox::store::postgres
