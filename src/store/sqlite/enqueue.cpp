// The classes of outbox/sqlite.hpp.
#include "store/enqueue.hpp"

#include <sqlite3.h>

#include <cstdlib>
#include <outbox/sqlite.hpp>
#include <utility>

#include "base/error.hpp"
#include "event/text_rules.hpp"
#include "store/sqlite/clock.hpp"
#include "store/sqlite/error_map.hpp"
#include "store/sqlite/event_insert.hpp"
#include "store/sqlite/kept_statements.hpp"
#include "store/sqlite/parts.hpp"
#include "store/sqlite/queries.hpp"
#include "store/sqlite/statement.hpp"
#include "store/text.hpp"

namespace outbox::sqlite {

struct Transaction::State {
  sqlite3* db{nullptr};
  bool open{false};
};

namespace {

using store::only;
using store::value_or_throw;
using store::sqlite::KeptStatements;
namespace query = store::sqlite::query;

Status run(sqlite3* db, std::string_view sql, const char* what) {
  OUTBOX_TRY(KeptStatements* const kept, KeptStatements::of(db));
  return kept->run(sql, what);
}

[[noreturn]] void refuse(Errc code, std::string message, std::string hint) {
  throw Exception(fail(code, std::move(message), std::move(hint)).value());
}

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
  OUTBOX_TRY(store::validate_all(events, limits));
  std::vector<EventId> ids = store::ids_of(events);
  if (events.empty()) return ids;
  OUTBOX_TRY(KeptStatements* const kept, KeptStatements::of(db));
  OUTBOX_TRY(sqlite3_stmt* const insert, kept->get(query::kInsertEvent));
  // A single statement is undone by SQLite itself when it fails.
  const bool several = events.size() > 1;
  if (several) {
    const int code = execute(db, query::kSavepoint);
    if (code != SQLITE_OK) return fail(store::sqlite::map_error(db, code, "sqlite: enqueue"));
  }
  Status status = explain(db, store::sqlite::insert_events(insert, events, ids));
  if (!status && several && sqlite3_get_autocommit(db) == 0)
    (void)execute(db, query::kRollbackToSavepoint);
  if (several && sqlite3_get_autocommit(db) == 0) (void)execute(db, query::kReleaseSavepoint);
  if (!status) return pass(status);
  return ids;
}

}  // namespace

