#include "sim/groups/members.hpp"

#include <algorithm>
#include <utility>

namespace outbox::sim {
namespace {

store::LaneMask lane_bit(unsigned lane) { return store::LaneMask{1} << lane; }

}  // namespace

store::Fleet Members::look(const EventId& asking, relay::TimePoint now,
                           std::chrono::milliseconds lease) const {
  store::Fleet fleet;
  for (const Member& member : members_) {
    fleet.members.push_back({.id = member.id,
                             .name = {},
                             .groups = {"*"},
                             .alive = member.id == asking || is_alive(member, now, lease)});
  }
  store::Group group{.name = "default", .has_subscriptions = true, .owners = {}};
  for (unsigned lane = 0; lane < 64; ++lane) {
    group.owners.push_back({.owner = lanes_[lane].owner,
                            .lanes = lane_bit(lane),
                            .generation = lanes_[lane].generation});
  }
  fleet.groups.push_back(std::move(group));
  return fleet;
}

bool Members::keep(const EventId& relay, relay::TimePoint now) {
  for (Member& member : members_) {
    if (member.id != relay) continue;
    member.heartbeat = now;
    return true;
  }
  members_.push_back({.id = relay, .heartbeat = now});
  return false;
}

void Members::leave(const EventId& relay) {
  for (Lane& lane : lanes_) {
    if (lane.owner == relay) lane.owner.reset();
  }
  std::erase_if(members_, [&](const Member& member) { return member.id == relay; });
}

void Members::process_ended(const EventId& relay) {
  for (Member& member : members_) member.gone = member.gone || member.id == relay;
}

bool Members::is_alive(const EventId& relay, relay::TimePoint now,
                       std::chrono::milliseconds lease) const {
  return std::any_of(members_.begin(), members_.end(), [&](const Member& member) {
    return member.id == relay && is_alive(member, now, lease);
  });
}

bool Members::owns(store::LaneMask lanes, std::int64_t generation) const {
  for (unsigned lane = 0; lane < 64; ++lane) {
    if ((lanes & lane_bit(lane)) != 0 && lanes_[lane].generation != generation) return false;
  }
  return true;
}

/// All lanes of dead members get a new generation, even those that stay free, so that a late row
/// counts for all of its lanes or for none.
std::optional<store::Holding> Members::change(const EventId& relay, store::LaneMask wanted,
                                              relay::TimePoint now, std::chrono::milliseconds lease,
                                              const Claim& claim) {
  const auto is_living_other = [&](const EventId& owner) {
    return owner != relay && is_alive(owner, now, lease);
  };
  const bool registered = std::any_of(members_.begin(), members_.end(),
                                      [&](const Member& member) { return member.id == relay; });
  if (!registered) return {};
  store::LaneMask free = 0;
  store::LaneMask used = 0;
  for (unsigned lane = 0; lane < 64; ++lane) {
    const auto& owner = lanes_[lane].owner;
    if (owner && is_living_other(*owner)) continue;
    free |= lane_bit(lane);
    if (lanes_[lane].generation > 0) used |= lane_bit(lane);
    if (owner && *owner != relay)
      std::erase_if(members_, [&](const Member& member) { return member.id == *owner; });
  }
  store::Holding holding{.lanes = free & wanted};
  if (const store::LaneMask rest = used & ~holding.lanes; rest != 0)
    give({}, rest, ++generation_, claim);
  if (holding.lanes != 0) {
    holding.generation = ++generation_;
    give(relay, holding.lanes, generation_, claim);
  }
  return holding;
}

void Members::give(std::optional<EventId> owner, store::LaneMask lanes, std::int64_t generation,
                   const Claim& claim) {
  for (unsigned lane = 0; lane < 64; ++lane) {
    if ((lanes & lane_bit(lane)) != 0) lanes_[lane] = {.owner = owner, .generation = generation};
  }
  claim(lanes, generation);
}

}  // namespace outbox::sim
