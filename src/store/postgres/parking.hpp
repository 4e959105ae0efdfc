// Parked events: what is sent to the server, and what it returns (docs/design/parking.md).
#pragma once

#include <cstdint>
#include <outbox/error.hpp>
#include <span>
#include <vector>

#include "store/parked.hpp"
#include "store/postgres/connection.hpp"
#include "store/settlement.hpp"
#include "store/tasks.hpp"

namespace outbox::store::postgres {

// Whoever writes rows of several subscriptions locks all their lanes first, in one order, and then
// goes on by their ids: or they would wait for each other.
/// The last statement returns the keys of the batch that have nothing to do any more; of an empty
/// batch nothing is sent.
void send_rows(Connection& connection, std::span<const ParkedEvent> parked,
               std::span<const RetryResult> results);
[[nodiscard]] std::vector<ReleasedKey> released_keys(const Rows& rows);
/// Two statements or more. Each but the first returns the runs of a subscription that were not over
/// yet: subscription, seq, token.
void send_run_ends(Connection& connection, std::span<const TaskRunEnd> ends);

[[nodiscard]] Result<ParkedKeys> read_parked_keys(Connection& connection, std::int32_t subscription,
                                                  LaneMask lanes, bool dead_block);
[[nodiscard]] Result<DueEvents> read_due(Connection& connection, std::int32_t subscription,
                                         const Holding& holding, const DueLimits& limits,
                                         std::span<const AskedRow> asked);

}  // namespace outbox::store::postgres
