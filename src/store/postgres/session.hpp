// What we know about a connection that belongs to the application: which statements are prepared on it, and whether it may
// have any. Kept by libpq itself with the connection, so that it goes when the connection is reset or finished.
#pragma once

#include <libpq-fe.h>

#include <outbox/error.hpp>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "store/postgres/insert.hpp"

namespace outbox::store::postgres {

class Session {
 public:
  /// The one of this connection; made when there is none yet.
  [[nodiscard]] static Result<Session*> of(PGconn* connection);

  enum class Ending : std::uint8_t { stay, commit };

  /// Sends the statements, and COMMIT when asked to, in one round trip. The connection is in a transaction. On an error
  /// nothing was committed and the transaction is lost; only when the connection broke on the way, Effect::unknown.
  [[nodiscard]] Status run(PGconn* connection, std::span<const Step> steps, Ending ending,
                           const Queries& queries);

  void forget();

 private:
  /// Whether the backend is the same all the time. Found out with the first statements: a pooler that shares connections
  /// tells another process id than the backend's.
  enum class Backend : std::uint8_t { unknown, ours, shared };

  struct Expected {
    const Query* query{nullptr};
    bool prepares{false};
  };

  [[nodiscard]] bool send(PGconn* connection, const Query& query, const Params& params,
                          std::vector<Expected>& expected);
  [[nodiscard]] Status send_all(PGconn* connection, std::span<const Step> steps, Ending ending,
                                const Queries& queries, std::vector<Expected>& expected);
  [[nodiscard]] Status collect(PGconn* connection, const std::vector<Expected>& expected,
                               const Queries& queries);
  void learn(PGconn* connection, const PGresult* backend);

  Backend backend_{Backend::unknown};
  std::unordered_set<std::string> prepared_;
};

}  // namespace outbox::store::postgres
