#include "store/postgres/connection.hpp"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "store/postgres/connect.hpp"
#include "store/postgres/error_map.hpp"
#include "store/postgres/queries.hpp"

namespace outbox::store::postgres {
namespace {

using Clock = std::chrono::steady_clock;

/// A prepared statement is missing, or there is one that we did not make: a pooler without support for them is between.
/// (The names contain a hash of the text, so that a foreign one never passes for ours.)
bool blames_prepared(const Error& error) {
  return error.origin == "pg:26000" || error.origin == "pg:42P05" || error.origin == "pg:08P01";
}

bool is_error(ExecStatusType status) {
  return status == PGRES_FATAL_ERROR || status == PGRES_BAD_RESPONSE;
}

/// The arrays that libpq wants.
struct Arguments {
  std::vector<const char*> values;
  std::vector<int> lengths;
  std::vector<int> formats;

  explicit Arguments(const Params& params) {
    for (const Param& param : params) {
      values.push_back(param.data());
      lengths.push_back(param.size());
      formats.push_back(param.format());
    }
  }
  [[nodiscard]] int count() const { return static_cast<int>(values.size()); }
};

}  // namespace

Result<Connection> Connection::open(const StoreOptions& options, std::string_view purpose) {
  auto connection = connect(options.url, options.application + " " + std::string(purpose));
  if (!connection) return pass(connection);
  Connection opened(*connection);
  if (PQsetnonblocking(*connection, 1) != 0) return fail(lost_connection(*connection, "connect"));
  auto lifted = opened.exec(no_session_limits(), {Param::int4(PQbackendPID(*connection))});
  if (!lifted) return pass(lifted);
  return opened;
}

bool Connection::in_transaction() const noexcept {
  const auto status = PQtransactionStatus(connection_.get());
  return status == PQTRANS_INTRANS || status == PQTRANS_INERROR;
}

Result<Rows> Connection::exec(const Query& query, Params params) {
  OUTBOX_CHECK(batch_.empty());
  send(query, std::move(params));
  auto rows = finish();
  if (!rows) return pass(rows);
  return std::move(rows->front());
}

void Connection::send(const Query& query, Params params) {
  OUTBOX_CHECK(!synced_);
  batch_.push_back(Sent{.query = &query, .params = std::move(params)});
}

Result<std::vector<Rows>> Connection::finish() {
  if (Status status = sync(); !status) return pass(status);
  return collect();
}

Status Connection::sync() {
  OUTBOX_CHECK(!synced_ && !batch_.empty());
  batch_began_outside_ = !in_transaction();
  Status status = transmit_batch();
  if (!status) {
    batch_.clear();
    return status;
  }
  synced_ = true;
  return {};
}

Status Connection::transmit_batch() {
  if (broken() || PQenterPipelineMode(connection_.get()) != 1)
    return fail(lose(batch_.front().query->what));
  for (Sent& sent : batch_) {
    if (!transmit(sent)) return fail(lose(sent.query->what));
  }
  if (PQpipelineSync(connection_.get()) != 1 || PQflush(connection_.get()) < 0) {
    return fail(lose(batch_.front().query->what));
  }
  return {};
}

bool Connection::transmit(Sent& sent) {
  const Query& query = *sent.query;
  const Arguments arguments(sent.params);
  PGconn* const connection = connection_.get();
  ++statements_;
  sent.prepares = false;
  if (!use_prepared_ || query.handle.empty()) {
    return PQsendQueryParams(connection, query.sql.c_str(), arguments.count(), nullptr,
                             arguments.values.data(), arguments.lengths.data(),
                             arguments.formats.data(), 1) == 1;
  }
  const bool under_way = std::any_of(batch_.begin(), batch_.end(), [&](const Sent& other) {
    return other.prepares && other.query->handle == query.handle;
  });
  if (!under_way && !prepared_.contains(query.handle)) {
    if (PQsendPrepare(connection, query.handle.c_str(), query.sql.c_str(), 0, nullptr) != 1)
      return false;
    sent.prepares = true;
  }
  return PQsendQueryPrepared(connection, query.handle.c_str(), arguments.count(),
                             arguments.values.data(), arguments.lengths.data(),
                             arguments.formats.data(), 1) == 1;
}

Result<std::vector<Rows>> Connection::collect() {
  OUTBOX_CHECK(synced_);
  synced_ = false;
  auto rows = collect_batch();
  if (!rows && !broken() && batch_began_outside_) rollback();
  if (!rows && use_prepared_ && blames_prepared(rows.error())) {
    use_prepared_ = false;
    prepared_.clear();
    log::info("prepared statements do not survive between transactions, they are not used");
    if (batch_began_outside_ && !broken()) {
      Status again = transmit_batch();
      rows = again ? collect_batch() : Result<std::vector<Rows>>(pass(again));
      if (!rows && !broken()) rollback();
    } else if (!broken()) {
      rows.error().remedy = Remedy::retry_transaction;
    }
  }
  batch_.clear();
  return rows;
}

Result<std::vector<Rows>> Connection::collect_batch() {
  std::vector<Rows> rows;
  std::optional<Error> failed;
  Status status = read_batch(rows, failed, Clock::now() + deadline_);
  if (status && PQexitPipelineMode(connection_.get()) != 1)
    status = fail(lose(batch_.front().query->what));
  if (failed)
    return fail(std::move(*failed));  // what the server said, rather than that it then hung up
  if (!status) return pass(status);
  return rows;
}

Status Connection::read_batch(std::vector<Rows>& rows, std::optional<Error>& failed,
                              Deadline deadline) {
  if (Status status = flush(deadline); !status) return status;
  const auto note = [&](const PGresult* result, const Query& query) {
    if (is_error(PQresultStatus(result)) && !failed)
      failed = map_result(result, connection_.get(), query.what);
  };
  for (const Sent& sent : batch_) {
    if (sent.prepares) {
      auto prepared = next_result(deadline);
      if (!prepared) return pass(prepared);
      const Rows owner(*prepared);
      note(*prepared, *sent.query);
      if (PQresultStatus(*prepared) == PGRES_COMMAND_OK) prepared_.insert(sent.query->handle);
    }
    auto result = next_result(deadline);
    if (!result) return pass(result);
    note(*result, *sent.query);
    rows.emplace_back(*result);
  }
  auto end = next_result(deadline);
  if (!end) return pass(end);
  const Rows owner(*end);
  if (PQresultStatus(*end) != PGRES_PIPELINE_SYNC) return fail(lose("read results"));
  return {};
}

/// The next result with what separates it from the one after it.
Result<PGresult*> Connection::next_result(Deadline deadline) {
  PGconn* const connection = connection_.get();
  const auto get = [&]() -> Result<PGresult*> {
    while (PQisBusy(connection) == 1) {
      if (Status status = wait_readable(deadline, false); !status) return pass(status);
      if (PQconsumeInput(connection) != 1) break;  // PQgetResult tells why
    }
    return PQgetResult(connection);
  };
  auto result = get();
  if (!result) return result;
  if (*result == nullptr) return fail(lose("read results"));
  if (PQresultStatus(*result) == PGRES_PIPELINE_SYNC) return result;
  Rows owner(*result);
  auto separator = get();
  if (!separator) return separator;
  if (*separator != nullptr) {
    PQclear(*separator);
    return fail(lose("read results"));
  }
  return owner.release();
}

Status Connection::flush(Deadline deadline) {
  for (;;) {
    const int left = PQflush(connection_.get());
    if (left == 0) return {};
    if (left < 0) return fail(lose("send"));
    if (Status status = wait_readable(deadline, true); !status) return status;
    // The server may stop reading until we take what it has written.
    if (PQconsumeInput(connection_.get()) != 1) return fail(lose("send"));
  }
}

Status Connection::wait_readable(Deadline deadline, bool writable_too) {
  pollfd socket{.fd = PQsocket(connection_.get()),
                .events = static_cast<short>(writable_too ? POLLIN | POLLOUT : POLLIN),
                .revents = 0};
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return fail(give_up());
    const int ready = poll(&socket, 1, static_cast<int>(left));
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return fail(lose("wait for the server"));
  }
}

