#include "store/sqlite/schema.hpp"

#include <poll.h>

#include <array>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "store/sqlite/path.hpp"
#include "store/sqlite/queries.hpp"

namespace outbox::store::sqlite {
namespace {

/// The time to wait for migrations of another process.
constexpr std::chrono::seconds kSetupTimeout{30};
/// The switch to WAL needs the file to itself for a moment and does not wait for it.
constexpr std::chrono::milliseconds kWalPause{20};

std::string describe_place(const std::string& path) { return "sqlite: " + path; }

Status use_wal(Connection& connection) {
  const auto until = std::chrono::steady_clock::now() + kSetupTimeout;
  while (true) {
    auto mode = connection.text(query::kUseWal);
    if (mode && *mode == "wal") return {};
    if (mode) {
      return fail(
          Errc::unsupported,
          describe_place(connection.file()) + " cannot use WAL (journal_mode is " + *mode + ")",
          "the file system must support shared memory");
    }
    if (mode.error().remedy != Remedy::retry_call || std::chrono::steady_clock::now() > until)
      return pass(mode);
    (void)::poll(nullptr, 0, static_cast<int>(kWalPause.count()));
  }
}

Status check_encoding(Connection& connection, const std::string& path) {
  OUTBOX_TRY(const std::string encoding, connection.text(query::kEncoding));
  if (encoding == "UTF-8") return {};
  return fail(Errc::unsupported, describe_place(path) + " has the encoding " + encoding,
              "payloads would be stored in it; use a database with PRAGMA encoding = 'UTF-8'");
}

Status store_definitions(Connection& connection, const Definitions& wanted) {
  OUTBOX_TRY(connection.run(query::kForgetDefinitions));
  for (const Definition& one : wanted) {
    OUTBOX_TRY(connection.run(query::kStoreDefinition, std::string_view(one.object),
                              std::string_view(one.part), std::string_view(one.makes),
                              std::string_view(one.undoes)));
  }
  return {};
}

Status check_log(Connection& connection, const std::string& path) {
  OUTBOX_TRY(const std::string mode, connection.text(query::kJournalMode));
  if (mode != "wal") {
    return fail(
        Errc::unsupported,
        describe_place(path) + " has journal_mode " + mode + ", which blocks readers and writers",
        "outbox migrate --store sqlite:" + path + " switches it to WAL");
  }
  OUTBOX_TRY(const std::int64_t farthest, connection.integer(query::kFarthestPosition));
  OUTBOX_TRY(const std::int64_t newest, connection.integer(query::kNewestSeq));
  if (farthest <= newest) return {};
  // New events would get seqs that count as delivered.
  return fail(Errc::corrupt,
              describe_place(path) + ": a subscription stands at " + std::to_string(farthest) +
                  ", but the log ends at " + std::to_string(newest),
              "the row 'outbox_event' of sqlite_sequence was set back; set its seq to at least " +
                  std::to_string(farthest));
}

}  // namespace

Result<std::vector<std::string>> migrate(const std::string& path) {
  OUTBOX_TRY(check_path(path, true));
  OUTBOX_TRY(Connection connection,
             Connection::open(path, {.create = true, .busy_timeout = kSetupTimeout}));
  OUTBOX_TRY(check_encoding(connection, path));
  OUTBOX_TRY(use_wal(connection));
  OUTBOX_TRY(WriteTransaction transaction, WriteTransaction::begin(connection));
  OUTBOX_TRY(const SchemaState state, schema_state(connection));
  OUTBOX_TRY(check_migratable(state, describe_place(path)));
  Definitions wanted;
  Definitions before;
  if (state.version > 0) {
    OUTBOX_TRY(wanted, read_definitions(connection, query::kWantedDefinitions));
    OUTBOX_TRY(before, read_definitions(connection, query::kFoundDefinitions));
  }
  std::vector<std::string> applied;
  for (const Migration& migration : migrations().subspan(static_cast<std::size_t>(state.version))) {
    const std::string name(migration.name);
    Status status = connection.execute(std::string(migration.sql), "sqlite: migration " + name);
    if (status) {
      status = connection.run(query::kRecordMigration, migration.version, migration.name,
                              migration.checksum);
    }
    if (!status) return pass(status);
    applied.push_back(name);
  }
  if (!applied.empty() || made_by(wanted) != made_by(before)) {
    OUTBOX_TRY(Definitions after, read_definitions(connection, query::kFoundDefinitions));
    if (made_by(wanted) == made_by(before)) after = wanted_after(wanted, before, after);
    OUTBOX_TRY(store_definitions(connection, after));
  }
  OUTBOX_TRY(transaction.commit());
  return applied;
}

Result<std::vector<std::string>> make_lookup_indexes(Connection& connection) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 2> indexes{
      {{"outbox_event_by_id", query::kMakeIdIndex}, {"outbox_event_by_key", query::kMakeKeyIndex}}};
  OUTBOX_TRY(WriteTransaction transaction, WriteTransaction::begin(connection));
  std::vector<std::string> made;
  for (const auto& [name, sql] : indexes) {
    OUTBOX_TRY(const Statement there, connection.query(query::kHasIndex, name));
    if (there.integer(0) != 0) continue;
    OUTBOX_TRY(connection.run(sql));
    made.emplace_back(name);
  }
  OUTBOX_TRY(transaction.commit());
  return made;
}

Result<SchemaState> schema_state(Connection& connection) {
  OUTBOX_TRY(const std::int64_t found, connection.integer(query::kHasMigrations));
  std::vector<AppliedMigration> applied;
  if (found != 0) {
    OUTBOX_TRY(Statement row, connection.query(query::kMigrations));
    while (row.has_row()) {
      applied.push_back({.version = static_cast<int>(row.integer(0)), .checksum = row.text(1)});
      OUTBOX_TRY(row.next());
    }
  }
  return store::schema_state(migrations(), applied);
}

Result<Definitions> read_definitions(Connection& connection, std::string_view sql) {
  OUTBOX_TRY(Statement row, connection.query(sql));
  Definitions list;
  while (row.has_row()) {
    list.push_back({.object = row.text(0),
                    .part = row.text(1),
                    .grantee = {},
                    .makes = row.text(2),
                    .undoes = row.text(3)});
    OUTBOX_TRY(row.next());
  }
  return list;
}

Result<std::string> read_identity(Connection& connection) {
  OUTBOX_TRY(connection.check_in_place());
  return connection.text(query::kIdentity);
}

Status check(Connection& connection, const std::string& path) {
  OUTBOX_TRY(const SchemaState state, schema_state(connection));
  const std::string migrate_command = "outbox migrate --store sqlite:" + path;
  OUTBOX_TRY(check_version(state, describe_place(path), migrate_command));
  return check_log(connection, path);
}

// WAL is a property of the file, and must be set outside of transactions.
std::string print_migrations() {
  std::string text = "PRAGMA journal_mode = WAL;\n";
  for (const Migration& migration : migrations())
    text += migration_script(migration, "BEGIN IMMEDIATE;", migration.sql, "outbox_migration");
  return text.append("-- for outbox doctor\nBEGIN IMMEDIATE;\n")
      .append(query::kForgetDefinitions)
      .append(";\nINSERT INTO outbox_definition (object, part, makes, undoes) ")
      .append(query::kFoundDefinitions)
      .append(";\nCOMMIT;\n");
}

}  // namespace outbox::store::sqlite
