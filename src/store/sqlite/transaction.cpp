#include "store/sqlite/transaction.hpp"

#include <utility>

#include "base/error.hpp"
#include "store/sqlite/kept_statements.hpp"

namespace outbox::sqlite {
namespace {

using store::sqlite::KeptStatements;

Status run(sqlite3* db, KeptStatements::Which which, const char* what) {
  auto kept = KeptStatements::of(db);
  if (!kept) return pass(kept);
  return (*kept)->run(which, what);
}

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
  if (Status status = run(db, KeptStatements::Which::begin, "sqlite: begin"); !status) {
    throw Exception(std::move(status.error()));
  }
  state_->db = db;
  state_->open = true;
}

Transaction::Transaction(Transaction&&) noexcept = default;

Transaction::~Transaction() { rollback(); }

void Transaction::commit() {
  if (!state_ || !state_->open)
    refuse(Errc::not_in_transaction, "sqlite: commit: the transaction has ended", {});
  if (sqlite3_get_autocommit(state_->db) != 0) {
    // SQLite itself rolls back after some errors (disk full, out of memory), or the application has ended it.
    state_->open = false;
    refuse(Errc::not_in_transaction, "sqlite: commit: the transaction was ended by other code",
           "look for an earlier error on this connection");
  }
  Status status = run(state_->db, KeptStatements::Which::commit, "sqlite: commit");
  if (status) {
    state_->open = false;
    return;
  }
  Error error = std::move(status.error());
  rollback();
  // The transaction is gone, so the call alone cannot be repeated.
  if (error.remedy == Remedy::retry_call) error.remedy = Remedy::retry_transaction;
  throw Exception(std::move(error));
}

void Transaction::rollback() noexcept {
  if (!state_ || !std::exchange(state_->open, false)) return;
  if (sqlite3_get_autocommit(state_->db) != 0) return;
  (void)run(state_->db, KeptStatements::Which::rollback, "sqlite: roll back");
}

sqlite3* Transaction::handle() const noexcept { return state_ ? state_->db : nullptr; }

}  // namespace outbox::sqlite
