#include "store/sqlite/transaction.hpp"

#include <utility>

#include "base/error.hpp"
#include "store/sqlite/error_map.hpp"

namespace outbox::sqlite {
namespace {

int execute(sqlite3* db, const char* sql) { return sqlite3_exec(db, sql, nullptr, nullptr, nullptr); }

[[noreturn]] void refuse(Errc code, std::string message, std::string hint) {
  throw Exception(fail(code, std::move(message), std::move(hint)).value());
}

}  // namespace

Transaction::Transaction(sqlite3* db) : state_(std::make_unique<State>()) {
  if (db == nullptr) refuse(Errc::invalid_argument, "sqlite: the connection is null", {});
  if (sqlite3_get_autocommit(db) == 0) {
    refuse(Errc::invalid_argument, "sqlite: a transaction is open on this connection already",
           "enqueue(db, event) writes into the one that is open");
  }
  const int code = execute(db, "BEGIN IMMEDIATE");
  if (code != SQLITE_OK) {
    throw Exception(store::sqlite::map_error(db, code, "sqlite: begin"));
  }
  state_->db = db;
  state_->open = true;
}

Transaction::Transaction(Transaction&&) noexcept = default;

Transaction::~Transaction() { rollback(); }

void Transaction::commit() {
  if (!state_ || !state_->open) refuse(Errc::not_in_transaction, "sqlite: commit: the transaction has ended", {});
  state_->finish();
  if (sqlite3_get_autocommit(state_->db) != 0) {
    // SQLite itself rolls back after some errors (disk full, out of memory), or the application has ended it.
    state_->open = false;
    refuse(Errc::not_in_transaction, "sqlite: commit: the transaction was ended by somebody else",
           "look for an earlier error on this connection");
  }
  const int code = execute(state_->db, "COMMIT");
  if (code == SQLITE_OK) {
    state_->open = false;
    return;
  }
  Error error = store::sqlite::map_error(state_->db, code, "sqlite: commit");
  rollback();
  // The transaction is gone, so the call alone cannot be repeated.
  if (error.remedy == Remedy::retry_call) error.remedy = Remedy::retry_transaction;
  throw Exception(std::move(error));
}

void Transaction::rollback() noexcept {
  if (!state_) return;
  state_->finish();
  if (!std::exchange(state_->open, false)) return;
  if (sqlite3_get_autocommit(state_->db) == 0) (void)execute(state_->db, "ROLLBACK");
}

sqlite3* Transaction::handle() const noexcept { return state_ ? state_->db : nullptr; }

}  // namespace outbox::sqlite
