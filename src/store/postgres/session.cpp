#include "store/postgres/session.hpp"

#include <libpq-events.h>

#include <memory>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "store/postgres/error_map.hpp"
#include "store/postgres/rows.hpp"

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

struct Arguments {
  std::vector<const char*> values;
  std::vector<int> lengths;
  std::vector<int> formats;

  explicit Arguments(const Params& params) {
    values.reserve(params.size());
    lengths.reserve(params.size());
    formats.reserve(params.size());
    for (const Param& param : params) {
      values.push_back(param.data());
      lengths.push_back(param.size());
      formats.push_back(param.format());
    }
  }
};

/// Leaves pipeline mode whatever happens; when that is not possible the connection is lost anyway.
class Pipeline {
 public:
  explicit Pipeline(PGconn* connection)
      : connection_(connection), entered_(PQenterPipelineMode(connection) == 1) {}
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;
  Pipeline(Pipeline&&) = delete;
  Pipeline& operator=(Pipeline&&) = delete;
  ~Pipeline() {
    if (entered_) PQexitPipelineMode(connection_);
  }
  [[nodiscard]] bool entered() const { return entered_; }

 private:
  PGconn* connection_;
  bool entered_;
};

}  // namespace

Result<Session*> Session::of(PGconn* connection) {
  if (auto* known = static_cast<Session*>(PQinstanceData(connection, on_event))) return known;
  auto session = std::make_unique<Session>();
  // Fails when it is registered already: fine, then only its data was missing.
  (void)PQregisterEventProc(connection, on_event, "outbox", nullptr);
  if (PQsetInstanceData(connection, on_event, session.get()) != 1) {
    return fail(Errc::internal, "enqueue: libpq refuses to keep data with the connection");
  }
  return session.release();
}

void Session::forget() {
  backend_ = Backend::unknown;
  prepared_.clear();
}

Status Session::run(PGconn* connection, std::span<const Step> steps, Ending ending,
                    const Queries& queries) {
  const Pipeline pipeline(connection);
  if (!pipeline.entered()) {
    return fail(Errc::invalid_argument, "enqueue: a command is still under way on the connection",
                "read its results to the end first");
  }
  std::vector<Expected> expected;
  if (Status status = send_all(connection, steps, ending, queries, expected); !status)
    return status;
  return collect(connection, expected, queries);
}

Status Session::send_all(PGconn* connection, std::span<const Step> steps, Ending ending,
                         const Queries& queries, std::vector<Expected>& expected) {
  bool sent = true;
  for (const Step& step : steps)
    sent = sent && send(connection, *step.query, step.params, expected);
  if (backend_ == Backend::unknown) sent = sent && send(connection, queries.backend, {}, expected);
  if (ending == Ending::commit) sent = sent && send(connection, queries.commit, {}, expected);
  if (sent && PQpipelineSync(connection) == 1) return {};
  return fail(lost_connection(connection, "enqueue"));
}

bool Session::send(PGconn* connection, const Query& query, const Params& params,
                   std::vector<Expected>& expected) {
  const Arguments arguments(params);
  const auto count = static_cast<int>(arguments.values.size());
  const bool prepared = backend_ == Backend::ours && !query.handle.empty();
  if (!prepared) {
    expected.push_back({.query = &query, .prepares = false});
    return PQsendQueryParams(connection, query.sql.c_str(), count, nullptr, arguments.values.data(),
                             arguments.lengths.data(), arguments.formats.data(), 1) == 1;
  }
  // Counts as prepared only when the answer says so; until then a second one of the same text in this round trip is
  // prepared by the first.
  bool prepares = !prepared_.contains(query.handle);
  for (const Expected& earlier : expected)
    prepares = prepares && !(earlier.prepares && earlier.query == &query);
  if (prepares &&
      PQsendPrepare(connection, query.handle.c_str(), query.sql.c_str(), 0, nullptr) != 1)
    return false;
  expected.push_back({.query = &query, .prepares = prepares});
  return PQsendQueryPrepared(connection, query.handle.c_str(), count, arguments.values.data(),
                             arguments.lengths.data(), arguments.formats.data(), 1) == 1;
}

Status Session::collect(PGconn* connection, const std::vector<Expected>& expected,
                        const Queries& queries) {
  std::optional<Error> failed;
  // A result and the null after it.
  const auto next = [&](const Query& query) -> Rows {
    PGresult* const result = PQgetResult(connection);
    Rows rows(result);
    if (result == nullptr) {
      if (!failed) failed = lost_connection(connection, query.what);
      return rows;
    }
    const auto status = PQresultStatus(result);
    if (!failed && (status == PGRES_FATAL_ERROR || status == PGRES_BAD_RESPONSE)) {
      failed = map_result(result, connection, query.what);
    }
    if (PGresult* const more = PQgetResult(connection); more != nullptr) PQclear(more);
    return rows;
  };
  for (const Expected& one : expected) {
    if (one.prepares) {
      const Rows prepared = next(*one.query);
      if (!failed) prepared_.insert(one.query->handle);
    }
    const Rows rows = next(*one.query);
    if (failed) continue;
    if (one.query == &queries.backend) learn(connection, rows.native());
    // COMMIT of a transaction that failed is no error, but a ROLLBACK.
    if (one.query == &queries.commit && rows.command() != "COMMIT") {
      failed = Error{.code = Errc::unavailable,
                     .remedy = Remedy::retry_transaction,
                     .effect = Effect::none,
                     .message = "commit: the transaction had failed and was rolled back",
                     .hint = {},
                     .origin = {}};
    }
  }
  const Rows sync(PQgetResult(connection));
  if (!failed && PQstatus(connection) == CONNECTION_BAD)
    failed = lost_connection(connection, "enqueue");
  if (!failed) return {};
  // Somebody has thrown our prepared statements away (DISCARD ALL): do without, for as long as this connection lives.
  if (failed->origin == "pg:26000" || failed->origin == "pg:42P05") backend_ = Backend::shared;
  return fail(std::move(*failed));
}

void Session::learn(PGconn* connection, const PGresult* backend) {
  const int pid = wire::read<std::int32_t>(PQgetvalue(backend, 0, 0));
  backend_ = pid == PQbackendPID(connection) ? Backend::ours : Backend::shared;
}

}  // namespace outbox::store::postgres
