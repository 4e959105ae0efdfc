// The state of an application's connection: which statements are prepared on it, and whether any
// may be. libpq stores it with the connection; it is cleared when the connection is reset and
// deleted when it is finished.
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
  /// The one of this connection; created on first use.
  [[nodiscard]] static Result<Session*> of(PGconn* connection);

  enum class Ending : std::uint8_t { stay, commit };

  /// Runs the statements, and COMMIT when asked to, in one round trip. The connection is in a
  /// transaction. On an error nothing was committed and the transaction is lost; only when the
  /// connection broke on the way, Effect::unknown.
  [[nodiscard]] Status run(PGconn* connection, std::vector<Step> steps, Ending ending,
                           const EnqueueQueries& queries);

  /// Runs statements that change nothing, and returns their rows. Inside or outside of a
  /// transaction, which an error ends.
  [[nodiscard]] Result<std::vector<Rows>> read(PGconn* connection, std::vector<Step> steps,
                                               const EnqueueQueries& queries);

  void forget() { *this = {}; }

 private:
  /// Whether the backend is always the same. Known after the first statements: a pooler that shares
  /// connections reports another process id than the backend's.
  enum class Backend : std::uint8_t { unknown, ours, shared };

  [[nodiscard]] Result<std::vector<Rows>> exchange(PGconn* connection, std::vector<Step> steps,
                                                   Ending ending, const EnqueueQueries& queries);

  Backend backend_{Backend::unknown};
  Pipeline pipeline_;
};

// Whether an application's connection can take our statements. The checks use libpq's state only:
// nothing is sent, and a refusal leaves the connection as it is.

/// No pipeline, no command under way, no transaction that has failed. `what`: for the message.
[[nodiscard]] Status check_open(PGconn* connection, std::string_view what);
/// Outside a transaction, no pipeline, no command under way.
[[nodiscard]] Status check_idle(PGconn* connection, std::string_view what);
/// The same inside a transaction that has not failed.
[[nodiscard]] Status check_ready(PGconn* connection, std::string_view what);

/// Texts are UTF-8. Under another client encoding the server would convert them: garbled, or
/// refused in mid-transaction.
[[nodiscard]] Status check_encoding(PGconn* connection, std::string_view what);

[[nodiscard]] tl::unexpected<Error> not_in_transaction(std::string_view what);

}  // namespace outbox::store::postgres
