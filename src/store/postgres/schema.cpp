#include "store/postgres/schema.hpp"

#include <algorithm>
#include <optional>

#include "base/error.hpp"

namespace outbox::store::postgres {
namespace {

/// Roles belong to the whole cluster: migrations of other databases may change them at the same moment.
constexpr int kAttempts = 5;

std::string place(const std::string& schema) { return "schema " + schema; }

Result<std::vector<AppliedMigration>> applied(Connection& connection, const Queries& queries) {
  auto found = connection.exec(queries.find_schema);
  if (!found) return pass(found);
  std::vector<AppliedMigration> list;
  if (!found->boolean(0, 0)) return list;
  auto rows = connection.exec(queries.migrations);
  if (!rows) return pass(rows);
  for (int row = 0; row < rows->size(); ++row)
    list.push_back({.version = rows->int4(row, 0), .checksum = rows->text(row, 1)});
  return list;
}

Status check_primary(Connection& connection, const Queries& queries) {
  auto found = connection.exec(queries.find_schema);
  if (!found) return pass(found);
  if (!found->boolean(0, 1)) return {};
  return fail(Errc::unsupported, "the server is a standby, which cannot be written to",
              "connect to the primary: add target_session_attrs=read-write to the URL");
}

std::string migrate_command(const std::string& schema) {
  const bool usual = schema == StoreOptions().schema;
  return std::string("outbox migrate") + (usual ? "" : " --schema " + schema);
}

/// The next migration that is missing, or none, in the transaction that holds the lock.
Result<std::optional<std::string>> apply_next(Connection& connection, const Queries& queries,
                                              const std::string& schema) {
  connection.send(queries.begin);
  connection.send(queries.no_limits);
  connection.send(queries.pin_search_path);
  connection.send(queries.lock_migration);
  if (auto locked = connection.finish(); !locked) return pass(locked);
  auto done = applied(connection, queries);
  if (!done) return pass(done);
  const SchemaState state = store::schema_state(migrations(), *done);
  if (Status status = check_migratable(state, place(schema)); !status) return pass(status);
  if (done->size() == migrations().size()) return std::optional<std::string>{};
  const Migration& next = migrations()[done->size()];
  const std::string name(next.name);
  if (Status status = connection.script("migration " + name, with_schema(next.sql, schema));
      !status)
    return pass(status);
  auto recorded = connection.exec(
      queries.record_migration,
      {Param::int4(next.version), Param::text(name), Param::text(std::string(next.checksum))});
  if (!recorded) return pass(recorded);
  auto committed = connection.exec(queries.commit);
  if (!committed) return pass(committed);
  return std::optional<std::string>(name);
}

/// "tuple concurrently updated" has no SQLSTATE of its own.
bool collided(const Error& error) {
  return error.origin == "pg:XX000" && error.message.find("concurrently") != std::string::npos;
}

constexpr const char* kRepair =
    "this is a copy of another database (dump and restore, logical replication). Let the original deliver to the end; then "
    "here: move schema {} aside (ALTER SCHEMA ... RENAME TO ...), run: outbox migrate, and enqueue again, in the order of "
    "seq, what was not delivered";

std::string repair(const std::string& schema) {
  std::string text = kRepair;
  return text.replace(text.find("{}"), 2, schema);
}

}  // namespace

Result<std::vector<std::string>> migrate(Connection& connection, const Queries& queries,
                                         const std::string& schema) {
  if (Status status = check_primary(connection, queries); !status) return pass(status);
  connection.set_deadline(std::chrono::minutes(10));  // another process may be migrating
  std::vector<std::string> names;
  for (int attempt = 1;;) {
    auto name = apply_next(connection, queries, schema);
    connection.rollback();
    if (name && !*name) return names;
    if (name) {
      names.push_back(std::move(**name));
    } else if (!collided(name.error()) || ++attempt > kAttempts) {
      return pass(name);
    }
  }
}

Result<SchemaState> schema_state(Connection& connection, const Queries& queries) {
  auto list = applied(connection, queries);
  if (!list) return pass(list);
  return store::schema_state(migrations(), *list);
}

Status check(Connection& connection, const Queries& queries, const std::string& schema) {
  if (Status status = check_primary(connection, queries); !status) return status;
  auto state = schema_state(connection, queries);
  if (!state) return pass(state);
  if (Status status = check_version(*state, place(schema), migrate_command(schema)); !status)
    return status;
  auto may_read = connection.exec(queries.may_read);
  if (!may_read) return pass(may_read);
  if (!may_read->boolean(0, 0)) return {};
  auto condition = connection.exec(queries.condition);
  if (!condition) return pass(condition);
  const auto holds = [&condition](int column) {
    return !condition->is_null(0, column) && condition->boolean(0, column);
  };
  if (!holds(0) || !holds(1)) {
    return fail(
        Errc::corrupt,
        place(schema) +
            ": its transaction ids and snapshots are of another database: nothing can be delivered from it",
        repair(schema));
  }
  if (!holds(2)) {
    return fail(Errc::corrupt, place(schema) + ": the sequence event_seq does not number in order",
                "ALTER SEQUENCE " + schema + ".event_seq INCREMENT 1 NO CYCLE CACHE 1");
  }
  if (!holds(3)) {
    return fail(
        Errc::corrupt,
        place(schema) + ": the index event_by_seq or event_by_xid of the table event is missing",
        "create it again, on (seq) or (xid, seq)");
  }
  if (!holds(4)) {
    return fail(Errc::unsupported, place(schema) + ": row level security may hide events",
                "ALTER TABLE ... DISABLE ROW LEVEL SECURITY");
  }
  return {};
}

std::string print_migrations(const std::string& schema) {
  const std::string begin = "BEGIN;\n" + Queries(schema).pin_search_path.sql + ";";
  std::string text;
  for (const Migration& migration : migrations()) {
    text += migration_script(migration, begin, with_schema(migration.sql, schema),
                             quote_identifier(schema) + ".migration");
  }
  return text;
}

}  // namespace outbox::store::postgres
