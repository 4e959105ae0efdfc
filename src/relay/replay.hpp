// A replay in the place of live delivery: the same loop and delivery cores, with pages from a
// ReplayFeed instead of the pump, and progress of its own instead of settlements
// (docs/design/replay.md).
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "relay/delivery_core.hpp"
#include "relay/replay_feed.hpp"
#include "relay/window.hpp"
#include "store/store.hpp"

namespace outbox::relay {

/// What a relay does of a replay: the lanes that it owns and that are not done.
struct ReplayRun {
  store::Replay replay;
  std::vector<store::Strand> strands;  ///< At replay_cursor().
  std::vector<std::uint64_t> skipped_keys;
  std::unique_ptr<ReplayFeed> feed;
};

/// A delivery core counts in pairs of snapshots; a replay has one, which ends with its last seq.
[[nodiscard]] std::shared_ptr<const store::Pair> replay_pair();
[[nodiscard]] store::Cursor replay_cursor(std::int64_t position);

/// Lanes at one live cursor and one position, except those that are done. Pure.
[[nodiscard]] std::vector<store::ReplayRequest> replay_requests(
    const store::Replay& replay, const std::vector<store::Strand>& live,
    const std::vector<store::ReplayPlace>& places, const Window::Limits& limits);

/// Nothing is parked twice: what would be parked is skipped, and what follows of its key.
[[nodiscard]] ParkingRules replay_parking();

/// What a core wants to settle, as progress of the replay. Pure.
[[nodiscard]] store::ReplayProgress replay_progress(const store::Replay& replay,
                                                    const DeliveryCore::Due& due);

/// Without strands when nothing is left to do on these lanes; null: it does not run any more.
/// `live`: the cursors of live delivery, which must be at rest.
[[nodiscard]] Result<std::shared_ptr<ReplayRun>> begin_replay(
    std::unique_ptr<store::Replays> replays, std::int64_t replay, store::LaneMask lanes,
    const std::vector<store::Strand>& live, const Window::Limits& limits,
    std::function<void(const Error&)> failed);

/// Ends it because of an event.
[[nodiscard]] Status stop_replay(store::Store& store, std::int64_t replay,
                                 const Rejection& rejection);

}  // namespace outbox::relay