Error Connection::give_up() {
  broken_ = true;
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(deadline_).count();
  return Error{.code = Errc::deadline_exceeded,
               .remedy = Remedy::reconnect,
               .effect = Effect::unknown,
               .message = "PostgreSQL did not answer within " + std::to_string(seconds) + " s",
               .hint = {},
               .origin = {}};
}

Error Connection::lose(std::string_view what) {
  broken_ = true;
  return lost_connection(connection_.get(), what);
}

Status Connection::script(std::string_view what, const std::string& sql) {
  if (broken()) return fail(lose(what));
  ++statements_;
  PGresult* const result = PQexec(connection_.get(), sql.c_str());
  const Rows owner(result);
  const auto status = PQresultStatus(result);
  if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK) return {};
  return fail(map_result(result, connection_.get(), what));
}

void Connection::rollback() {
  if (broken() || !in_transaction()) return;
  const Deadline deadline = Clock::now() + deadline_;
  ++statements_;
  if (PQsendQuery(connection_.get(), "ROLLBACK") != 1 || !flush(deadline)) {
    broken_ = true;
    return;
  }
  auto result = next_result(deadline);
  if (!result) return;
  const Rows owner(*result);
  if (in_transaction()) broken_ = true;
}

}  // namespace outbox::store::postgres
