// Parked events (docs/design/parking.md, "The law"). Functions that write run in the caller's
// transaction, unless they say otherwise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <outbox/error.hpp>
#include <span>
#include <string_view>
#include <vector>

#include "store/parked.hpp"
#include "store/sqlite/connection.hpp"
#include "store/tasks.hpp"

namespace outbox::store::sqlite {

/// Fails if the generation does not own the subscription's group.
[[nodiscard]] Status check_owner(Connection& connection, std::int64_t subscription,
                                 std::int64_t generation);
[[nodiscard]] Status park_events(Connection& connection, std::span<const ParkedEvent> events);
[[nodiscard]] Status settle_parked(Connection& connection, std::span<const RetryResult> results);
/// Ends those of the runs that have not ended yet.
[[nodiscard]] Status end_runs(Connection& connection, std::span<const TaskRunEnd> ends);
[[nodiscard]] Status finish_task(Connection& connection, const TaskFinish& finish);
/// Removes a parked event for good, on behalf of a person. If a worker runs the event, its worker
/// is told to stop instead. Returns false if the event is not parked.
[[nodiscard]] Result<bool> discard_event(Connection& connection, std::int64_t subscription,
                                         std::int64_t seq, std::string_view actor,
                                         std::string_view reason, std::int64_t now);
[[nodiscard]] Status insert_event(Connection& connection, const Event& event);
/// Those of these keys that have no row in `parked_key` any more, in order.
[[nodiscard]] Result<std::vector<ReleasedKey>> released_keys(Connection& connection,
                                                             std::span<const ParkedEvent> parked,
                                                             std::span<const RetryResult> results);
/// Removes the parked events beyond this seq that are in the log, too, without a trace.
[[nodiscard]] Status forget_parked_after(Connection& connection, std::int64_t subscription,
                                         std::int64_t seq);

// ---- These run in transactions of their own.

/// Releases the keys that a dead event blocks.
[[nodiscard]] Status unblock_keys(Connection& connection, std::int64_t subscription);
[[nodiscard]] Result<ParkedKeys> read_parked_keys(Connection& connection,
                                                  std::int64_t subscription);
[[nodiscard]] Result<DueEvents> read_due(Connection& connection, std::int64_t subscription,
                                         std::int64_t generation, const DueLimits& limits,
                                         std::span<const AskedRow> asked);

}  // namespace outbox::store::sqlite
