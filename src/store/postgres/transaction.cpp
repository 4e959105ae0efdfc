// The class Transaction of outbox/postgres.hpp, and with_transaction().
#include <libpq-fe.h>
#include <sys/socket.h>

#include <memory>
#include <outbox/postgres.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "pg/identifier.hpp"
#include "store/enqueue.hpp"
#include "store/postgres/error_map.hpp"
#include "store/postgres/insert.hpp"
#include "store/postgres/outbox_state.hpp"

namespace outbox::postgres {

using store::postgres::check_encoding;
using store::postgres::check_ready;
using store::postgres::Rows;
using store::postgres::Session;
using store::postgres::Step;

namespace {

const char* begin_statement(Isolation isolation) {
  switch (isolation) {
    case Isolation::database_default: return "BEGIN";
    case Isolation::read_committed: return "BEGIN ISOLATION LEVEL READ COMMITTED";
    case Isolation::repeatable_read: return "BEGIN ISOLATION LEVEL REPEATABLE READ";
    case Isolation::serializable: return "BEGIN ISOLATION LEVEL SERIALIZABLE";
  }
  return "BEGIN";
}

Status execute(PGconn* connection, const char* sql, const char* what) {
  const Rows result(PQexec(connection, sql));
  if (PQresultStatus(result.native()) == PGRES_COMMAND_OK) return {};
  return fail(store::postgres::map_result(result.native(), connection, what));
}

/// Pipeline mode cannot be left before the results of what was sent are read.
void leave_pipeline(PGconn* connection) {
  if (PQpipelineStatus(connection) == PQ_PIPELINE_OFF || PQpipelineSync(connection) != 1) return;
  // A null separates the results of one command from those of the next; two mean the end.
  for (int nulls = 0; nulls < 2 && PQexitPipelineMode(connection) != 1;) {
    PGresult* const result = PQgetResult(connection);
    const auto status = PQresultStatus(result);
    nulls = result == nullptr ? nulls + 1 : 0;
    PQclear(result);
    if (status == PGRES_COPY_IN || status == PGRES_COPY_OUT || status == PGRES_COPY_BOTH) return;
  }
}

/// Closes the socket, since only the end of the session can roll the transaction back now.
void shut(PGconn* connection) {
  if (const int socket = PQsocket(connection); socket >= 0) (void)::shutdown(socket, SHUT_RDWR);
}

/// Runs `sql`, which is BEGIN and may ask something else in the same round trip. Returns the last
/// result.
Rows begin(PGconn* connection, const std::string& sql) {
  if (Status idle = store::postgres::check_idle(connection, "begin"); !idle)
    throw Exception(std::move(idle.error()));
  Rows result(PQexec(connection, sql.c_str()));
  const auto status = PQresultStatus(result.native());
  if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK) return result;
  Error error = store::postgres::map_result(result.native(), connection, "begin");
  error.effect = Effect::none;
  if (PQtransactionStatus(connection) == PQTRANS_INERROR) PQclear(PQexec(connection, "ROLLBACK"));
  // A standby gives out no transaction ids, so the caller needs the primary.
  if (error.origin == "pg:55000")
    error = store::postgres::map_sqlstate("25006", "begin", "the server is a standby");
  throw Exception(std::move(error));
}

[[noreturn]] void throw_ended(const char* what) {
  throw Exception(
      fail(Errc::not_in_transaction, std::string(what) + ": the transaction has ended already")
          .value());
}

}  // namespace

Transaction::Transaction(PGconn* connection, const Options& options, Isolation isolation)
    : state_(new State{.connection = connection,
                       .target = find_target(options.schema),
                       .limits = options.limits}) {
  (void)begin(connection, begin_statement(isolation));
  state_->open = true;
}

Transaction::Transaction(std::unique_ptr<State> state) : state_(std::move(state)) {}

Transaction::Transaction(Transaction&&) noexcept = default;

Transaction::~Transaction() { rollback(); }

PGconn* Transaction::connection() const noexcept { return state_ ? state_->connection : nullptr; }

std::string_view Transaction::id() const noexcept {
  return state_ ? std::string_view(state_->id) : std::string_view();
}

