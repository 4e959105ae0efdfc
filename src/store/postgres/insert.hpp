// The statements that write events, with their parameters. The caller sends them in one transaction.
#pragma once

#include <outbox/event.hpp>
#include <span>
#include <vector>

#include "store/postgres/connection.hpp"
#include "store/postgres/queries.hpp"

namespace outbox::store::postgres {

/// A statement to send. Its parameters borrow from the events.
struct Step {
  const Query* query{nullptr};
  Params params;
};

/// The first fault of the first faulty event; of several events its place is named.
[[nodiscard]] Status validate_all(std::span<const Event> events, const EventLimits& limits);

/// The events' own ids, and new ones for those without.
[[nodiscard]] std::vector<EventId> ids_of(std::span<const Event> events);

/// Appends what writes the events in their order: one statement for one event, a few for many. Keys that are to be locked
/// are, before any seq is taken.
void plan_insert(const Queries& queries, std::span<const Event> events,
                 std::span<const EventId> ids, std::vector<Step>& steps);

}  // namespace outbox::store::postgres
