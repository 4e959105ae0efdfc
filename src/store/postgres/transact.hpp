// A transaction of several round trips: BEGIN, whatever a function does, COMMIT.
#pragma once

#include <cstdint>
#include <outbox/error.hpp>

#include "base/error.hpp"
#include "store/postgres/connection.hpp"
#include "store/postgres/queries.hpp"

namespace outbox::store::postgres {

/// What the caller decides between the round trips.
enum class Decision : std::uint8_t { commit, rollback };

/// Runs `body(connection) -> Result<Decision>` in a transaction at READ COMMITTED that waits for locks 2 s at most and that
/// the server ends when we stop in its middle. Whatever fails rolls back. Tried a
/// second time when the first try found out that prepared statements do not work here (error 26000 ends a transaction).
template <class Body>
[[nodiscard]] Status transact(Connection& connection, const Queries& queries, Body body) {
  for (int attempt = 1;; ++attempt) {
    const bool prepared_before = connection.uses_prepared();
    auto run = [&]() -> Status {
      connection.send(queries.begin);
      connection.send(queries.limits);
      if (auto begun = connection.finish(); !begun) return pass(begun);
      Result<Decision> decision = body(connection);
      if (!decision) return pass(decision);
      if (*decision == Decision::rollback) return {};
      auto committed = connection.exec(queries.commit);
      if (!committed) return pass(committed);
      // COMMIT of a transaction that failed is no error, but a ROLLBACK.
      if (committed->command() != "COMMIT") {
        return fail(Error{.code = Errc::unavailable,
                          .remedy = Remedy::retry_transaction,
                          .effect = Effect::none,
                          .message = "the transaction was rolled back",
                          .hint = {},
                          .origin = {}});
      }
      return {};
    };
    Status status = run();
    connection.rollback();
    const bool learned = prepared_before && !connection.uses_prepared();
    if (status || !learned || attempt > 1) return status;
  }
}

}  // namespace outbox::store::postgres
