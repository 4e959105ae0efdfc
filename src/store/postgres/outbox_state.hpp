// The implementation of the classes in outbox/postgres.hpp.
#pragma once

#include <libpq-fe.h>

#include <optional>
#include <outbox/postgres.hpp>
#include <string>
#include <vector>

#include "store/postgres/queries.hpp"
#include "store/postgres/session.hpp"
#include "store/postgres/task_queries.hpp"

namespace outbox::postgres {

/// The statements for the outbox of one schema.
struct Target {
  store::postgres::EnqueueQueries queries;
  store::postgres::TaskQueries tasks;
};

/// The target is made once in each process. Throws when the schema's name is not valid.
[[nodiscard]] const Target& find_target(const std::string& schema);

struct Transaction::State {
  PGconn* connection{nullptr};
  const Target& target;
  EventLimits limits{};
  bool open{false};
  std::string id{};                     ///< Empty if it was not asked for.
  std::optional<InDoubt::Mark> mark{};  ///< The first event that was enqueued.
  // What commit() writes.
  std::vector<Event> events{};
  std::vector<EventId> ids{};
  std::vector<Header> inherited{};  ///< The headers of inherit().

  /// Whether the connection can take the statements.
  [[nodiscard]] Status check(const char* what) const;
  /// Writes what is staged, and commits when asked to, in one round trip.
  [[nodiscard]] Status write(store::postgres::Session::Ending ending) const;
  void forget();
};

}  // namespace outbox::postgres
