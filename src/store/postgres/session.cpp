#include "store/postgres/session.hpp"

#include <libpq-events.h>

#include <memory>
#include <utility>

#include "base/error.hpp"

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

Result<Session*> Session::of(PGconn* connection) {
  if (auto* known = static_cast<Session*>(PQinstanceData(connection, on_event))) return known;
  auto session = std::make_unique<Session>();
  // Fails when it is already registered and only its data was missing.
  (void)PQregisterEventProc(connection, on_event, "outbox", nullptr);
  if (PQsetInstanceData(connection, on_event, session.get()) != 1) {
    return fail(Errc::internal, "enqueue: libpq refuses to keep data with the connection");
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

/// The rows of the steps, and of COMMIT.
Result<std::vector<Rows>> Session::exchange(PGconn* connection, std::vector<Step> steps,
                                            Ending ending, const EnqueueQueries& queries) {
  const bool probes = backend_ == Backend::unknown;
  if (probes) steps.push_back({.query = &queries.backend});
  if (ending == Ending::commit) steps.push_back({.query = &queries.commit});
  if (Status sent = pipeline_.send(connection, steps, backend_ == Backend::ours); !sent)
    return pass(sent);
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

}  // namespace outbox::store::postgres
