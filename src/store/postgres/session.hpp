// The state of an application's connection: which statements are prepared on it, and whether any may be. libpq stores it with
// the connection; it is cleared when the connection is reset and deleted when it is finished.
#pragma once

#include <libpq-fe.h>

#include <cstdint>
#include <outbox/error.hpp>
#include <vector>

#include "store/postgres/pipeline.hpp"
#include "store/postgres/queries.hpp"

namespace outbox::store::postgres {

class Session {
 public:
  /// The one of this connection; created on first use.
  [[nodiscard]] static Result<Session*> of(PGconn* connection);

  enum class Ending : std::uint8_t { stay, commit };

  /// Runs the statements, and COMMIT when asked to, in one round trip. The connection is in a transaction. On an error
  /// nothing was committed and the transaction is lost; only when the connection broke on the way, Effect::unknown.
  [[nodiscard]] Status run(PGconn* connection, std::vector<Step> steps, Ending ending,
                           const EnqueueQueries& queries);

  /// Runs statements that change nothing, and returns their rows. Inside or outside of a transaction, which an error ends.
  [[nodiscard]] Result<std::vector<Rows>> read(PGconn* connection, std::vector<Step> steps,
                                               const EnqueueQueries& queries);

  void forget() { *this = {}; }

 private:
  /// Whether the backend is always the same. Known after the first statements: a pooler that shares connections
  /// reports another process id than the backend's.
  enum class Backend : std::uint8_t { unknown, ours, shared };

  [[nodiscard]] Result<std::vector<Rows>> exchange(PGconn* connection, std::vector<Step> steps,
                                                   Ending ending, const EnqueueQueries& queries);

  Backend backend_{Backend::unknown};
  Pipeline pipeline_;
};

}  // namespace outbox::store::postgres
