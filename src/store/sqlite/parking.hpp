// Parked events (docs/design/parking.md). What writes runs in the caller's transaction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <outbox/error.hpp>
#include <span>
#include <string_view>
#include <vector>

#include "store/parked.hpp"
#include "store/sqlite/connection.hpp"
#include "store/task_runs.hpp"

namespace outbox::store::sqlite {

/// Refuses a generation that does not own the subscription's group.
[[nodiscard]] Status check_owner(Connection& connection, std::int64_t subscription,
                                 std::int64_t generation);
[[nodiscard]] Status park_events(Connection& connection, std::span<const ParkedEvent> events);
[[nodiscard]] Status settle_parked(Connection& connection, std::span<const RetryResult> results);
/// Of those that are not over yet.
[[nodiscard]] Status end_runs(Connection& connection, std::span<const TaskRunEnd> ends);
[[nodiscard]] Status finish_task(Connection& connection, const TaskFinish& finish);
/// Removes a parked event for good.
[[nodiscard]] Status discard_row(Connection& connection, std::int64_t subscription,
                                 std::int64_t seq, std::string_view actor, std::string_view reason,
                                 std::int64_t now);
[[nodiscard]] Status insert_event(Connection& connection, const Event& event);

/// Of each key the first event is retried, and the others wait.
[[nodiscard]] Status order_all_parked_keys(Connection& connection, std::int64_t subscription);
[[nodiscard]] Status order_parked_key(Connection& connection, std::int64_t subscription,
                                      std::string_view aggregate_type,
                                      std::string_view aggregate_id);

[[nodiscard]] Result<std::vector<BlockedKey>> read_blocked_keys(Connection& connection,
                                                                std::int64_t subscription,
                                                                bool dead_block);
[[nodiscard]] Result<DueEvents> read_due(Connection& connection, std::int64_t subscription,
                                         std::int64_t generation, const DueLimits& limits,
                                         const std::vector<std::int64_t>* runs);

}  // namespace outbox::store::sqlite
