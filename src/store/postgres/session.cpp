#include "store/postgres/session.hpp"

#include <libpq-events.h>

#include <memory>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "pg/errors.hpp"

namespace outbox::store::postgres {
namespace {

int on_event(PGEventId event, void* info, void* /*pass_through*/) {
  if (event == PGEVT_CONNRESET) {
    PGconn* const connection = static_cast<PGEventConnReset*>(info)->conn;
    if (auto* session = static_cast<Session*>(PQinstanceData(connection, on_event)))
      session->forget();
  } else if (event == PGEVT_CONNDESTROY) {
    PGconn* const connection = static_cast<PGEventConnDestroy*>(info)->conn;
    delete static_cast<Session*>(PQinstanceData(connection, on_event));
    PQsetInstanceData(connection, on_event, nullptr);
  }
  return 1;
}

}  // namespace

Result<Session*> Session::of(PGconn* connection, std::string_view what) {
  if (auto* known = static_cast<Session*>(PQinstanceData(connection, on_event))) return known;
  auto session = std::make_unique<Session>();
  // It fails when it is registered already and only its data is missing; that is no error.
  (void)PQregisterEventProc(connection, on_event, "outbox", nullptr);
  if (PQsetInstanceData(connection, on_event, session.get()) != 1) {
    return fail(Errc::internal,
                pg::in_words(what, "libpq refuses to keep data with the connection"));
  }
  return session.release();
}

Status Session::run(PGconn* connection, std::vector<Step> steps, Ending ending,
                    const EnqueueQueries& queries) {
  OUTBOX_TRY(const auto rows, exchange(connection, std::move(steps), ending, queries));
  return ending == Ending::commit ? check_commit(rows.back()) : Status{};
}

Result<std::vector<Rows>> Session::read(PGconn* connection, std::vector<Step> steps,
                                        const EnqueueQueries& queries) {
  auto rows = exchange(connection, std::move(steps), Ending::stay, queries);
  if (!rows) rows.error().effect = Effect::none;
  return rows;
}

/// Returns the rows of the steps, and of COMMIT.
Result<std::vector<Rows>> Session::exchange(PGconn* connection, std::vector<Step> steps,
                                            Ending ending, const EnqueueQueries& queries) {
  const bool probes = backend_ == Backend::unknown;
  if (probes) steps.push_back({.query = &queries.backend});
  if (ending == Ending::commit) steps.push_back({.query = &queries.commit});
  OUTBOX_TRY(pipeline_.send(connection, steps, backend_ == Backend::ours));
  auto rows = pipeline_.collect(connection, steps, std::nullopt);
  if (!rows) {
    // Our prepared statements were discarded (DISCARD ALL): this connection uses none from now on.
    if (blames_prepared(rows.error())) backend_ = Backend::shared;
    return rows;
  }
  if (probes) {
    const auto backend = rows->end() - (ending == Ending::commit ? 2 : 1);
    backend_ = backend->int4(0, 0) == PQbackendPID(connection) ? Backend::ours : Backend::shared;
    rows->erase(backend);
  }
  return rows;
}

namespace {

/// Fails if the connection is in pipeline mode, has a command under way or is lost.
Status check_free(PGconn* connection, std::string_view what) {
  if (connection == nullptr)
    return fail(Errc::invalid_argument, pg::in_words(what, "the connection is null"));
  if (PQpipelineStatus(connection) != PQ_PIPELINE_OFF) {
    return fail(Errc::invalid_argument, pg::in_words(what, "the connection is in pipeline mode"),
                "leave it with PQexitPipelineMode first");
  }
  const auto status = PQtransactionStatus(connection);
  if (status == PQTRANS_ACTIVE) {
    return fail(Errc::invalid_argument,
                pg::in_words(what, "a command is still under way on the connection"),
                "read its results to the end first");
  }
  if (status != PQTRANS_UNKNOWN) return {};
  Error error = pg::lost_connection(connection, what);
  error.effect = Effect::none;  // nothing was sent yet
  return fail(std::move(error));
}

}  // namespace

tl::unexpected<Error> not_in_transaction(std::string_view what) {
  return fail(Errc::not_in_transaction, pg::in_words(what, "outside a transaction"),
              "BEGIN first, or use outbox::postgres::Transaction; end that one with commit() or "
              "rollback() only");
}

Status check_encoding(PGconn* connection, std::string_view what) {
  // A lost connection has no encoding; the statement will report the loss.
  const int encoding = PQclientEncoding(connection);
  const char* const name = encoding < 0 ? nullptr : pg_encoding_to_char(encoding);
  const std::string_view known = name == nullptr ? std::string_view("UTF8") : name;
  for (const std::string_view good : {"UTF8", "SQL_ASCII"}) {
    if (known == good) return {};
  }
  return fail(Errc::invalid_argument,
              pg::in_words(what, "the connection's client_encoding is " + std::string(known) +
                                     ", and the texts of events are UTF-8"),
              "PQsetClientEncoding(connection, \"UTF8\"), or PGCLIENTENCODING=UTF8");
}

Status check_idle(PGconn* connection, std::string_view what) {
  Status free = check_free(connection, what);
  if (!free || PQtransactionStatus(connection) == PQTRANS_IDLE) return free;
  return fail(Errc::invalid_argument,
              pg::in_words(what, "a transaction is open on this connection already"),
              "give the connection to enqueue() instead");
}

Status check_ready(PGconn* connection, std::string_view what) {
  Status open = check_open(connection, what);
  if (!open || PQtransactionStatus(connection) == PQTRANS_INTRANS) return open;
  return not_in_transaction(what);
}

Status check_open(PGconn* connection, std::string_view what) {
  Status free = check_free(connection, what);
  if (!free || PQtransactionStatus(connection) == PQTRANS_IDLE ||
      PQtransactionStatus(connection) == PQTRANS_INTRANS)
    return free;
  return fail(Errc::unavailable, Remedy::retry_transaction,
              pg::in_words(what, "a statement of the transaction had failed"));
}

}  // namespace outbox::store::postgres
