// A replay takes the place of live delivery. It uses the same loop and delivery cores, but with
// pages from a ReplayFeed instead of the pump, and writes progress of its own instead of
// settlements (docs/design/replay.md).
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "relay/delivery_core.hpp"
#include "relay/replay_feed.hpp"
#include "relay/window.hpp"
#include "store/store.hpp"

namespace outbox::relay {

/// The part of a replay that a relay does: the lanes that it owns and that are not done.
struct ReplayRun {
  store::Replay replay;
  std::vector<store::Strand> strands;  ///< Their cursors are those of replay_cursor().
  std::vector<std::uint64_t> skipped_keys;
  std::unique_ptr<ReplayFeed> feed;
};

/// A delivery core counts in pairs of snapshots. A replay has one pair, which ends with the
/// replay's last seq.
[[nodiscard]] std::shared_ptr<const store::Pair> replay_pair();
[[nodiscard]] store::Cursor replay_cursor(std::int64_t position);

/// One request for the lanes at each live cursor and position, except lanes that are done. Pure.
[[nodiscard]] std::vector<store::ReplayRequest> replay_requests(
    const store::Replay& replay, const std::vector<store::Strand>& live,
    const std::vector<store::ReplayPlace>& places, const Window::Limits& limits);

/// The rules under which a replay skips what live delivery would park, and what follows of its key,
/// so that nothing is parked twice.
[[nodiscard]] ParkingRules replay_parking();

/// What a core wants to settle, as progress of the replay. Pure.
[[nodiscard]] store::ReplayProgress replay_progress(const store::Replay& replay,
                                                    const DeliveryCore::Due& due);

/// Begins the part of a replay on these lanes. The result has no strands if nothing is left to do
/// on them, and is null if the replay does not run any more. `live` are the cursors of live
/// delivery, which must be at rest.
[[nodiscard]] Result<std::shared_ptr<ReplayRun>> begin_replay(
    std::unique_ptr<store::Replays> replays, std::int64_t replay, store::LaneMask lanes,
    const std::vector<store::Strand>& live, const Window::Limits& limits,
    std::function<void(const Error&)> failed);

/// Stops the replay because an event was rejected.
[[nodiscard]] Status stop_replay(store::Store& store, std::int64_t replay,
                                 const Rejection& rejection);

}  // namespace outbox::relay
