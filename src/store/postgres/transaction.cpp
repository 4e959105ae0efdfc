#include "store/postgres/transaction.hpp"

#include <sys/socket.h>

#include <string>
#include <utility>

#include "base/error.hpp"
#include "store/postgres/error_map.hpp"
#include "store/postgres/insert.hpp"
#include "store/postgres/ready.hpp"
#include "store/postgres/rows.hpp"

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

/// Only the end of the session can roll back now.
void shut(PGconn* connection) {
  if (const int socket = PQsocket(connection); socket >= 0) (void)::shutdown(socket, SHUT_RDWR);
}

[[noreturn]] void throw_ended(const char* what) {
  throw Exception(Error{.code = Errc::not_in_transaction,
                        .remedy = Remedy::fix,
                        .effect = Effect::none,
                        .message = std::string(what) + ": the transaction has ended already",
                        .hint = {},
                        .origin = {}});
}

}  // namespace

Transaction::Transaction(PGconn* connection, Isolation isolation)
    : state_(std::make_unique<State>()) {
  if (Status idle = store::postgres::check_idle(connection, "begin"); !idle)
    throw Exception(std::move(idle.error()));
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

Status Transaction::State::check(const char* what) const {
  if (Status status = store::postgres::check_ready(connection, what); !status || staged.empty())
    return status;
  return store::postgres::check_encoding(connection, what);
}

Status Transaction::State::write(Session::Ending ending) const {
  std::vector<Step> steps;
  for (const Group& group : staged) {
    store::postgres::plan_insert(group.outbox->queries, group.events, group.ids, steps);
  }
  if (steps.empty())
    return ending == Session::Ending::commit ? execute(connection, "COMMIT", "commit") : Status{};
  auto session = Session::of(connection);
  if (!session) return pass(session);
  return (*session)->run(connection, std::move(steps), ending, staged.front().outbox->queries);
}

void Transaction::flush() {
  if (!state_ || !state_->open) throw_ended("enqueue");
  Status status = state_->check("enqueue");
  if (status) status = state_->write(Session::Ending::stay);
  if (!status) throw Exception(std::move(status.error()));
  state_->staged.clear();
}

void Transaction::commit() {
  if (!state_ || !state_->open) throw_ended("commit");
  Status status = state_->check("commit");
  // Nothing was sent, and the caller can correct it.
  if (!status && status.error().code == Errc::invalid_argument)
    throw Exception(std::move(status.error()));
  if (status) status = state_->write(Session::Ending::commit);
  if (!status) {
    rollback();
    throw Exception(std::move(status.error()));
  }
  state_->open = false;
  state_->staged.clear();
}

void Transaction::rollback() noexcept {
  if (!state_ || !state_->open) return;
  PGconn* const connection = state_->connection;
  state_->open = false;
  state_->staged.clear();
  leave_pipeline(connection);
  const auto status = PQtransactionStatus(connection);
  if (status == PQTRANS_IDLE || status == PQTRANS_UNKNOWN) return;
  PQclear(PQexec(connection, "ROLLBACK"));
  if (PQtransactionStatus(connection) != PQTRANS_IDLE) shut(connection);
}

}  // namespace outbox::postgres
