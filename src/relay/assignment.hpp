// Which lanes of a group a relay should have, from what the store knows at one moment. Pure; every
// relay decides by the same rule. docs/design/groups.md, "Assignment".
#pragma once

#include <map>
#include <outbox/event.hpp>
#include <span>
#include <string>
#include <vector>

#include "store/ownership.hpp"

namespace outbox::relay {

/// What the relay holds of each group.
using Holdings = std::map<std::string, store::Holding>;

/// This relay's share of the lanes of a group. The shares of two relays differ by one lane at most.
/// Rendezvous hashing chooses the lanes, so that few of them move when a relay comes or goes. The
/// order of `members` does not matter, and `self` must be one of them.
[[nodiscard]] store::LaneMask compute_share(const EventId& self, std::vector<EventId> members);

/// The lanes that this relay should own now: those of its share that no other live relay owns. Of a
/// group with one owner these are all lanes if no other live relay owns any, and none otherwise.
[[nodiscard]] store::LaneMask wanted_lanes(const EventId& self, const store::Group& group,
                                           std::span<const store::Member> members);

/// Whether another live relay owns lanes of this relay's share. It will give them back.
[[nodiscard]] bool share_is_short(const EventId& self, const store::Group& group,
                                  std::span<const store::Member> members);

/// The name of another live relay that owns lanes of the group; empty if there is none.
[[nodiscard]] std::string other_owner(const EventId& self, const store::Group& group,
                                      std::span<const store::Member> members);

}  // namespace outbox::relay
