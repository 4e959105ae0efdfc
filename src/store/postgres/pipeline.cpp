#include "store/postgres/pipeline.hpp"

#include <poll.h>

#include <cerrno>
#include <utility>

#include "base/error.hpp"
#include "pg/errors.hpp"
#include "store/postgres/error_map.hpp"

namespace outbox::store::postgres {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

bool blames_prepared(const Error& error) {
  return error.origin == "pg:26000" || error.origin == "pg:42P05" || error.origin == "pg:08P01";
}

Status check_commit(const Rows& commit) {
  if (commit.command() == "COMMIT") return {};
  return fail(Errc::unavailable, Remedy::retry_transaction,
              "commit: the transaction had failed and was rolled back");
}

Status Pipeline::send(PGconn* connection, std::span<const Step> steps, bool prepared) {
  lost_ = false;
  prepares_.assign(steps.size(), false);
  bool sent = PQenterPipelineMode(connection) == 1;
  for (std::size_t i = 0; i < steps.size() && sent; ++i)
    sent = transmit(connection, steps, i, prepared);
  if (sent && PQpipelineSync(connection) == 1 && PQflush(connection) >= 0) return {};
  auto error = lose(connection, *steps.front().query);
  PQexitPipelineMode(connection);
  return error;
}

bool Pipeline::transmit(PGconn* connection, std::span<const Step> steps, std::size_t index,
                        bool prepared) {
  const Query& query = *steps[index].query;
  const pg::Arguments arguments(steps[index].params);
  if (!prepared || query.handle.empty()) {
    return PQsendQueryParams(connection, query.sql.c_str(), arguments.count(), nullptr,
                             arguments.values.data(), arguments.lengths.data(),
                             arguments.formats.data(), 1) == 1;
  }
  // A statement counts as prepared once the server confirms it; until then a second step with the
  // same text relies on the first.
  bool prepares = !prepared_.contains(query.handle);
  for (std::size_t i = 0; i < index && prepares; ++i)
    prepares = !(prepares_[i] && steps[i].query->handle == query.handle);
  prepares_[index] = prepares;
  if (prepares &&
      PQsendPrepare(connection, query.handle.c_str(), query.sql.c_str(), 0, nullptr) != 1)
    return false;
  return PQsendQueryPrepared(connection, query.handle.c_str(), arguments.count(),
                             arguments.values.data(), arguments.lengths.data(),
                             arguments.formats.data(), 1) == 1;
}

Result<std::vector<Rows>> Pipeline::collect(PGconn* connection, std::span<const Step> steps,
                                            std::optional<std::chrono::milliseconds> deadline) {
  timeout_ = deadline;
  deadline_.reset();
  if (deadline) deadline_ = Clock::now() + *deadline;
  std::vector<Rows> rows;
  rows.reserve(steps.size());
  std::optional<Error> failed;
  Status status = read(connection, steps, rows, failed);
  if (PQexitPipelineMode(connection) != 1 && status)
    status = lose(connection, *steps.front().query);
  // The server's error says more than that the server closed the connection afterwards.
  if (failed) return fail(std::move(*failed));
  if (!status) return pass(status);
  return rows;
}

Status Pipeline::read(PGconn* connection, std::span<const Step> steps, std::vector<Rows>& rows,
                      std::optional<Error>& failed) {
  OUTBOX_TRY(flush(connection, *steps.front().query));
  const auto note = [&](const Rows& result, const Query& query) {
    const auto status = PQresultStatus(result.native());
    const bool error = status == PGRES_FATAL_ERROR || status == PGRES_BAD_RESPONSE;
    if (error && !failed) failed = map_result(result.native(), connection, query.what);
    return status;
  };
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Query& query = *steps[i].query;
    if (prepares_[i]) {
      OUTBOX_TRY(const Rows prepared, next_result(connection, query));
      if (note(prepared, query) == PGRES_COMMAND_OK) prepared_.insert(query.handle);
    }
    OUTBOX_TRY(Rows result, next_result(connection, query));
    (void)note(result, query);
    rows.push_back(std::move(result));
  }
  const Query& last = *steps.back().query;
  OUTBOX_TRY(const Rows end, next_result(connection, last));
  if (PQresultStatus(end.native()) != PGRES_PIPELINE_SYNC) return lose(connection, last);
  return {};
}

/// Reads the next result, and the null that separates it from the one after it.
Result<Rows> Pipeline::next_result(PGconn* connection, const Query& query) {
  OUTBOX_TRY(PGresult* const result, get(connection, query));
  if (result == nullptr) return lose(connection, query);
  Rows rows(result);
  if (PQresultStatus(result) == PGRES_PIPELINE_SYNC) return rows;
  OUTBOX_TRY(PGresult* const separator, get(connection, query));
  if (separator == nullptr) return rows;
  PQclear(separator);
  return lose(connection, query);
}

Result<PGresult*> Pipeline::get(PGconn* connection, const Query& query) {
  while (deadline_ && PQisBusy(connection) == 1) {
    OUTBOX_TRY(wait(connection, false, query));
    if (PQconsumeInput(connection) != 1) break;  // PQgetResult reports why
  }
  return PQgetResult(connection);
}

Status Pipeline::flush(PGconn* connection, const Query& query) {
  while (deadline_) {
    const int left = PQflush(connection);
    if (left == 0) break;
    if (left < 0) return lose(connection, query);
    OUTBOX_TRY(wait(connection, true, query));
    // The server may stop reading until we take what it has written.
    if (PQconsumeInput(connection) != 1) return lose(connection, query);
  }
  return {};
}

Status Pipeline::wait(PGconn* connection, bool writable_too, const Query& query) {
  pollfd socket{.fd = PQsocket(connection),
                .events = static_cast<short>(writable_too ? POLLIN | POLLOUT : POLLIN),
                .revents = 0};
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(*deadline_ - Clock::now()).count();
    if (left <= 0) break;
    const int ready = poll(&socket, 1, static_cast<int>(left));
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return lose(connection, query);
  }
  lost_ = true;
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(*timeout_).count();
  return fail(Error{.code = Errc::deadline_exceeded,
                    .remedy = Remedy::reconnect,
                    .effect = Effect::unknown,
                    .message = "PostgreSQL did not answer within " + std::to_string(seconds) + " s",
                    .hint = {},
                    .origin = {}});
}

tl::unexpected<Error> Pipeline::lose(PGconn* connection, const Query& query) {
  lost_ = true;
  return fail(pg::lost_connection(connection, query.what));
}

}  // namespace outbox::store::postgres