bool Transaction::is_open() const noexcept { return state_ && state_->open; }

Status Transaction::State::check(const char* what) const {
  Status status = check_ready(connection, what);
  return status && !events.empty() ? check_encoding(connection, what) : status;
}

Status Transaction::State::write(Session::Ending ending) const {
  if (events.empty())
    return ending == Session::Ending::commit ? execute(connection, "COMMIT", "commit") : Status{};
  std::vector<Step> steps;
  store::postgres::plan_insert(target.queries, events, ids, steps);
  OUTBOX_TRY(Session* const session,
             Session::of(connection, ending == Session::Ending::commit ? "commit" : "enqueue"));
  return session->run(connection, std::move(steps), ending, target.queries);
}

void Transaction::State::forget() {
  events.clear();
  ids.clear();
}

void Transaction::flush() {
  if (!state_ || !state_->open) throw_ended("enqueue");
  Status status = state_->check("enqueue");
  if (status) status = state_->write(Session::Ending::stay);
  if (!status) throw Exception(std::move(status.error()));
  state_->forget();
}

void Transaction::commit() {
  if (!state_ || !state_->open) throw_ended("commit");
  Status status = state_->check("commit");
  // Nothing was sent, and the caller can correct the mistake.
  if (!status && status.error().code == Errc::invalid_argument)
    throw Exception(std::move(status.error()));
  if (status) status = state_->write(Session::Ending::commit);
  if (!status) {
    rollback();
    throw Exception(std::move(status.error()));
  }
  state_->open = false;
  state_->forget();
}

void Transaction::rollback() noexcept {
  if (!state_ || !state_->open) return;
  PGconn* const connection = state_->connection;
  state_->open = false;
  state_->forget();
  leave_pipeline(connection);
  const auto status = PQtransactionStatus(connection);
  if (status == PQTRANS_IDLE || status == PQTRANS_UNKNOWN) return;
  PQclear(PQexec(connection, "ROLLBACK"));
  if (PQtransactionStatus(connection) != PQTRANS_IDLE) shut(connection);
}

// ---- with_transaction()

namespace {

constexpr std::string_view kOrigin = "pg:";

/// Whether the whole transaction can be repeated without anybody changing anything before.
bool can_repeat(const Error& error) {
  const std::string_view origin = error.origin;
  if (!origin.starts_with(kOrigin) || error.effect != Effect::none) return false;
  const std::string_view state = origin.substr(kOrigin.size());
  // The other two say that our prepared statements are gone, or exist already.
  return is_conflict(state) || state == "26000" || state == "42P05";
}

bool can_repeat(const std::exception& thrown, const store::Attempts& attempts) {
  if (const auto* ours = dynamic_cast<const Exception*>(&thrown)) return can_repeat(ours->error());
  return attempts.calls_conflict(thrown);
}

Error in_doubt(Error error, std::string_view transaction) {
  error.message = "the outcome of transaction " + std::string(transaction) +
                  " is unknown: the connection was lost during COMMIT (" + error.message + ")";
  error.hint = "ask outbox::postgres::find_fate() on a new connection; do not just do it again";
  return error;
}

}  // namespace

InDoubt::InDoubt(Error error, std::string transaction, std::optional<Mark> mark)
    : Exception(in_doubt(std::move(error), transaction)),
      transaction_(std::move(transaction)),
      mark_(std::move(mark)) {}

bool is_conflict(std::string_view sqlstate) noexcept {
  return sqlstate == "40001" || sqlstate == "40P01";
}

void check(PGconn* connection, const PGresult* result, std::string_view what) {
  switch (PQresultStatus(result)) {
    case PGRES_FATAL_ERROR:
    case PGRES_BAD_RESPONSE:
    case PGRES_PIPELINE_ABORTED:
      throw Exception(store::postgres::map_result(result, connection, what));
    default: return;
  }
}

