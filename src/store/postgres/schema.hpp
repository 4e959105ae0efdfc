// The tables of the outbox in a PostgreSQL database: creates them, and checks that they are what
// this program and its cursors rely on.
#pragma once

#include <outbox/error.hpp>
#include <span>
#include <string>
#include <vector>

#include "store/migrations.hpp"
#include "store/postgres/connection.hpp"
#include "store/store.hpp"

namespace outbox::store::postgres {

/// Embedded from migrations/postgres, in order.
[[nodiscard]] std::span<const Migration> migrations();

/// Applies what is missing, each migration in a transaction of its own; of two processes at once
/// the second finds nothing to do. Returns the names of what was applied.
[[nodiscard]] Result<std::vector<std::string>> migrate(Connection& connection);

[[nodiscard]] Result<SchemaState> schema_state(Connection& connection);

/// Primary, schema neither too old nor too new.
[[nodiscard]] Status check_current(Connection& connection);

/// The same; and, for a login that may read the log, lineage, sequence, indexes: refuses
/// with what to do.
[[nodiscard]] Status check(Connection& connection);

/// The migrations as a script for psql.
[[nodiscard]] std::string print_migrations(const std::string& schema);

}  // namespace outbox::store::postgres
