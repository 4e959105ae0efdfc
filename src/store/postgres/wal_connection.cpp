#include "store/postgres/wal_connection.hpp"

#include <array>
#include <chrono>
#include <memory>
#include <utility>

#include "base/error.hpp"
#include "pg/errors.hpp"
#include "pg/rows.hpp"
#include "pg/url.hpp"
#include "store/postgres/error_map.hpp"
#include "store/wait.hpp"

namespace outbox::store::postgres {
namespace {

constexpr std::chrono::milliseconds kLookEvery{500};
/// Whatever name the URL gives: one of synchronous_standby_names would make the relay a standby.
constexpr const char* kSessionName = "outbox relay wal";

struct FreeCopied {
  void operator()(char* bytes) const noexcept { PQfreemem(bytes); }
};
struct FreeCancel {
  void operator()(PGcancel* cancel) const noexcept { PQfreeCancel(cancel); }
};

Error lost_stream(const PGconn* connection) {
  return pg::lost_connection(connection, "follow the log");
}

std::int64_t clock_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

Result<WalConnection> WalConnection::open(const StoreOptions& options, const EventFd& interrupted) {
  OUTBOX_TRY(pg::check_url(options.url));
  WalConnection opened(pg::ConnectionPointer(pg::connect(
                           options.url, kSessionName,
                           {{"replication", "database"}, {"application_name", kSessionName}})),
                       interrupted);
  PGconn* const connection = opened.connection_.get();
  if (connection == nullptr || PQstatus(connection) != CONNECTION_OK)
    return fail(pg::failed_connect(connection));
  if (PQsetnonblocking(connection, 1) != 0) return fail(lost_stream(connection));
  return opened;
}

Result<bool> WalConnection::run(const Query& query, const std::function<bool()>& waiting) {
  PGconn* const connection = connection_.get();
  if (PQsendQuery(connection, query.sql.c_str()) != 1)
    return fail(pg::lost_connection(connection, query.what));
  auto look_at = std::chrono::steady_clock::now() + kLookEvery;
  while (true) {
    if (PQflush(connection) < 0 || PQconsumeInput(connection) != 1)
      return fail(pg::lost_connection(connection, query.what));
    if (PQisBusy(connection) == 0) break;
    OUTBOX_TRY(const bool interrupted, wait_for(interrupted_, PQsocket(connection), look_at));
    const bool looks = std::chrono::steady_clock::now() >= look_at;
    if (looks) look_at += kLookEvery;
    if (interrupted || (looks && !waiting())) {
      cancel();
      return false;
    }
  }
  if (Status status = collect(query.what); !status) return pass(status);
  return true;
}

/// Takes the result of a command, or the beginning of the stream.
Status WalConnection::collect(std::string_view what) {
  PGconn* const connection = connection_.get();
  Status status;
  while (true) {
    const pg::Rows result(PQgetResult(connection));
    if (result.native() == nullptr) return status;
    switch (PQresultStatus(result.native())) {
      case PGRES_COPY_BOTH: return status;
      case PGRES_COMMAND_OK:
      case PGRES_TUPLES_OK: break;
      default:
        if (status) status = fail(map_result(result.native(), connection, what));
    }
  }
}

/// A slot that is being made would otherwise wait on after the connection was closed.
void WalConnection::cancel() {
  const std::unique_ptr<PGcancel, FreeCancel> request(PQgetCancel(connection_.get()));
  std::array<char, 256> error{};
  if (request) (void)PQcancel(request.get(), error.data(), static_cast<int>(error.size()));
}

Result<std::optional<WalMessage>> WalConnection::take() {
  PGconn* const connection = connection_.get();
  char* copied = nullptr;
  const int size = PQgetCopyData(connection, &copied, 1);
  const std::unique_ptr<char, FreeCopied> bytes(copied);
  if (size == 0) return std::optional<WalMessage>{};
  if (size < 0) {
    if (Status status = size == -1 ? collect("follow the log") : Status(); !status)
      return pass(status);
    return fail(lost_stream(connection));
  }
  auto message = decode_wal_message({bytes.get(), static_cast<std::size_t>(size)});
  if (message) return message;
  return fail(Errc::corrupt, "follow the log: a message of the stream is broken");
}

Result<bool> WalConnection::wait(WalTime until) {
  PGconn* const connection = connection_.get();
  OUTBOX_TRY(const bool interrupted, wait_for(interrupted_, PQsocket(connection), until));
  if (interrupted) return false;
  if (PQconsumeInput(connection) != 1) return fail(lost_stream(connection));
  return true;
}

Status WalConnection::reply(const WalPosition::Reply& reply) {
  PGconn* const connection = connection_.get();
  const std::string bytes = encode_wal_reply(reply.lsn, clock_us(), reply.ask);
  const int put = PQputCopyData(connection, bytes.data(), static_cast<int>(bytes.size()));
  if (put < 0 || PQflush(connection) < 0) return fail(lost_stream(connection));
  return {};
}

}  // namespace outbox::store::postgres
