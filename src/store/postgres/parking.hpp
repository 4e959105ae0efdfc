// Parked events: what is sent to the server, and what it returns (docs/design/parking.md).
#pragma once

#include <cstdint>
#include <outbox/error.hpp>
#include <span>
#include <vector>

#include "store/cursor.hpp"
#include "store/parked.hpp"
#include "store/postgres/connection.hpp"
#include "store/task_runs.hpp"

namespace outbox::store::postgres {

// Whoever writes rows of several subscriptions locks all their lanes first, in one order, and then goes on by their ids: or they would wait
// for each other.
void send_rows(Connection& connection, std::span<const ParkedEvent> parked,
               std::span<const RetryResult> results);
/// Two statements or more. Each but the first returns the runs of a subscription that were not over yet: subscription, seq, token.
void send_run_ends(Connection& connection, std::span<const TaskRunEnd> ends);

[[nodiscard]] Result<std::vector<BlockedKey>> read_blocked_keys(Connection& connection,
                                                                std::int32_t subscription,
                                                                LaneMask lanes, bool dead_block);
[[nodiscard]] Result<DueEvents> read_due(Connection& connection, std::int32_t subscription,
                                         const Holding& holding, const DueLimits& limits,
                                         const std::vector<std::int64_t>* runs);

}  // namespace outbox::store::postgres
