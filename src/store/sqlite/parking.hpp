// Parked events (docs/design/parking.md, "The law"). What writes runs in the caller's transaction,
// unless it says otherwise.
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

/// Refuses a generation that does not own the subscription's group.
[[nodiscard]] Status check_owner(Connection& connection, std::int64_t subscription,
                                 std::int64_t generation);
[[nodiscard]] Status park_events(Connection& connection, std::span<const ParkedEvent> events);
[[nodiscard]] Status settle_parked(Connection& connection, std::span<const RetryResult> results);
/// Of those that are not over yet.
[[nodiscard]] Status end_runs(Connection& connection, std::span<const TaskRunEnd> ends);
[[nodiscard]] Status finish_task(Connection& connection, const TaskFinish& finish);
/// Removes a parked event for good, for a person, unless a worker runs it: its worker is told to
/// stop then. False: it is not there.
[[nodiscard]] Result<bool> discard_event(Connection& connection, std::int64_t subscription,
                                         std::int64_t seq, std::string_view actor,
                                         std::string_view reason, std::int64_t now);
[[nodiscard]] Status insert_event(Connection& connection, const Event& event);
/// Those of these keys that have nothing to do any more, in order.
[[nodiscard]] Result<std::vector<ReleasedKey>> released_keys(Connection& connection,
                                                             std::span<const ParkedEvent> parked,
                                                             std::span<const RetryResult> results);
/// Removes those beyond this seq that the log has, too, without a trace.
[[nodiscard]] Status forget_parked_after(Connection& connection, std::int64_t subscription,
                                         std::int64_t seq);

// ---- In transactions of their own

/// The keys that a dead event blocks go on.
[[nodiscard]] Status unblock_keys(Connection& connection, std::int64_t subscription);
[[nodiscard]] Result<ParkedKeys> read_parked_keys(Connection& connection,
                                                  std::int64_t subscription);
[[nodiscard]] Result<DueEvents> read_due(Connection& connection, std::int64_t subscription,
                                         std::int64_t generation, const DueLimits& limits,
                                         std::span<const AskedRow> asked);

}  // namespace outbox::store::sqlite
