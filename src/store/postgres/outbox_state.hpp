// What is behind the classes of outbox/postgres.hpp.
#pragma once

#include <libpq-fe.h>

#include <memory>
#include <optional>
#include <outbox/postgres.hpp>
#include <string>
#include <vector>

#include "store/postgres/queries.hpp"
#include "store/postgres/session.hpp"
#include "store/postgres/task_queries.hpp"

namespace outbox::postgres {

struct Outbox::State {
  store::postgres::EnqueueQueries queries;
  store::postgres::TaskQueries tasks;
  EventLimits limits;
  std::string schema;
};

struct Transaction::State {
  /// Events of one outbox that follow each other.
  struct Group {
    std::shared_ptr<const Outbox::State> outbox;
    std::vector<Event> events;
    std::vector<EventId> ids;
  };

  PGconn* connection{nullptr};
  bool open{false};
  std::string id{};                     ///< Empty: not asked for.
  std::optional<InDoubt::Mark> mark{};  ///< The first event that was enqueued.
  std::vector<Group> staged{};

  /// Whether the connection can take the statements.
  [[nodiscard]] Status check(const char* what) const;
  /// What is staged, and COMMIT when asked to, in one round trip.
  [[nodiscard]] Status write(store::postgres::Session::Ending ending) const;
};

}  // namespace outbox::postgres
