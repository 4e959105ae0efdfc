// What the store sees of a relay, step by step. It registers, and takes all lanes of the default
// group that no live relay owns.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "store/store.hpp"

namespace outbox::test {

class LaneOwner {
 public:
  struct Standing {
    store::LaneMask lanes{0};
    std::int64_t generation{0};
    std::string other;  ///< The name of another live relay that owns lanes.

    [[nodiscard]] bool owns() const { return lanes != 0; }
  };

  explicit LaneOwner(store::Store& store, std::string name)
      : LaneOwner(store, store::RelayIdentity{.name = std::move(name)}) {}
  LaneOwner(store::Store& store, const store::RelayIdentity& identity)
      : id_(identity.id),
        membership_(store.membership(identity).value()),
        owners_(store.lane_owners(identity.id).value()) {}

  Result<Standing> keep(std::chrono::milliseconds lease = std::chrono::minutes(10)) {
    const auto kept = membership_->keep(lease);
    if (!kept) return tl::unexpected(kept.error());
    auto standing = look();
    if (!standing) return standing;
    if (*kept && held_.lanes != 0 && standing->lanes == held_.lanes &&
        standing->generation == held_.generation)
      return standing;
    held_ = {};
    const store::LaneMask free = store::kAllLanes & ~others_;
    if (free == 0) return Standing{.lanes = 0, .generation = 0, .other = standing->other};
    const auto taken = owners_->change("default", free);
    if (!taken) return tl::unexpected(taken.error());
    if (*taken) held_ = **taken;
    return Standing{.lanes = held_.lanes, .generation = held_.generation, .other = standing->other};
  }
  /// Whether keep() would take lanes.
  Result<bool> vacant() {
    const auto standing = look();
    if (!standing) return tl::unexpected(standing.error());
    return others_ != store::kAllLanes;
  }
  Status leave() {
    held_ = {};
    owners_.reset();
    return membership_->leave();
  }
  [[nodiscard]] const EventId& id() const { return id_; }
  store::LaneOwners& owners() { return *owners_; }

 private:
  Result<Standing> look() {
    const auto fleet = owners_->look();
    if (!fleet) return tl::unexpected(fleet.error());
    Standing standing;
    others_ = 0;
    for (const auto& group : fleet->groups) {
      if (group.name != "default") continue;
      for (const auto& owned : group.owners) {
        if (owned.owner == id_) {
          standing.lanes |= owned.lanes;
          standing.generation = owned.generation;
        }
        for (const auto& member : fleet->members) {
          if (member.id != owned.owner || member.id == id_ || !member.alive) continue;
          others_ |= owned.lanes;
          standing.other = member.name;
        }
      }
    }
    return standing;
  }

  const EventId id_;
  std::unique_ptr<store::Membership> membership_;
  std::unique_ptr<store::LaneOwners> owners_;
  store::Holding held_;
  store::LaneMask others_{0};
};

}  // namespace outbox::test
