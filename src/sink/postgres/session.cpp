#include "sink/postgres/session.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "pg/errors.hpp"
#include "pg/url.hpp"

namespace outbox::sink::postgres {
namespace {

using std::chrono::milliseconds;

/// From this version on, PQpipelineSync() and an extended-protocol COMMIT work alike.
constexpr int kOldestServer = 100000;

std::string_view text_or_empty(const char* text) {
  return text == nullptr ? std::string_view() : std::string_view(text);
}

pg::Parameters make_parameters(const PostgresOptions& options) {
  const auto seconds =
      std::chrono::ceil<std::chrono::seconds>(options.plain.connect_timeout).count();
  pg::Parameters parameters{{"connect_timeout", std::to_string(seconds)},
                            {"target_session_attrs", "read-write"},
                            {"tcp_user_timeout", std::to_string(options.plain.deadline.count())}};
  if (!options.plain.username.empty()) parameters.emplace_back("user", options.plain.username);
  if (!options.plain.password.empty()) parameters.emplace_back("password", options.plain.password);
  return parameters;
}

Failure read_failure(const PGresult* result) {
  return {.sqlstate = std::string(pg::field(result, PG_DIAG_SQLSTATE)),
          .said = std::string(pg::field(result, PG_DIAG_MESSAGE_PRIMARY)),
          .hint = std::string(pg::field(result, PG_DIAG_MESSAGE_HINT))};
}

Error in_our_words(Error error) {
  error.message.insert(0, "postgres: ");
  return error;
}

}  // namespace

Session::Session(PGconn* connection) : connection_(connection) {
  if (connection == nullptr) return;
  address_ = fmt::format("{}:{}/{}", text_or_empty(PQhost(connection)),
                         text_or_empty(PQport(connection)), text_or_empty(PQdb(connection)));
}

Result<std::unique_ptr<Session>> Session::open(const PostgresOptions& options) {
  // First the URL: libpq quotes what it does not understand, perhaps a part of the password.
  if (Status valid = pg::check_url(options.plain.url); !valid) {
    valid.error().message = "postgres.url: " + valid.error().message;
    return pass(valid);
  }
  std::unique_ptr<Session> made(new Session(pg::connect(
      options.plain.url, "outbox sink " + options.subscription, make_parameters(options))));
  PGconn* const connection = made->connection_.get();
  if (connection == nullptr || PQstatus(connection) != CONNECTION_OK)
    return fail(in_our_words(pg::failed_connect(connection)));
  if (PQserverVersion(connection) < kOldestServer) {
    return fail(Errc::unsupported,
                "postgres: the server is PostgreSQL " +
                    std::string(text_or_empty(PQparameterStatus(connection, "server_version"))),
                "PostgreSQL 10 or newer is needed");
  }
  if (PQsetnonblocking(connection, 1) != 0 || PQenterPipelineMode(connection) != 1)
    return made->lost("connect");
  return made;
}

bool Session::is_open_to_listeners() const {
  PGconn* const connection = connection_.get();
  const std::string_view host = text_or_empty(PQhost(connection));
  const bool here = host.starts_with('/') || host.starts_with('@') || host == "localhost" ||
                    host == "::1" || host.starts_with("127.");
  return !here && PQsslInUse(connection) == 0 && PQgssEncInUse(connection) == 0;
}

Status Session::submit(std::span<const Statement> statements) {
  OUTBOX_CHECK(!statements.empty());
  PGconn* const connection = connection_.get();
  ++under_way_;
  for (const Statement& statement : statements) {
    const pg::Arguments arguments(statement.params);
    if (PQsendQueryParams(connection, statement.sql.c_str(), arguments.count(), nullptr,
                          arguments.values.data(), arguments.lengths.data(),
                          arguments.formats.data(), 1) != 1)
      return lost("send");
  }
  if (PQpipelineSync(connection) != 1) return lost("send");
  return flush();
}

Status Session::flush() {
  const int left = PQflush(connection_.get());
  if (left < 0) return lost("send");
  unsent_ = left > 0;
  return {};
}

Result<std::optional<Answer>> Session::advance() {
  PGconn* const connection = connection_.get();
  // A failed write is reported after what the server said before it closed the connection.
  const Status flushed = unsent_ ? flush() : Status();
  const bool readable = PQconsumeInput(connection) == 1;
  while (under_way_ > 0 && PQisBusy(connection) == 0) {
    PGresult* const result = PQgetResult(connection);
    if (result == nullptr) {
      // A null result ends those of a statement. On a lost connection there would be no end.
      if (PQstatus(connection) == CONNECTION_BAD) break;
      continue;
    }
    const bool last = PQresultStatus(result) == PGRES_PIPELINE_SYNC;
    OUTBOX_TRY(take(result));
    if (!last) continue;
    --under_way_;
    answer_.in_transaction = PQtransactionStatus(connection) != PQTRANS_IDLE;
    return std::optional<Answer>(std::exchange(answer_, {}));
  }
  if (!readable || PQstatus(connection) == CONNECTION_BAD) return lost("the connection");
  if (!flushed) return tl::unexpected(flushed.error());
  return std::nullopt;
}

Status Session::take(PGresult* result) {
  pg::Rows rows(result);
  switch (PQresultStatus(result)) {
    case PGRES_PIPELINE_SYNC:
    case PGRES_PIPELINE_ABORTED: return {};
    case PGRES_COMMAND_OK:
    case PGRES_TUPLES_OK:
      answer_.command = rows.command();
      answer_.rows.push_back(std::move(rows));
      return {};
    default: break;
  }
  Failure failure = read_failure(result);
  // A message without SQLSTATE is libpq's own, so the connection is lost.
  if (failure.sqlstate.empty()) return lost("the connection");
  if (find_verdict(failure.sqlstate) == Verdict::lost) return fail(describe(failure, address_));
  if (!answer_.failure) answer_.failure = std::move(failure);
  return {};
}

tl::unexpected<Error> Session::lost(std::string_view what) const {
  Error error =
      in_our_words(pg::lost_connection(connection_.get(), address_ + ": " + std::string(what)));
  error.hint = "check the server and the network";
  return fail(std::move(error));
}

Result<Answer> Session::ask(std::span<const Statement> statements, TimePoint until) {
  OUTBOX_TRY(submit(statements));
  while (true) {
    OUTBOX_TRY(std::optional<Answer> answer, advance());
    if (answer) return std::move(*answer);
    const auto left =
        std::chrono::ceil<milliseconds>(until - std::chrono::steady_clock::now()).count();
    pollfd socket{.fd = this->socket(),
                  .events = static_cast<short>(unsent_ ? POLLIN | POLLOUT : POLLIN),
                  .revents = 0};
    if (left > 0 && ::poll(&socket, 1, static_cast<int>(std::min<long>(left, 1000))) >= 0) continue;
    Error error = lost("no answer").value();
    error.code = Errc::deadline_exceeded;
    error.message = "postgres: " + address_ + ": no answer while the sink was opened";
    return fail(std::move(error));
  }
}

void Session::abort() noexcept {
  const int socket = this->socket();
  if (socket < 0) return;
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  (void)::setsockopt(socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  // Otherwise PQfinish() would send what libpq still has.
  (void)::shutdown(socket, SHUT_RDWR);
}

}  // namespace outbox::sink::postgres
