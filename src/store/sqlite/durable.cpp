#include "store/sqlite/durable.hpp"

#include "base/error.hpp"
#include "store/sqlite/error_map.hpp"
#include "store/sqlite/queries.hpp"

namespace outbox::store::sqlite {
namespace {

/// Null if the file is not open.
sqlite3_file* find_file(Connection& connection, int which) {
  sqlite3_file* file = nullptr;
  const int code = sqlite3_file_control(connection.handle(), "main", which, &file);
  return code == SQLITE_OK && file != nullptr && file->pMethods != nullptr ? file : nullptr;
}

Status sync(sqlite3_file* file, const char* what) {
  const int code = file->pMethods->xSync(file, SQLITE_SYNC_NORMAL | SQLITE_SYNC_DATAONLY);
  if (code != SQLITE_OK) return fail(map_code(code, what, sqlite3_errstr(code)));
  return {};
}

}  // namespace

Status DurableRead::note(Connection& connection) {
  OUTBOX_TRY(noted_, connection.integer(query::kDataVersion));
  return {};
}

// A commit is in the WAL until a checkpoint has copied it into the database file and a later writer
// restarts the WAL, which changes the WAL's header. A checkpoint syncs the database file only if
// its connection's PRAGMA synchronous requires it. Therefore this function syncs the WAL and, when
// the WAL's header has changed since the last time, the database file too. A restart after the
// header was read can only concern commits that the sync before has covered.
Status DurableRead::wait(Connection& connection) {
  if (!noted_ || noted_ == durable_) return {};
  WalHeader header{};
  if (sqlite3_file* wal = find_file(connection, SQLITE_FCNTL_JOURNAL_POINTER)) {
    OUTBOX_TRY(sync(wal, "sqlite: sync the WAL"));
    const int code = wal->pMethods->xRead(wal, header.data(), static_cast<int>(header.size()), 0);
    // A read of an empty WAL is short and leaves zeros.
    if (code != SQLITE_OK && code != SQLITE_IOERR_SHORT_READ) {
      return fail(map_code(code, "sqlite: read the WAL", sqlite3_errstr(code)));
    }
  }
  if (!durable_ || header != header_) {
    sqlite3_file* database = find_file(connection, SQLITE_FCNTL_FILE_POINTER);
    if (database == nullptr) return fail(Errc::internal, "sqlite: the database file is not open");
    OUTBOX_TRY(sync(database, "sqlite: sync the database"));
  }
  header_ = header;
  durable_ = noted_;
  return {};
}

}  // namespace outbox::store::sqlite
