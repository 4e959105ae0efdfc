// The functions and classes that outbox/sqlite.hpp declares.
#include "store/enqueue.hpp"

#include <sqlite3.h>

#include <cstdlib>
#include <outbox/sqlite.hpp>
#include <utility>

#include "base/error.hpp"
#include "event/headers.hpp"
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
  Options options{};
  bool open{false};
  std::vector<Header> inherited{};  ///< The headers of inherit().
};

namespace {

using store::throw_if_failed;
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

/// After some errors SQLite has rolled back the whole transaction; then the transaction must be
/// repeated, not the call.
Status explain(sqlite3* db, Status status) {
  if (!status && sqlite3_get_autocommit(db) != 0 && status.error().remedy == Remedy::retry_call) {
    status.error().remedy = Remedy::retry_transaction;
  }
  return status;
}

/// Writes all events or none. The connection must be in a transaction.
Result<std::vector<EventId>> write(sqlite3* db, std::span<const Event> events,
                                   const EventLimits& limits) {
  OUTBOX_TRY(store::validate_all(events, limits));
  std::vector<EventId> ids = store::list_ids(events);
  if (events.empty()) return ids;
  OUTBOX_TRY(KeptStatements* const kept, KeptStatements::of(db));
  OUTBOX_TRY(sqlite3_stmt* const insert, kept->get(query::kInsertEvent));
  // When a single statement fails, SQLite itself undoes it.
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

Transaction::Transaction(sqlite3* db, const Options& options)
    : state_(new State{.db = db, .options = options}) {
  if (db == nullptr) refuse(Errc::invalid_argument, "sqlite: the connection is null", {});
  if (sqlite3_get_autocommit(db) == 0) {
    refuse(Errc::invalid_argument, "sqlite: a transaction is open on this connection already",
           "enqueue(db, event) writes into the one that is open");
  }
  throw_if_failed(run(db, query::kBegin, "sqlite: begin"));
  state_->open = true;
}

Transaction::Transaction(Transaction&&) noexcept = default;

Transaction::~Transaction() { rollback(); }

void Transaction::commit() {
  if (!state_ || !state_->open)
    refuse(Errc::not_in_transaction, "sqlite: commit: the transaction has ended", {});
  if (sqlite3_get_autocommit(state_->db) != 0) {
    // SQLite itself rolls back after some errors (disk full, out of memory), or the application has
    // ended the transaction.
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

sqlite3* Transaction::open_handle() const {
  if (!is_open()) throw Exception(not_in_transaction().value());
  return state_->db;
}

bool Transaction::is_open() const noexcept { return state_ && state_->open; }

namespace {

/// Whether another connection was in the way, so that the transaction can be repeated.
bool can_repeat(const std::exception& thrown, const store::Attempts& attempts) {
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
                             const RetryOptions& retry, const Options& options) {
  store::Attempts attempts(retry);
  for (;;) {
    bool repeatable = true;  // BEGIN and COMMIT leave nothing behind when they are refused
    try {
      Transaction tx(db, options);
      try {
        body(tx);
      } catch (...) {
        // If the body has ended the transaction, by whatever means, the transaction may have taken
        // effect.
        repeatable = tx.is_open() && sqlite3_get_autocommit(db) == 0;
        throw;
      }
      if (tx.is_open()) tx.commit();
      return;
    } catch (const std::exception& thrown) {
      if (!repeatable || !can_repeat(thrown, attempts) || !attempts.next()) throw;
    }
  }
}

namespace {

/// Runs one of our statements in the transaction of the connection. Returns the id in its row;
/// nullopt if there is no row.
std::optional<EventId> ask(sqlite3* db, std::string_view sql,
                           std::initializer_list<std::string_view> values) {
  if (db == nullptr) refuse(Errc::invalid_argument, "sqlite: the connection is null", {});
  if (sqlite3_get_autocommit(db) != 0) throw Exception(not_in_transaction().value());
  KeptStatements* const kept = value_or_throw(KeptStatements::of(db));
  store::sqlite::Statement statement(value_or_throw(kept->get(sql)));
  int index = 0;
  for (const std::string_view value : values) statement.bind(++index, value);
  throw_if_failed(explain(db, statement.next()));
  if (!statement.has_row()) return std::nullopt;
  return store::to_id(statement.bytes(0));
}

/// Claims the unique key for the task, which has an id. Returns the id of the task that holds the
/// key already; nullopt if the claim succeeded.
std::optional<EventId> claim_unique(sqlite3* db, const Task& task, const EventLimits& limits) {
  throw_if_failed(validate(task, limits));
  const std::string_view id = store::to_bytes(*task.id);
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

}  // namespace

std::vector<EventId> enqueue(sqlite3* db, std::span<const Event> events, const Options& options) {
  if (db == nullptr) refuse(Errc::invalid_argument, "sqlite: the connection is null", {});
  if (sqlite3_get_autocommit(db) != 0) throw Exception(not_in_transaction().value());
  return value_or_throw(write(db, events, options.limits));
}

EventId enqueue(sqlite3* db, const Event& event, const Options& options) {
  return enqueue(db, std::span(&event, 1), options).front();
}

EventId enqueue(sqlite3* db, Task task, const Options& options) {
  if (!task.id) task.id = EventId::generate();
  if (!task.unique_key.empty()) {
    if (const auto holder = claim_unique(db, task, options.limits)) return *holder;
  }
  return enqueue(db, to_event(std::move(task)), options);
}

bool receive(sqlite3* db, std::string_view consumer, std::string_view message_id) {
  throw_if_failed(event::check_required_name("consumer", consumer));
  throw_if_failed(event::check_required_name("message_id", message_id));
  const std::string now = std::to_string(store::sqlite::wall_us());
  (void)ask(db, query::kReceive, {consumer, message_id, now});
  return sqlite3_changes(db) > 0;
}

std::optional<TaskStatus> task_status(sqlite3* db, const EventId& id) {
  if (db == nullptr) refuse(Errc::invalid_argument, "sqlite: the connection is null", {});
  auto connection = store::sqlite::Connection::borrow(db);
  return value_or_throw(store::sqlite::read_task(connection, id));
}

std::vector<EventId> Transaction::enqueue(std::span<const Event> events) & {
  if (state_ == nullptr || state_->inherited.empty())
    return sqlite::enqueue(open_handle(), events, state_->options);
  std::vector<Event> taken(events.begin(), events.end());
  event::inherit(taken, state_->inherited);
  return sqlite::enqueue(open_handle(), taken, state_->options);
}

EventId Transaction::enqueue(const Event& event) & { return enqueue(std::span(&event, 1)).front(); }

EventId Transaction::enqueue(Task task) & {
  if (!task.id) task.id = EventId::generate();
  if (!task.unique_key.empty()) {
    if (const auto holder = claim_unique(open_handle(), task, state_->options.limits))
      return *holder;
  }
  return enqueue(to_event(std::move(task)));
}

void Transaction::inherit(std::vector<Header> headers) & { state_->inherited = std::move(headers); }

bool Transaction::receive(std::string_view consumer, std::string_view message_id) & {
  return sqlite::receive(open_handle(), consumer, message_id);
}

}  // namespace outbox::sqlite
