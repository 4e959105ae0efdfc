#include "store/postgres/transaction.hpp"

#include <string>
#include <utility>

#include "base/error.hpp"
#include "store/postgres/error_map.hpp"
#include "store/postgres/rows.hpp"
#include "store/postgres/session.hpp"

namespace outbox::postgres {
namespace {

using store::postgres::Rows;
using store::postgres::Session;
using store::postgres::Step;

const char* begin_of(Isolation isolation) {
  switch (isolation) {
    case Isolation::database_default: return "BEGIN";
    case Isolation::read_committed: return "BEGIN ISOLATION LEVEL READ COMMITTED";
    case Isolation::repeatable_read: return "BEGIN ISOLATION LEVEL REPEATABLE READ";
    case Isolation::serializable: return "BEGIN ISOLATION LEVEL SERIALIZABLE";
  }
  return "BEGIN";
}

Status execute(PGconn* connection, const char* sql, const char* what) {
  PGresult* const result = PQexec(connection, sql);
  const Rows owner(result);
  if (PQresultStatus(result) == PGRES_COMMAND_OK) return {};
  return fail(store::postgres::map_result(result, connection, what));
}

/// What must hold before COMMIT.
Status check_open(PGconn* connection) {
  switch (PQtransactionStatus(connection)) {
    case PQTRANS_INTRANS: return {};
    case PQTRANS_INERROR:
      return fail(Error{.code = Errc::unavailable,
                        .remedy = Remedy::retry_transaction,
                        .effect = Effect::none,
                        .message = "commit: a statement of the transaction had failed",
                        .hint = {},
                        .origin = {}});
    case PQTRANS_ACTIVE:
      return fail(Errc::invalid_argument, "commit: a command is still under way on the connection",
                  "read its results to the end first");
    case PQTRANS_IDLE:
      return fail(Errc::not_in_transaction, "commit: the transaction was ended by somebody else",
                  "end it with commit() or rollback() only");
    case PQTRANS_UNKNOWN: break;
  }
  Error lost = store::postgres::lost_connection(connection, "commit");
  lost.effect = Effect::none;  // COMMIT was not sent yet
  return fail(std::move(lost));
}

Status write_and_commit(PGconn* connection, std::span<const Step> steps,
                        const store::postgres::Queries& queries) {
  auto session = Session::of(connection);
  if (!session) return pass(session);
  return (*session)->run(connection, steps, Session::Ending::commit, queries);
}

Status commit_alone(PGconn* connection) {
  PGresult* const result = PQexec(connection, "COMMIT");
  const Rows owner(result);
  if (PQresultStatus(result) != PGRES_COMMAND_OK)
    return fail(store::postgres::map_result(result, connection, "commit"));
  return {};
}

}  // namespace

Transaction::Transaction(PGconn* connection, Isolation isolation)
    : state_(std::make_unique<State>()) {
  const auto refuse = [](Errc code, const char* message, const char* hint) {
    throw Exception(Error{.code = code,
                          .remedy = Remedy::fix,
                          .effect = Effect::none,
                          .message = message,
                          .hint = hint,
                          .origin = {}});
  };
  if (connection == nullptr) refuse(Errc::invalid_argument, "begin: the connection is null", "");
  if (PQpipelineStatus(connection) != PQ_PIPELINE_OFF) {
    refuse(Errc::invalid_argument, "begin: the connection is in pipeline mode",
           "leave it with PQexitPipelineMode first");
  }
  const auto status = PQtransactionStatus(connection);
  if (status == PQTRANS_INTRANS || status == PQTRANS_INERROR) {
    refuse(Errc::invalid_argument, "begin: a transaction is open on this connection already",
           "give the connection to enqueue() instead");
  }
  if (Status begun = execute(connection, begin_of(isolation), "begin"); !begun) {
    begun.error().effect = Effect::none;
    throw Exception(std::move(begun.error()));
  }
  state_->connection = connection;
  state_->open = true;
}

Transaction::Transaction(Transaction&&) noexcept = default;

Transaction::~Transaction() { rollback(); }

PGconn* Transaction::connection() const noexcept { return state_ ? state_->connection : nullptr; }

void Transaction::commit() {
  if (!state_ || !state_->open) {
    throw Exception(Error{.code = Errc::not_in_transaction,
                          .remedy = Remedy::fix,
                          .effect = Effect::none,
                          .message = "commit: the transaction has ended already",
                          .hint = {},
                          .origin = {}});
  }
  Status status = check_open(state_->connection);
  if (status) {
    std::vector<Step> steps;
    for (const State::Group& group : state_->staged) {
      store::postgres::plan_insert(group.outbox->queries, group.events, group.ids, steps);
    }
    status = steps.empty() ? commit_alone(state_->connection)
                           : write_and_commit(state_->connection, steps,
                                              state_->staged.front().outbox->queries);
  }
  if (!status) {
    rollback();
    throw Exception(std::move(status.error()));
  }
  state_->open = false;
  state_->staged.clear();
}

void Transaction::rollback() noexcept {
  if (!state_ || !state_->open) return;
  state_->open = false;
  state_->staged.clear();
  const auto status = PQtransactionStatus(state_->connection);
  if (status == PQTRANS_IDLE || status == PQTRANS_UNKNOWN) return;
  PQclear(PQexec(state_->connection, "ROLLBACK"));
}

}  // namespace outbox::postgres
