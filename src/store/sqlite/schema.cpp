#include "store/sqlite/schema.hpp"

#include <poll.h>

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "store/sqlite/path.hpp"
#include "store/sqlite/queries.hpp"

namespace outbox::store::sqlite {
namespace {

/// Migrations of another process are waited for.
constexpr std::chrono::seconds kBusyTimeout{30};
/// The switch to WAL needs the file alone for a moment and does not wait by itself.
constexpr std::chrono::milliseconds kWalPause{20};

int wanted_version() { return migrations().empty() ? 0 : migrations().back().version; }

Result<std::string> text_of(Connection& connection, std::string_view sql) {
  auto statement = connection.statement(sql);
  if (!statement) return pass(statement);
  auto row = statement->step();
  if (!row) return pass(row);
  return *row ? statement->text(0) : std::string{};
}

Status use_wal(Connection& connection) {
  const auto until = std::chrono::steady_clock::now() + kBusyTimeout;
  while (true) {
    auto mode = text_of(connection, query::kUseWal);
    if (mode && *mode == "wal") return {};
    if (mode) {
      return fail(
          Errc::unsupported,
          "sqlite: " + connection.file() + " cannot use WAL (journal_mode is " + *mode + ")",
          "the file system must support shared memory");
    }
    if (mode.error().remedy != Remedy::retry_call || std::chrono::steady_clock::now() > until)
      return pass(mode);
    (void)::poll(nullptr, 0, static_cast<int>(kWalPause.count()));
  }
}

Status check_encoding(Connection& connection, const std::string& path) {
  auto encoding = text_of(connection, query::kEncoding);
  if (!encoding) return pass(encoding);
  if (*encoding == "UTF-8") return {};
  return fail(Errc::unsupported, "sqlite: " + path + " has the encoding " + *encoding,
              "payloads would be stored in it; use a database with PRAGMA encoding = 'UTF-8'");
}

/// The first migration that was applied with another text than ours; empty: none.
Result<std::string> find_edited(Connection& connection, int applied) {
  const int known = std::min(applied, wanted_version());
  for (const Migration& migration : migrations().first(static_cast<std::size_t>(known))) {
    auto statement = connection.statement(query::kMigrationChecksum);
    if (!statement) return pass(statement);
    statement->bind(1, std::int64_t{migration.version});
    auto row = statement->step();
    if (!row) return pass(row);
    if (*row && statement->bytes(0) != migration.checksum) return std::string(migration.name);
  }
  return std::string{};
}

Status check_unedited(const SchemaState& state, const std::string& path) {
  if (state.edited.empty()) return {};
  return fail(Errc::unsupported,
              "sqlite: migration " + state.edited + " differs from the one applied to " + path,
              "the file was made by another build of this version; start with a new file");
}

Status apply(Connection& connection, const Migration& migration) {
  const std::string what = "sqlite: migration " + std::string(migration.name);
  if (Status status = connection.execute(std::string(migration.sql), what); !status) return status;
  auto record = connection.statement(query::kRecordMigration);
  if (!record) return pass(record);
  return record->bind(1, std::int64_t{migration.version})
      .bind(2, migration.name)
      .bind(3, migration.checksum)
      .run();
}

}  // namespace

Result<std::vector<std::string>> migrate(const std::string& path) {
  if (Status status = check_path(path, true); !status) return pass(status);
  auto connection = Connection::open(path, {.create = true, .busy_timeout = kBusyTimeout});
  if (!connection) return pass(connection);
  if (Status status = check_encoding(*connection, path); !status) return pass(status);
  if (Status status = use_wal(*connection); !status) return pass(status);
  auto transaction = WriteTransaction::begin(*connection);
  if (!transaction) return pass(transaction);
  auto state = schema_state(*connection);
  if (!state) return pass(state);
  std::vector<std::string> applied;
  if (state->version > state->wanted) return fail(check_schema(*state, path).error());
  if (Status status = check_unedited(*state, path); !status) return pass(status);
  for (const Migration& migration :
       migrations().subspan(static_cast<std::size_t>(state->version))) {
    if (Status status = apply(*connection, migration); !status) return pass(status);
    applied.emplace_back(migration.name);
  }
  if (Status status = transaction->commit(); !status) return pass(status);
  return applied;
}

Result<SchemaState> schema_state(Connection& connection) {
  SchemaState state{.version = 0, .wanted = wanted_version(), .edited = {}};
  auto there = connection.integer(query::kHasMeta);
  if (!there) return pass(there);
  if (*there == 0) return state;
  auto version = connection.integer(query::kSchemaVersion);
  if (!version) return pass(version);
  state.version = static_cast<int>(*version);
  auto edited = find_edited(connection, state.version);
  if (!edited) return pass(edited);
  state.edited = std::move(*edited);
  return state;
}

Result<std::string> identity_of(Connection& connection) {
  if (Status status = connection.check_in_place(); !status) return pass(status);
  return text_of(connection, query::kIdentity);
}

Status check_schema(const SchemaState& state, const std::string& path) {
  if (state.version == state.wanted) return {};
  const std::string migrate_hint = "outbox migrate --store sqlite:" + path;
  if (state.version == 0)
    return fail(Errc::not_found, "sqlite: " + path + " has no outbox", migrate_hint);
  const std::string versions = "has schema version " + std::to_string(state.version) +
                               ", this program needs " + std::to_string(state.wanted);
  if (state.version < state.wanted)
    return fail(Errc::unsupported, "sqlite: " + path + " " + versions, migrate_hint);
  return fail(Errc::unsupported, "sqlite: " + path + " " + versions, "use a newer outbox");
}

Status check_log(Connection& connection, const std::string& path) {
  auto mode = text_of(connection, query::kJournalMode);
  if (!mode) return pass(mode);
  if (*mode != "wal") {
    return fail(
        Errc::unsupported,
        "sqlite: " + path + " has journal_mode " + *mode + ", which blocks readers and writers",
        "outbox migrate --store sqlite:" + path + " switches it to WAL");
  }
  auto farthest = connection.integer(query::kFarthestPosition);
  if (!farthest) return pass(farthest);
  auto newest = connection.integer(query::kNewestSeq);
  if (!newest) return pass(newest);
  if (*farthest <= *newest) return {};
  // Events that come would get numbers that count as delivered.
  return fail(Errc::corrupt,
              "sqlite: " + path + ": a subscription stands at " + std::to_string(*farthest) +
                  ", but the log ends at " + std::to_string(*newest),
              "the row 'outbox_event' of sqlite_sequence was set back; set its seq to at least " +
                  std::to_string(*farthest));
}

}  // namespace outbox::store::sqlite
