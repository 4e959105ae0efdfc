// What `outbox status` shows of all subscriptions; reading it takes three round trips.
#pragma once

#include <cstdint>
#include <outbox/error.hpp>
#include <vector>

#include "store/postgres/connection.hpp"
#include "store/settlement.hpp"
#include "store/subscriptions.hpp"

namespace outbox::store::postgres {

/// Counts the events that are not passed on some lanes. It is sent after the plan settings.
struct PendingQuery {
  Connection::Named query;
  Params params;
};
[[nodiscard]] Result<PendingQuery> pending_query(const Strand& strand, std::int64_t limit);
/// Adds the answer of a PendingQuery. `oldest_us` becomes the creation time of the oldest event of
/// all answers added so far.
void add_pending(const Rows& counted, SubscriptionProgress& progress, std::int64_t& oldest_us);

/// Adds the answers of Queries::standing and Queries::last.
void add_totals(const Rows& cursors, const Rows& last, SubscriptionProgress& progress);

[[nodiscard]] Result<std::vector<SubscriptionOverview>> make_overview(
    Connection& connection, std::vector<SubscriptionRow> rows, std::int64_t pending_limit);

}  // namespace outbox::store::postgres