Transaction::Transaction(sqlite3* db) : state_(std::make_unique<State>()) {
  if (db == nullptr) refuse(Errc::invalid_argument, "sqlite: the connection is null", {});
  if (sqlite3_get_autocommit(db) == 0) {
    refuse(Errc::invalid_argument, "sqlite: a transaction is open on this connection already",
           "enqueue(db, event) writes into the one that is open");
  }
  if (Status status = run(db, query::kBegin, "sqlite: begin"); !status) {
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
  Status status = run(state_->db, query::kCommit, "sqlite: commit");
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
  (void)run(state_->db, query::kRollback, "sqlite: roll back");
}

sqlite3* Transaction::handle() const noexcept { return state_ ? state_->db : nullptr; }

bool Transaction::is_open() const noexcept { return state_ && state_->open; }

namespace {

/// Another connection was in the way.
bool is_conflict_of(const std::exception& thrown, const store::Attempts& attempts) {
  const auto* const ours = dynamic_cast<const Exception*>(&thrown);
  if (ours == nullptr) return attempts.calls_conflict(thrown);
  constexpr std::string_view kOrigin = "sqlite:";
  const std::string& origin = ours->error().origin;
  if (!origin.starts_with(kOrigin)) return false;
  return (std::atoi(origin.c_str() + kOrigin.size()) & 0xff) == SQLITE_BUSY;
}

}  // namespace

void check(sqlite3* db, int code, std::string_view what) {
  if (code == SQLITE_OK || code == SQLITE_ROW || code == SQLITE_DONE) return;
  throw Exception(store::sqlite::map_error(db, code, what));
}

void detail::run_transaction(sqlite3* db, const std::function<void(Transaction&)>& body,
                             const RetryOptions& options) {
  store::Attempts attempts(options);
  for (;;) {
    bool repeatable = true;  // BEGIN and COMMIT leave nothing behind when they are refused
    try {
      Transaction tx(db);
      try {
        body(tx);
      } catch (...) {
        // Where f has ended the transaction, by whatever means, its effect may be there.
        repeatable = tx.is_open() && sqlite3_get_autocommit(db) == 0;
        throw;
      }
      if (tx.is_open()) tx.commit();
      return;
    } catch (const std::exception& thrown) {
      if (!repeatable || !is_conflict_of(thrown, attempts) || !attempts.next()) throw;
    }
  }
}

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

namespace {

/// Runs one of our statements in the transaction of the connection. The id of its row, or none.
std::optional<EventId> ask(sqlite3* db, std::string_view sql,
                           std::initializer_list<std::string_view> values) {
  if (db == nullptr) refuse(Errc::invalid_argument, "sqlite: the connection is null", {});
  if (sqlite3_get_autocommit(db) != 0) throw Exception(not_in_transaction().value());
  KeptStatements* const kept = value_or_throw(KeptStatements::of(db));
  store::sqlite::Statement statement(value_or_throw(kept->get(sql)));
  int index = 0;
  for (const std::string_view value : values) statement.bind(++index, value);
  if (Status status = explain(db, statement.next()); !status)
    throw Exception(std::move(status.error()));
  if (!statement.has_row()) return std::nullopt;
  return store::id_of(statement.bytes(0));
}

void check(const char* field, std::string_view text) {
  if (Status status = event::check_required_name(field, text); !status)
    throw Exception(std::move(status.error()));
}

}  // namespace

bool Outbox::receive(sqlite3* db, std::string_view consumer, std::string_view message_id) const {
  check("consumer", consumer);
  check("message_id", message_id);
  const std::string now = std::to_string(store::sqlite::wall_us());
  (void)ask(db, query::kReceive, {consumer, message_id, now});
  return sqlite3_changes(db) > 0;
}

bool Outbox::receive(Transaction& tx, std::string_view consumer,
                     std::string_view message_id) const {
  return receive(tx.handle(), consumer, message_id);
}

std::optional<EventId> Outbox::claim_unique(sqlite3* db, const Task& task) const {
  if (Status status = validate(task, options_.limits); !status)
    throw Exception(std::move(status.error()));
  const std::string_view id = store::bytes_of(*task.id);
  (void)ask(db, query::kTakeUnique, {task.queue, task.unique_key, id});
  if (sqlite3_changes(db) > 0) return std::nullopt;
  if (task.on_conflict == OnConflict::replace) {
    const std::string now = std::to_string(store::sqlite::wall_us());
    (void)ask(db, query::kCancelReplaced, {task.queue, task.unique_key, id, now});
    (void)ask(db, query::kReplaceUnique, {task.queue, task.unique_key, id});
    return std::nullopt;
  }
  const auto holder = ask(db, query::kUniqueTask, {task.queue, task.unique_key});
  return store::holder_of_key(holder.value(), task);
}

std::optional<EventId> Outbox::claim_unique(Transaction& tx, const Task& task) const {
  return claim_unique(tx.handle(), task);
}

Result<std::optional<TaskStatus>> Outbox::try_task(sqlite3* db, const EventId& id) const {
  if (db == nullptr) return fail(Errc::invalid_argument, "sqlite: the connection is null");
  auto connection = store::sqlite::Connection::borrow(db);
  return store::sqlite::read_task(connection, id);
}

std::optional<TaskStatus> Outbox::task(sqlite3* db, const EventId& id) const {
  return value_or_throw(try_task(db, id));
}

std::optional<TaskStatus> Outbox::task(Transaction& tx, const EventId& id) const {
  return task(tx.handle(), id);
}

}  // namespace outbox::sqlite
