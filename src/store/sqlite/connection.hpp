// A connection to one SQLite file, and a write transaction on it. It is used by one thread at a
// time.
#pragma once

#include <sqlite3.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <outbox/error.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "store/sql/connection.hpp"
#include "store/sqlite/statement.hpp"

namespace outbox::store::sqlite {

/// The statements of the parts in store/sql.
extern const sql::Statements kStatements;

/// What power loss may take back of this connection's own commits.
enum class Sync : std::uint8_t {
  full,    ///< No commit.
  normal,  ///< The last commits; the file stays consistent.
};

struct ConnectOptions {
  bool create{false};
  Sync sync{Sync::full};
  std::chrono::milliseconds busy_timeout{5000};
};

class Connection final : public sql::Connection {
 public:
  /// The connection never checkpoints by itself when the linked SQLite has the WAL-reset bug
  /// (has_wal_reset_bug()).
  [[nodiscard]] static Result<Connection> open(const std::string& path,
                                               const ConnectOptions& options = {});
  /// Uses a connection of the application as it is set up. The connection is not closed, and
  /// nothing of ours is left on it.
  [[nodiscard]] static Connection borrow(sqlite3* db) { return Connection(db, false); }

  /// The first statement of `sql`, which is prepared once. `sql` must be one of the constants of
  /// queries.hpp, since its address is the key. A statement that is still in use must not be
  /// requested again.
  [[nodiscard]] Result<Statement> statement(std::string_view sql);
  /// Binds the values from ?1 on and steps to the first row. Texts must stay valid as long as the
  /// statement.
  template <class... Values>
  [[nodiscard]] Result<Statement> query(std::string_view sql, const Values&... values) {
    OUTBOX_TRY(Statement ready, statement(sql));
    [[maybe_unused]] int index = 0;
    (ready.bind(++index, values), ...);
    OUTBOX_TRY(ready.next());
    return ready;
  }
  /// Runs the statement to its end.
  template <class... Values>
  [[nodiscard]] Status run(std::string_view sql, const Values&... values) {
    OUTBOX_TRY(Statement row, query(sql, values...));
    while (row.has_row()) {
      OUTBOX_TRY(row.next());
    }
    return {};
  }
  using sql::Connection::run;
  /// Runs the statements of a text, one after the other. The rows are those of the last statement
  /// that has columns.
  [[nodiscard]] Result<sql::Rows> exec_all(std::string_view sql, const sql::Params& params);

  // For the parts in store/sql.
  [[nodiscard]] Result<sql::Rows> exec(sql::Named statement, const sql::Params& params) override;
  [[nodiscard]] Status run_and_write(sql::Named statement, const sql::Params& params,
                                     std::span<const Event> events,
                                     std::span<const EventId> ids) override;
  [[nodiscard]] Status transact(const std::function<Result<sql::Decision>()>& body) override;

  /// The first column of the first row; 0 or empty if there is no row.
  [[nodiscard]] Result<std::int64_t> integer(std::string_view sql);
  [[nodiscard]] Result<std::string> text(std::string_view sql);
  /// Runs several statements at once, for migrations.
  [[nodiscard]] Status execute(const std::string& sql, std::string_view what);

  [[nodiscard]] sqlite3* handle() const { return db_.get(); }
  [[nodiscard]] bool in_transaction() const { return sqlite3_get_autocommit(db_.get()) == 0; }
  /// Lets this connection empty the WAL if it is the last one of all processes to be closed.
  void checkpoint_on_close() {
    sqlite3_db_config(db_.get(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, nullptr);
  }
  /// The number of rows that the last statement wrote.
  [[nodiscard]] int changes() const { return sqlite3_changes(db_.get()); }
  /// Fails when the file is no longer the one at its path: other programs would not see what is
  /// written into it.
  [[nodiscard]] Status check_in_place() const;
  /// The number of executions so far.
  [[nodiscard]] std::uint64_t statements() const { return statements_; }
  /// The file's own path: absolute, symbolic links resolved, as SQLite uses it.
  [[nodiscard]] std::string file() const;

 private:
  struct Close {
    bool owned{true};
    void operator()(sqlite3* db) const {
      if (owned) sqlite3_close_v2(db);
    }
  };
  struct Finalize {
    void operator()(sqlite3_stmt* stmt) const { sqlite3_finalize(stmt); }
  };
  struct Cached {
    const char* sql{nullptr};
    std::unique_ptr<sqlite3_stmt, Finalize> stmt;
  };

  explicit Connection(sqlite3* db, bool owned = true) : db_(db, Close{owned}) {}

  std::unique_ptr<sqlite3, Close> db_;
  std::vector<Cached> cache_;
  std::uint64_t statements_{0};
};

/// A transaction that begins with BEGIN IMMEDIATE and rolls back unless it was committed.
class WriteTransaction {
 public:
  [[nodiscard]] static Result<WriteTransaction> begin(Connection& connection);

  WriteTransaction(const WriteTransaction&) = delete;
  WriteTransaction& operator=(const WriteTransaction&) = delete;
  WriteTransaction(WriteTransaction&& other) noexcept
      : connection_(std::exchange(other.connection_, nullptr)) {}
  WriteTransaction& operator=(WriteTransaction&&) = delete;
  ~WriteTransaction();

  [[nodiscard]] Status commit();

 private:
  explicit WriteTransaction(Connection& connection) : connection_(&connection) {}
  Connection* connection_;
};

/// Whether the version is one of 3.7.0 to 3.51.2. In these versions the file can be corrupted when
/// one connection starts a second checkpoint right after a complete one while another connection
/// commits (https://sqlite.org/wal.html, "the WAL-reset bug"). The relay then leaves checkpoints to
/// the application.
[[nodiscard]] constexpr bool has_wal_reset_bug(int version_number) noexcept {
  return version_number >= 3007000 && version_number < 3051003;
}

/// The size of the file's WAL; 0 if there is none.
[[nodiscard]] std::uint64_t wal_bytes(const std::string& database);

/// Copies the WAL into the file while another connection of ours holds the write lock, so that no
/// commit runs meanwhile, which avoids the WAL-reset bug. The WAL keeps its size and is used from
/// its beginning again. If the file is busy, nothing is done and the error has Remedy::retry_call.
[[nodiscard]] Status checkpoint_alone(Connection& connection);

}  // namespace outbox::store::sqlite
