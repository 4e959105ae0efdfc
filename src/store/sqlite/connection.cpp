#include "store/sqlite/connection.hpp"

#include "store/sqlite/checkpoint.hpp"
#include "store/sqlite/error_map.hpp"
#include "store/sqlite/queries.hpp"

namespace outbox::store::sqlite {

Result<Connection> Connection::open(const std::string& path, const ConnectOptions& options) {
  sqlite3* db = nullptr;
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE |
                    (options.create ? SQLITE_OPEN_CREATE : 0);
  const int code = sqlite3_open_v2(path.c_str(), &db, flags, nullptr);
  Connection connection(db);
  if (code != SQLITE_OK) return fail(map_error(db, code, "sqlite: open " + path));
  sqlite3_busy_timeout(db, static_cast<int>(options.busy_timeout.count()));
  if (has_wal_reset_bug(sqlite3_libversion_number())) {
    sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
    sqlite3_wal_autocheckpoint(db, 0);
  }
  const auto sync = options.sync == Sync::full ? query::kSyncFull : query::kSyncNormal;
  for (const std::string_view setting : {query::kNoMemoryMap, sync}) {
    if (Status status = connection.run(setting); !status) return pass(status);
  }
  return connection;
}

Result<Statement> Connection::statement(std::string_view sql) {
  ++statements_;
  for (const Cached& cached : cache_) {
    if (cached.sql == sql.data()) return Statement(cached.stmt.get());
  }
  sqlite3_stmt* stmt = nullptr;
  const int code = sqlite3_prepare_v3(db_.get(), sql.data(), static_cast<int>(sql.size()),
                                      SQLITE_PREPARE_PERSISTENT, &stmt, nullptr);
  if (code != SQLITE_OK) return fail(map_error(db_.get(), code, "sqlite: prepare"));
  cache_.push_back(
      Cached{.sql = sql.data(), .stmt = std::unique_ptr<sqlite3_stmt, Finalize>(stmt)});
  return Statement(stmt);
}

Result<std::int64_t> Connection::integer(std::string_view sql) {
  OUTBOX_TRY(const Statement row, query(sql));
  return row.has_row() ? row.integer(0) : 0;
}

Result<std::string> Connection::text(std::string_view sql) {
  OUTBOX_TRY(const Statement row, query(sql));
  return row.has_row() ? row.text(0) : std::string{};
}

Status Connection::execute(const std::string& sql, std::string_view what) {
  ++statements_;
  const int code = sqlite3_exec(db_.get(), sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return fail(map_error(db_.get(), code, what));
  return {};
}

std::string Connection::file() const {
  const char* name = sqlite3_db_filename(db_.get(), "main");
  return name == nullptr ? std::string{} : std::string(name);
}

Status Connection::check_in_place() const {
  int moved = 0;
  const int code = sqlite3_file_control(db_.get(), "main", SQLITE_FCNTL_HAS_MOVED, &moved);
  if (code != SQLITE_OK || moved == 0) return {};
  return fail(Errc::unavailable, Remedy::reconnect,
              "sqlite: " + file() + " was moved, removed or replaced",
              "stop the relay before a database is restored under it");
}

Result<WriteTransaction> WriteTransaction::begin(Connection& connection) {
  if (Status status = connection.run(query::kBegin); !status) return pass(status);
  return WriteTransaction(connection);
}

WriteTransaction::~WriteTransaction() {
  if (connection_ != nullptr && connection_->in_transaction())
    (void)connection_->run(query::kRollback);
}

Status WriteTransaction::commit() {
  if (Status status = connection_->run(query::kCommit); !status) return status;
  connection_ = nullptr;
  return {};
}

}  // namespace outbox::store::sqlite
