// The state of an application's connection: which statements are prepared on it, and whether we may
// prepare any. libpq stores it with the connection; it is cleared when the connection is reset and
// deleted when the connection is closed.
#pragma once

#include <libpq-fe.h>

#include <cstdint>
#include <outbox/error.hpp>
#include <string_view>
#include <vector>

#include "store/postgres/pipeline.hpp"
#include "store/postgres/queries.hpp"

namespace outbox::store::postgres {

class Session {
 public:
  /// The session of this connection; it is created on first use. An error names `what` its caller
  /// does.
  [[nodiscard]] static Result<Session*> of(PGconn* connection, std::string_view what);

  enum class Ending : std::uint8_t { stay, commit };

  /// Runs the statements, and COMMIT when asked to, in one round trip. The connection must be in a
  /// transaction. After an error nothing was committed and the transaction is lost; only when the
  /// connection broke on the way, the error has Effect::unknown.
  [[nodiscard]] Status run(PGconn* connection, std::vector<Step> steps, Ending ending,
                           const EnqueueQueries& queries);

  /// Runs statements that change nothing, and returns their rows. It may be called inside or
  /// outside of a transaction; an error ends the transaction.
  [[nodiscard]] Result<std::vector<Rows>> read(PGconn* connection, std::vector<Step> steps,
                                               const EnqueueQueries& queries);

  void forget() { *this = {}; }

 private:
  /// Whether the connection always has the same backend. This is known after the first statements:
  /// a pooler that shares connections reports a process id other than the backend's.
  enum class Backend : std::uint8_t { unknown, ours, shared };

  [[nodiscard]] Result<std::vector<Rows>> exchange(PGconn* connection, std::vector<Step> steps,
                                                   Ending ending, const EnqueueQueries& queries);

  Backend backend_{Backend::unknown};
  Pipeline pipeline_;
};

// Whether an application's connection can take our statements. The checks use libpq's state only:
// nothing is sent, and a refusal leaves the connection as it is.

/// Fails if the connection is in pipeline mode, has a command under way or is in a transaction that
/// has failed. `what` is for the message.
[[nodiscard]] Status check_open(PGconn* connection, std::string_view what);
/// Like check_open(), but the connection must be outside a transaction.
[[nodiscard]] Status check_idle(PGconn* connection, std::string_view what);
/// Like check_open(), but the connection must be in a transaction.
[[nodiscard]] Status check_ready(PGconn* connection, std::string_view what);

/// Texts are UTF-8. Under another client encoding the server would garble them, or refuse them in
/// the middle of the transaction.
[[nodiscard]] Status check_encoding(PGconn* connection, std::string_view what);

[[nodiscard]] tl::unexpected<Error> not_in_transaction(std::string_view what);

}  // namespace outbox::store::postgres
