#include "store/postgres/schema.hpp"

#include <poll.h>

#include <array>
#include <chrono>
#include <optional>

#include "base/error.hpp"
#include "base/log.hpp"
#include "pg/identifier.hpp"
#include "store/postgres/definitions.hpp"
#include "store/postgres/error_map.hpp"

namespace outbox::store::postgres {
namespace {

/// Roles belong to the whole cluster: migrations of other databases may change them at the same
/// moment.
constexpr int kCollisions = 5;

/// While a migration waits for a lock on a table, everybody else waits behind it. So it waits for
/// only a second, and tries again after a pause.
constexpr std::chrono::minutes kLockPatience{1};
constexpr std::chrono::milliseconds kLockPause{500};

std::string place(const Connection& connection) { return "schema " + connection.queries().schema; }

Result<std::vector<AppliedMigration>> applied(Connection& connection) {
  OUTBOX_TRY(const Rows found, connection.exec(&Queries::find_schema));
  if (!found.boolean(0, 0)) return std::vector<AppliedMigration>{};
  OUTBOX_TRY(const Rows rows, connection.exec(&Queries::migrations));
  return rows.list([&](int row) {
    return AppliedMigration{.version = rows.int4(row, 0), .checksum = rows.text(row, 1)};
  });
}

Status check_primary(Connection& connection) {
  OUTBOX_TRY(const Rows found, connection.exec(&Queries::find_schema));
  if (!found.boolean(0, 1)) return {};
  return fail(Errc::unsupported, "the server is a standby, which cannot be written to",
              "connect to the primary: add target_session_attrs=read-write to the URL");
}

std::string migrate_command(const std::string& schema) {
  const bool usual = schema == StoreOptions().schema;
  return std::string("outbox migrate") + (usual ? "" : " --schema " + schema);
}

/// Runs the migration and records it, and stores what the schema then consists of. `again` says
/// that migrations were applied before.
Status run_migration(Connection& connection, const Migration& next, bool again) {
  const DefinitionQueries queries(connection.queries().schema);
  Definitions wanted;
  Definitions before;
  if (again) {
    OUTBOX_TRY(wanted, read_definitions(connection, queries.wanted));
    // While a schema is being made, nothing was there before that others may have changed.
    if (!wanted.empty()) {
      OUTBOX_TRY(before, read_definitions(connection, queries.found));
    }
  }
  const std::string name(next.name);
  Status status =
      connection.script("migration " + name, with_schema(next.sql, connection.queries().schema));
  if (status)
    status = connection.run(&Queries::record_migration, {next.version, name, next.checksum});
  // While a schema is being made, only the result of the last migration is looked at.
  if (!status || (wanted.empty() && next.version != migrations().back().version)) return status;
  OUTBOX_TRY(const Definitions after, read_definitions(connection, queries.found));
  return store_definitions(connection, wanted_after(wanted, before, after));
}

/// Applies the next missing migration in the transaction that holds the lock. Returns its name;
/// nullopt if none is missing.
Result<std::optional<std::string>> apply_next(Connection& connection) {
  for (const auto query : {&Queries::begin, &Queries::no_limits, &Queries::no_jit,
                           &Queries::pin_search_path, &Queries::lock_migration})
    connection.send(query);
  connection.send(&Queries::short_lock_limit);
  OUTBOX_TRY(connection.finish());
  OUTBOX_TRY(const auto done, applied(connection));
  const SchemaState state = store::schema_state(migrations(), done);
  OUTBOX_TRY(check_migratable(state, place(connection)));
  if (done.size() == migrations().size()) {
    OUTBOX_TRY(renew_definitions(connection));
    return std::optional<std::string>{};
  }
  const Migration& next = migrations()[done.size()];
  const std::string name(next.name);
  OUTBOX_TRY(run_migration(connection, next, !done.empty()));
  OUTBOX_TRY(connection.run(&Queries::commit));
  return std::optional<std::string>(name);
}

/// The error "tuple concurrently updated" has no SQLSTATE of its own.
bool collided(const Error& error) {
  return error.origin == "pg:XX000" && error.message.find("concurrently") != std::string::npos;
}

/// Waits before the next attempt. Returns false if the attempts have gone on for long enough.
bool wait_for_lock(std::chrono::steady_clock::time_point since, bool& said) {
  if (std::chrono::steady_clock::now() - since > kLockPatience) return false;
  if (!std::exchange(said, true))
    log::warn("migration waits for a table that another session has locked, retries");
  (void)::poll(nullptr, 0, static_cast<int>(kLockPause.count()));
  return true;
}

tl::unexpected<Error> locked_out(Error error) {
  error.hint =
      "another session holds a lock on a table of the outbox: pg_stat_activity and pg_locks show it (a backup, an open transaction, "
      "ALTER TABLE). Nothing of this migration was applied; run it again";
  return fail(std::move(error));
}

constexpr const char* kRepair =
    "this is a copy of another database (dump and restore, logical replication). If it takes the place of the original, stop "
    "the original's relays for good; then `outbox doctor --repair-lineage` shows what is pending here, and repairs it with "
    "--apply";

}  // namespace

Result<std::vector<std::string>> migrate(Connection& connection) {
  OUTBOX_TRY(check_primary(connection));
  connection.set_deadline(std::chrono::minutes(10));  // another process may be migrating
  std::vector<std::string> names;
  auto since = std::chrono::steady_clock::now();
  bool said = false;
  for (int attempt = 1;;) {
    auto name = apply_next(connection);
    connection.rollback();
    if (name && !*name) return names;
    if (name) {
      names.push_back(std::move(**name));
      since = std::chrono::steady_clock::now();
    } else if (is_locked(name.error())) {
      if (!wait_for_lock(since, said)) return locked_out(std::move(name.error()));
    } else if (!collided(name.error()) || ++attempt > kCollisions) {
      return pass(name);
    }
  }
}

Result<SchemaState> schema_state(Connection& connection) {
  OUTBOX_TRY(const auto list, applied(connection));
  return store::schema_state(migrations(), list);
}

Status check_current(Connection& connection) {
  OUTBOX_TRY(check_primary(connection));
  OUTBOX_TRY(const SchemaState state, schema_state(connection));
  return check_version(state, place(connection), migrate_command(connection.queries().schema));
}

Status check(Connection& connection) {
  const std::string& schema = connection.queries().schema;
  OUTBOX_TRY(check_current(connection));
  OUTBOX_TRY(const Rows may_read, connection.exec(&Queries::may_read));
  if (!may_read.boolean(0, 0)) return {};
  OUTBOX_TRY(const Rows condition, connection.exec(&Queries::condition));
  const auto holds = [&condition](int column) {
    return !condition.is_null(0, column) && condition.boolean(0, column);
  };
  struct Requirement {
    bool holds;
    Errc code;
    const char* problem;
    std::string hint;
  };
  const std::array requirements{
      Requirement{
          holds(0) && holds(1), Errc::corrupt,
          "its transaction ids and snapshots are of another database: nothing can be delivered from it",
          kRepair},
      Requirement{holds(2), Errc::corrupt, "the sequence event_seq does not number in order",
                  "ALTER SEQUENCE " + schema + ".event_seq INCREMENT 1 NO CYCLE CACHE 1"},
      Requirement{holds(3), Errc::corrupt,
                  "the index event_by_seq or event_by_xid of the table event is missing",
                  "create it again, on (seq) or (xid, seq)"},
      Requirement{holds(4), Errc::unsupported, "row level security may hide events",
                  "ALTER TABLE ... DISABLE ROW LEVEL SECURITY"}};
  for (const auto& [met, code, problem, hint] : requirements) {
    if (!met) return fail(code, place(connection) + ": " + problem, hint);
  }
  return {};
}

std::string print_migrations(const std::string& schema) {
  const std::string begin = "BEGIN;\n" + Queries(schema).pin_search_path.sql + ";";
  std::string text;
  for (const Migration& migration : migrations()) {
    text += migration_script(migration, begin, with_schema(migration.sql, schema),
                             pg::quote_identifier(schema) + ".migration");
  }
  return text + "-- for outbox doctor\n" + begin + "\n" + definitions_script(schema) + "COMMIT;\n";
}

}  // namespace outbox::store::postgres
