// What `outbox status` shows of all subscriptions, in three round trips.
#pragma once

#include <cstdint>
#include <outbox/error.hpp>
#include <vector>

#include "store/postgres/connection.hpp"
#include "store/settlement.hpp"
#include "store/subscriptions.hpp"

namespace outbox::store::postgres {

/// How many events are not passed on some lanes: to be sent after the plan settings.
struct PendingQuery {
  Connection::Named query;
  Params params;
};
[[nodiscard]] Result<PendingQuery> pending_query(const Strand& strand, std::int64_t limit);
/// Adds its answer. `oldest_us`: of all that were added.
void add_pending(const Rows& counted, SubscriptionProgress& progress, std::int64_t& oldest_us);

/// Adds the answers of Queries::standing and of Queries::last.
void add_totals(const Rows& cursors, const Rows& last, SubscriptionProgress& progress);

[[nodiscard]] Result<std::vector<SubscriptionOverview>> overview_of(
    Connection& connection, std::vector<SubscriptionRow> rows, std::int64_t pending_limit);

}  // namespace outbox::store::postgres
