// One connection to the destination that never blocks once it is open. Statements go in round trips, in libpq's pipeline mode:
//
//   OUTBOX_TRY(auto session, Session::open(options));
//   session->submit(statements);
//   auto answer = session->advance();   // at each readiness of the socket, until there is one
//
// Threads: One thread at a time. Another one may watch the socket.
// Errors: of submit() and advance(): the connection is lost, and whether the round trip had its effect is unknown.
#pragma once

#include <libpq-fe.h>

#include <chrono>
#include <memory>
#include <optional>
#include <outbox/error.hpp>
#include <span>
#include <string>
#include <vector>

#include "pg/connect.hpp"
#include "pg/rows.hpp"
#include "sink/postgres/config.hpp"
#include "sink/postgres/error_map.hpp"
#include "sink/postgres/statements.hpp"

namespace outbox::sink::postgres {

/// Of one round trip.
struct Answer {
  std::vector<pg::Rows> rows;  ///< Of each statement; after a failure of those before it.
  std::optional<Failure> failure;
  std::string command;  ///< Of the last statement that succeeded: "COMMIT".
  bool in_transaction{false};
};

class Session {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// Blocks for connect_timeout at each address at most.
  [[nodiscard]] static Result<std::unique_ptr<Session>> open(const PostgresOptions& options);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  Session(Session&&) = delete;
  Session& operator=(Session&&) = delete;
  ~Session() = default;

  /// "host:port/database"
  [[nodiscard]] const std::string& address() const { return address_; }
  [[nodiscard]] int socket() const { return PQsocket(connection_.get()); }
  /// Events cross a network in clear.
  [[nodiscard]] bool is_open_to_listeners() const;

  /// Behind what is under way. Parameters may be released afterwards.
  [[nodiscard]] Status submit(std::span<const Statement> statements);
  /// Moves bytes; the next answer, once it is complete. Call it also while nothing is under way: the server may have closed.
  [[nodiscard]] Result<std::optional<Answer>> advance();
  [[nodiscard]] bool has_unsent() const { return unsent_; }

  /// submit(), and waits for the answer. Nothing else is under way.
  [[nodiscard]] Result<Answer> ask(std::span<const Statement> statements, TimePoint until);

  /// What was not sent yet is dropped when the session is destroyed.
  void abort() noexcept;

 private:
  explicit Session(PGconn* connection);

  [[nodiscard]] Status flush();
  [[nodiscard]] Status take(PGresult* result);
  [[nodiscard]] tl::unexpected<Error> lost(std::string_view what) const;

  pg::ConnectionPointer connection_;
  std::string address_;
  std::size_t under_way_{0};  ///< Round trips.
  bool unsent_{false};
  Answer answer_;
};

}  // namespace outbox::sink::postgres
