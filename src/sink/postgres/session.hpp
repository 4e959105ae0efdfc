// One connection to the destination that never blocks once it is open. Statements are sent in round
// trips, in libpq's pipeline mode:
//
//   OUTBOX_TRY(auto session, Session::open(options));
//   session->submit(statements);
//   auto answer = session->advance();   // at each readiness of the socket, until there is one
//
// Threads: One thread at a time. Another one may watch the socket.
// Errors: an error of submit() or advance() means that the connection is lost, and that the effect
// of the round trip is unknown.
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

/// The answer to one round trip.
struct Answer {
  std::vector<pg::Rows> rows;  ///< The rows of each statement, after a failure of those before it.
  std::optional<Failure> failure;
  std::string command;  ///< The tag of the last statement that succeeded, such as "COMMIT".
  bool in_transaction{false};
};

class Session {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// Blocks for at most connect_timeout at each address.
  [[nodiscard]] static Result<std::unique_ptr<Session>> open(const PostgresOptions& options);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  Session(Session&&) = delete;
  Session& operator=(Session&&) = delete;
  ~Session() = default;

  /// The address as "host:port/database".
  [[nodiscard]] const std::string& address() const { return address_; }
  [[nodiscard]] int socket() const { return PQsocket(connection_.get()); }
  /// Whether events cross a network without encryption.
  [[nodiscard]] bool is_open_to_listeners() const;

  /// Queues statements behind those in progress. Parameters may be released afterwards.
  [[nodiscard]] Status submit(std::span<const Statement> statements);
  /// Moves bytes and returns the next complete answer. Must be called even while nothing is in
  /// progress, because the server may have closed the connection.
  [[nodiscard]] Result<std::optional<Answer>> advance();
  [[nodiscard]] bool has_unsent() const { return unsent_; }

  /// Calls submit() and waits for the answer. Nothing else may be in progress.
  [[nodiscard]] Result<Answer> ask(std::span<const Statement> statements, TimePoint until);

  /// Makes the destructor drop what was not sent yet.
  void abort() noexcept;

 private:
  explicit Session(PGconn* connection);

  [[nodiscard]] Status flush();
  [[nodiscard]] Status take(PGresult* result);
  [[nodiscard]] tl::unexpected<Error> lost(std::string_view what) const;

  pg::ConnectionPointer connection_;
  std::string address_;
  std::size_t under_way_{0};  ///< The number of round trips in progress.
  bool unsent_{false};
  Answer answer_;
};

}  // namespace outbox::sink::postgres
