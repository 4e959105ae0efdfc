#include "store/common/enqueue.hpp"

#include <outbox/sqlite.hpp>
#include <utility>

#include "base/error.hpp"
#include "store/sqlite/error_map.hpp"
#include "store/sqlite/event_insert.hpp"
#include "store/sqlite/kept_statements.hpp"
#include "store/sqlite/queries.hpp"
#include "store/sqlite/transaction.hpp"

namespace outbox::sqlite {
namespace {

using store::only;
using store::value_or_throw;
using store::sqlite::KeptStatements;
namespace query = store::sqlite::query;

int execute(sqlite3* db, std::string_view sql) {
  return sqlite3_exec(db, sql.data(), nullptr, nullptr, nullptr);
}

tl::unexpected<Error> not_in_transaction() {
  return fail(Errc::not_in_transaction, "sqlite: enqueue outside a transaction",
              "BEGIN IMMEDIATE first, or use outbox::sqlite::Transaction");
}

/// After some errors SQLite has rolled back the whole transaction: then it must be redone, not the call.
Status explain(sqlite3* db, Status status) {
  if (!status && sqlite3_get_autocommit(db) != 0 && status.error().remedy == Remedy::retry_call) {
    status.error().remedy = Remedy::retry_transaction;
  }
  return status;
}

/// The connection is in a transaction. All or none.
Result<std::vector<EventId>> write(sqlite3* db, std::span<const Event> events,
                                   const EventLimits& limits) {
  if (Status status = store::validate_all(events, limits); !status) return pass(status);
  std::vector<EventId> ids = store::ids_of(events);
  if (events.empty()) return ids;
  auto kept = KeptStatements::of(db);
  if (!kept) return pass(kept);
  auto insert = (*kept)->get(KeptStatements::Which::insert);
  if (!insert) return pass(insert);
  // A single statement is undone by SQLite itself when it fails.
  const bool several = events.size() > 1;
  if (several) {
    const int code = execute(db, query::kSavepoint);
    if (code != SQLITE_OK) return fail(store::sqlite::map_error(db, code, "sqlite: enqueue"));
  }
  Status status = explain(db, store::sqlite::insert_events(*insert, events, ids));
  if (!status && several && sqlite3_get_autocommit(db) == 0)
    (void)execute(db, query::kRollbackToSavepoint);
  if (several && sqlite3_get_autocommit(db) == 0) (void)execute(db, query::kReleaseSavepoint);
  if (!status) return pass(status);
  return ids;
}

}  // namespace

Result<std::vector<EventId>> Outbox::try_enqueue_many(sqlite3* db,
                                                      std::span<const Event> events) const {
  if (db == nullptr) return fail(Errc::invalid_argument, "sqlite: the connection is null");
  if (sqlite3_get_autocommit(db) != 0) return not_in_transaction();
  return write(db, events, options_.limits);
}

Result<std::vector<EventId>> Outbox::try_enqueue_many(Transaction& tx,
                                                      std::span<const Event> events) const {
  const Transaction::State* state = tx.state_.get();
  if (state == nullptr || !state->open) return not_in_transaction();
  return try_enqueue_many(state->db, events);
}

Result<EventId> Outbox::try_enqueue(sqlite3* db, const Event& event) const {
  return only(try_enqueue_many(db, std::span(&event, 1)));
}

Result<EventId> Outbox::try_enqueue(Transaction& tx, const Event& event) const {
  return only(try_enqueue_many(tx, std::span(&event, 1)));
}

EventId Outbox::enqueue(sqlite3* db, const Event& event) const {
  return value_or_throw(try_enqueue(db, event));
}

EventId Outbox::enqueue(Transaction& tx, const Event& event) const {
  return value_or_throw(try_enqueue(tx, event));
}

std::vector<EventId> Outbox::enqueue_many(sqlite3* db, std::span<const Event> events) const {
  return value_or_throw(try_enqueue_many(db, events));
}

std::vector<EventId> Outbox::enqueue_many(Transaction& tx, std::span<const Event> events) const {
  return value_or_throw(try_enqueue_many(tx, events));
}

}  // namespace outbox::sqlite