void detail::run_transaction(PGconn* connection, const std::function<void(Transaction&)>& body,
                             const TransactionOptions& options) {
  store::Attempts attempts(options.retry);
  std::string sql(begin_statement(options.isolation));
  if (options.idle_limit) {
    sql += "; SELECT pg_catalog.set_config('idle_in_transaction_session_timeout', '" +
           std::to_string(options.idle_limit->count()) +
           "', true) WHERE pg_catalog.current_setting('idle_in_transaction_session_timeout') = '0'";
  }
  sql += "; SELECT pg_catalog.pg_current_xact_id()::text";
  const Target& target = find_target(options.outbox.schema);
  for (;;) {
    Transaction tx(std::unique_ptr<Transaction::State>(
        new Transaction::State{.connection = connection,
                               .target = target,
                               .limits = options.outbox.limits,
                               .open = true,
                               .id = PQgetvalue(begin(connection, sql).native(), 0, 0)}));
    try {
      body(tx);
    } catch (const std::exception& thrown) {
      // If the body has ended the transaction, by whatever means, the transaction may have taken
      // effect.
      const auto status = PQtransactionStatus(connection);
      const bool ours = tx.is_open() && (status == PQTRANS_INTRANS || status == PQTRANS_INERROR);
      if (!ours || !can_repeat(thrown, attempts)) throw;
      tx.rollback();
      if (!attempts.next()) throw;
      continue;
    }
    if (!tx.is_open()) return;
    try {
      tx.commit();
      return;
    } catch (const Exception& thrown) {
      if (thrown.error().effect == Effect::unknown)
        throw InDoubt(thrown.error(), tx.state_->id, tx.state_->mark);
      if (!can_repeat(thrown.error()) || !attempts.next()) throw;
    }
  }
}

namespace {

constexpr const char* kAsk = "ask for the outcome of a transaction";

/// The only value of a statement's result; empty if it is null.
std::string query_value(PGconn* connection, const std::string& sql,
                        const std::vector<std::string>& values) {
  std::vector<const char*> texts;
  texts.reserve(values.size());
  for (const std::string& value : values) texts.push_back(value.c_str());
  const Rows rows(PQexecParams(connection, sql.c_str(), static_cast<int>(texts.size()), nullptr,
                               texts.data(), nullptr, nullptr, 0));
  if (PQresultStatus(rows.native()) == PGRES_TUPLES_OK) return PQgetvalue(rows.native(), 0, 0);
  Error error = store::postgres::map_result(rows.native(), connection, kAsk);
  error.effect = Effect::none;
  throw Exception(std::move(error));
}

/// Returns "committed", "aborted" or "in progress"; empty if the server has forgotten so old a
/// transaction.
std::string xact_status(PGconn* connection, const std::string& transaction) {
  if (query_value(connection, "SELECT pg_catalog.pg_is_in_recovery()", {}) != "f")
    throw Exception(store::postgres::map_sqlstate("25006", kAsk, "the server is a standby"));
  try {
    return query_value(connection, "SELECT pg_catalog.pg_xact_status($1::xid8)", {transaction});
  } catch (const Exception& thrown) {
    // The id is ahead of those that the server has given out. A crash or a failover has lost the
    // transaction, so it had not committed.
    if (thrown.error().origin == "pg:22023") return "aborted";
    throw;
  }
}

}  // namespace

Fate find_fate(PGconn* connection, const InDoubt& doubt) {
  // Outside of any transaction: each statement sees what has ended before it.
  if (Status idle = store::postgres::check_idle(connection, kAsk); !idle)
    throw Exception(std::move(idle.error()));
  const std::string status = xact_status(connection, doubt.transaction());
  if (status == "in progress") return Fate::in_progress;
  if (status == "aborted") return Fate::rolled_back;
  const auto& mark = doubt.mark();
  if (mark && query_value(connection,
                          "SELECT EXISTS (SELECT FROM " + pg::quote_identifier(mark->schema) +
                              ".event WHERE xid = $1::xid8 AND id = $2::uuid)",
                          {doubt.transaction(), mark->event.str()}) == "t")
    return Fate::committed;
  throw Exception(fail(Errc::not_found,
                       std::string(kAsk) + ": transaction " + doubt.transaction() +
                           (mark ? " is not told by its event, which is not in the log (any more)"
                                 : " has enqueued nothing by which it is known"),
                       "look for rows of yours that it wrote")
                      .value());
}

}  // namespace outbox::postgres
