// Which lanes of a group a relay should have, from what the store knows at one moment. Pure; every
// relay decides by the same rule. docs/design/groups.md, "Assignment".
#pragma once

#include <outbox/event.hpp>
#include <span>
#include <vector>

#include "store/ownership.hpp"

namespace outbox::relay {

/// This relay's share among the relays that serve a group: even to one lane, by rendezvous hashing,
/// so that few lanes move when one comes or goes. The order of `members` does not matter; `self` is
/// one of them.
[[nodiscard]] store::LaneMask share_of(const EventId& self, std::vector<EventId> members);

/// The lanes that this relay should own now: of its share those that no other live relay has. A
/// group with one owner stays where it is, and goes to whoever takes it when that one is gone.
[[nodiscard]] store::LaneMask wanted_lanes(const EventId& self, const store::Group& group,
                                           std::span<const store::Member> members);

/// Another live relay has lanes of this relay's share, which it will give back.
[[nodiscard]] bool share_is_short(const EventId& self, const store::Group& group,
                                  std::span<const store::Member> members);

/// The name of a live relay that has lanes of the group; empty: none.
[[nodiscard]] std::string other_owner(const EventId& self, const store::Group& group,
                                      std::span<const store::Member> members);

}  // namespace outbox::relay
