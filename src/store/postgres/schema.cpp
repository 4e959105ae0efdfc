#include "store/postgres/schema.hpp"

#include <algorithm>
#include <optional>

#include "base/error.hpp"

namespace outbox::store::postgres {
namespace {

/// Roles belong to the whole cluster: migrations of other databases may change them at the same moment.
constexpr int kAttempts = 5;

int wanted_version() { return migrations().empty() ? 0 : migrations().back().version; }

std::string place(const std::string& schema) { return "schema " + schema; }

struct Applied {
  int version{0};
  std::string name;
  std::string checksum;
};

Result<std::vector<Applied>> applied(Connection& connection, const Queries& queries) {
  auto found = connection.exec(queries.find_schema);
  if (!found) return pass(found);
  std::vector<Applied> list;
  if (!found->boolean(0, 0)) return list;
  auto rows = connection.exec(queries.migrations);
  if (!rows) return pass(rows);
  for (int row = 0; row < rows->size(); ++row) {
    list.push_back({.version = rows->int4(row, 0),
                    .name = rows->text(row, 1),
                    .checksum = rows->text(row, 2)});
  }
  return list;
}

Status check_primary(Connection& connection, const Queries& queries) {
  auto found = connection.exec(queries.find_schema);
  if (!found) return pass(found);
  if (!found->boolean(0, 1)) return {};
  return fail(Errc::unsupported, "the server is a standby, which cannot be written to",
              "connect to the primary: add target_session_attrs=read-write to the URL");
}

std::string migrate_hint(const std::string& schema) {
  const bool usual = schema == StoreOptions().schema;
  return "run: outbox migrate" + (usual ? "" : " --schema " + schema);
}

tl::unexpected<Error> too_new(const std::string& schema, int version) {
  return fail(Errc::unsupported,
              place(schema) + " has version " + std::to_string(version) + ", this program knows " +
                  std::to_string(wanted_version()),
              "use a newer outbox");
}

/// The first migration that was applied with another text than ours; empty: none.
std::string find_edited(const std::vector<Applied>& list) {
  for (const Applied& one : list) {
    if (one.version > wanted_version()) break;
    const Migration& ours = migrations()[static_cast<std::size_t>(one.version) - 1];
    if (one.checksum != ours.checksum) return std::string(ours.name);
  }
  return {};
}

/// A migration that was applied and then edited would leave two databases of one version with different tables.
Status check_unedited(const std::vector<Applied>& list, const std::string& schema) {
  if (!list.empty() && list.back().version > wanted_version())
    return too_new(schema, list.back().version);
  const std::string edited = find_edited(list);
  if (edited.empty()) return {};
  return fail(
      Errc::unsupported,
      place(schema) + ": migration " + edited + " differs from the one that was applied",
      "the schema was made by another build of this version; use that one, or start with a new schema");
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
  if (Status status = check_unedited(*done, schema); !status) return pass(status);
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
  connection.set_deadline(std::chrono::minutes(10));  // another process may be at it
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
  return SchemaState{.version = list->empty() ? 0 : list->back().version,
                     .wanted = wanted_version(),
                     .edited = find_edited(*list)};
}

Status check(Connection& connection, const Queries& queries, const std::string& schema) {
  if (Status status = check_primary(connection, queries); !status) return status;
  auto state = schema_state(connection, queries);
  if (!state) return pass(state);
  if (state->version > state->wanted) return too_new(schema, state->version);
  if (state->version == 0)
    return fail(Errc::not_found, place(schema) + " has no outbox in it", migrate_hint(schema));
  if (state->version < state->wanted) {
    return fail(Errc::unsupported,
                place(schema) + " has version " + std::to_string(state->version) +
                    ", this program needs " + std::to_string(state->wanted),
                migrate_hint(schema));
  }
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
  std::string text;
  for (const Migration& migration : migrations()) {
    text += "-- migration " + std::string(migration.name) + "\nBEGIN;\n" +
            Queries(schema).pin_search_path.sql + ";\n" + with_schema(migration.sql, schema) +
            "\nINSERT INTO " + quote_identifier(schema) +
            ".migration (version, name, checksum) VALUES (" + std::to_string(migration.version) +
            ", '" + std::string(migration.name) + "', '" + std::string(migration.checksum) +
            "');\nCOMMIT;\n";
  }
  return text;
}

}  // namespace outbox::store::postgres
