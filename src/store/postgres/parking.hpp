// Parked events: the statements that are sent to the server, and their results
// (docs/design/parking.md).
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

// A transaction that writes rows of several subscriptions first locks all their lanes, in one
// order, and then writes the rows in the order of the subscriptions' ids. Otherwise two such
// transactions could deadlock.
/// The last statement returns the keys of the batch that have no row in `parked_key` any more.
/// Nothing is sent for an empty batch.
void send_rows(Connection& connection, std::span<const ParkedEvent> parked,
               std::span<const RetryResult> results);
[[nodiscard]] std::vector<ReleasedKey> released_keys(const Rows& rows);
/// Sends two statements or more. Each but the first returns the runs of one subscription that had
/// not ended yet: subscription, seq, token.
void send_run_ends(Connection& connection, std::span<const TaskRunEnd> ends);

[[nodiscard]] Result<ParkedKeys> read_parked_keys(Connection& connection, std::int32_t subscription,
                                                  LaneMask lanes, bool dead_block);
[[nodiscard]] Result<DueEvents> read_due(Connection& connection, std::int32_t subscription,
                                         const Holding& holding, const DueLimits& limits,
                                         std::span<const AskedRow> asked);

}  // namespace outbox::store::postgres
