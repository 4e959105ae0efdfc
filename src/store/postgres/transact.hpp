// Transactions: of several round trips, and of one statement with its settings.
#pragma once

#include <cstdint>
#include <outbox/error.hpp>

#include "base/error.hpp"
#include "store/postgres/connection.hpp"
#include "store/postgres/queries.hpp"

namespace outbox::store::postgres {

/// What the caller decides between the round trips.
enum class Decision : std::uint8_t { commit, rollback };

/// Runs `body(connection) -> Result<Decision>` in a transaction at READ COMMITTED that waits at most 2 s for locks and that
/// the server ends when we stop in its middle. Rolls back on any failure. Tries again when the first try finds that prepared
/// statements do not work here (error 26000 ends a transaction).
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
      return check_commit(*committed);
    };
    Status status = run();
    connection.rollback();
    const bool learned = prepared_before && !connection.uses_prepared();
    if (status || !learned || attempt > 1) return status;
  }
}

/// One statement after `settings`, in a transaction of its own and one round trip. Returns its rows.
[[nodiscard]] inline Result<Rows> exec_with(Connection& connection, const Queries& queries,
                                            const Query& settings, const Query& query,
                                            Params params = {}) {
  connection.send(queries.begin);
  connection.send(settings);
  connection.send(query, std::move(params));
  connection.send(queries.commit);
  auto results = connection.finish();
  if (!results) return pass(results);
  return std::move((*results)[2]);
}

}  // namespace outbox::store::postgres
