#include "store/sqlite/connection.hpp"

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "store/sqlite/clock.hpp"
#include "store/sqlite/error_map.hpp"
#include "store/sqlite/event_insert.hpp"
#include "store/sqlite/parking.hpp"
#include "store/sqlite/queries.hpp"

namespace outbox::store::sqlite {
namespace {

/// Implements the SQL function outbox_now().
void now_function(sqlite3_context* context, int /*count*/, sqlite3_value** /*arguments*/) {
  sqlite3_result_int64(context, wall_us());
}

/// Binds a parameter. An array is bound as a JSON array, for json_each().
struct Bind {
  sqlite3_stmt* stmt;
  int index;

  void operator()(std::nullptr_t) const { sqlite3_bind_null(stmt, index); }
  void operator()(const sql::Time& time) const { sqlite3_bind_int64(stmt, index, time.us); }
  void operator()(const EventId& id) const { blob({to_bytes(id)}); }
  void operator()(const sql::Bytes& bytes) const { blob(bytes); }
  void operator()(std::string_view text) const {
    sqlite3_bind_text64(stmt, index, text.data() != nullptr ? text.data() : "", text.size(),
                        SQLITE_STATIC, SQLITE_UTF8);
  }
  template <std::integral Number>
  void operator()(Number number) const {
    sqlite3_bind_int64(stmt, index, static_cast<std::int64_t>(number));
  }
  template <class Value>
  void operator()(std::span<const Value> values) const {
    const std::string json =
        nlohmann::json(std::vector<Value>(values.begin(), values.end())).dump();
    sqlite3_bind_text64(stmt, index, json.data(), json.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  }

 private:
  void blob(const sql::Bytes& value) const {
    const std::string_view bytes = value.bytes;
    sqlite3_bind_blob64(stmt, index, bytes.data() != nullptr ? bytes.data() : "", bytes.size(),
                        SQLITE_STATIC);
  }
};

sql::Cell read_cell(const Statement& row, int column) {
  switch (sqlite3_column_type(row.raw(), column)) {
    case SQLITE_NULL: return nullptr;
    case SQLITE_BLOB: return std::string(row.bytes(column));
    case SQLITE_TEXT: return row.text(column);
    default: return row.integer(column);
  }
}

}  // namespace

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
  sqlite3_create_function_v2(db, "outbox_now", 0, SQLITE_UTF8, nullptr, now_function, nullptr,
                             nullptr, nullptr);
  const auto sync = options.sync == Sync::full ? query::kSyncFull : query::kSyncNormal;
  for (const std::string_view setting : {query::kNoMemoryMap, sync}) {
    OUTBOX_TRY(connection.run(setting));
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

Result<sql::Rows> Connection::exec(sql::Named named, const sql::Params& params) {
  const sql::Statement& statement = kStatements.*named;
  const bool several = statement.text.find(';') != std::string_view::npos;
  if (in_transaction() || (!several && !statement.for_owner))
    return exec_all(statement.text, params);
  sql::Rows rows;
  OUTBOX_TRY(transact([&]() -> Result<sql::Decision> {
    if (statement.for_owner) {
      OUTBOX_TRY(
          check_owner(*this, std::get<std::int32_t>(params[0]), std::get<std::int64_t>(params[2])));
    }
    OUTBOX_TRY(rows, exec_all(statement.text, params));
    return sql::Decision::commit;
  }));
  return rows;
}

Result<sql::Rows> Connection::exec_all(std::string_view sql, const sql::Params& params) {
  sql::Rows rows;
  for (;;) {
    sql.remove_prefix(std::min(sql.find_first_not_of(" \n"), sql.size()));
    if (sql.empty()) return rows;
    OUTBOX_TRY(Statement row, statement(sql));
    const int wanted = sqlite3_bind_parameter_count(row.raw());
    for (int i = 0; i < wanted && i < std::ssize(params); ++i)
      std::visit(Bind{row.raw(), i + 1}, params[static_cast<std::size_t>(i)]);
    const int columns = sqlite3_column_count(row.raw());
    std::vector<sql::Cell> cells;
    for (Status status = row.next(); !status || row.has_row(); status = row.next()) {
      if (!status) return pass(status);
      for (int column = 0; column < columns; ++column) cells.push_back(read_cell(row, column));
    }
    if (columns > 0) rows = {static_cast<std::size_t>(columns), std::move(cells)};
    sql.remove_prefix(std::string_view(sqlite3_sql(row.raw())).size());
  }
}

Status Connection::run_and_write(sql::Named named, const sql::Params& params,
                                 std::span<const Event> events, std::span<const EventId> ids) {
  if (Status status = run(named, params); !status || events.empty()) return status;
  OUTBOX_TRY(const Statement insert, statement(query::kInsertEvent));
  return insert_events(insert.raw(), events, ids);
}

Status Connection::transact(const std::function<Result<sql::Decision>()>& body) {
  OUTBOX_TRY(WriteTransaction transaction, WriteTransaction::begin(*this));
  OUTBOX_TRY(const sql::Decision decision, body());
  if (decision != sql::Decision::commit) return {};
  // What is committed into a file that is gone would be lost with it.
  OUTBOX_TRY(check_in_place());
  return transaction.commit();
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
  OUTBOX_TRY(connection.run(query::kBegin));
  return WriteTransaction(connection);
}

WriteTransaction::~WriteTransaction() {
  if (connection_ != nullptr && connection_->in_transaction())
    (void)connection_->run(query::kRollback);
}

Status WriteTransaction::commit() {
  OUTBOX_TRY(connection_->run(query::kCommit));
  connection_ = nullptr;
  return {};
}

}  // namespace outbox::store::sqlite
