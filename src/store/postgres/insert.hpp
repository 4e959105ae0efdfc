// Makes the statements that write events, with their parameters. The caller sends them in one
// transaction.
#pragma once

#include <outbox/event.hpp>
#include <span>
#include <vector>

#include "store/postgres/pipeline.hpp"
#include "store/postgres/queries.hpp"

namespace outbox::store::postgres {

/// Appends the statements that write the events in their order: one statement for one event, a few
/// for many. Keys are locked before any seq is taken.
void plan_insert(const EnqueueQueries& queries, std::span<const Event> events,
                 std::span<const EventId> ids, std::vector<Step>& steps);

}  // namespace outbox::store::postgres
