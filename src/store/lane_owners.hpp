// Which relay owns which lanes of a group of subscriptions (docs/design/groups.md).
#pragma once

#include <cstdint>
#include <optional>
#include <outbox/error.hpp>
#include <outbox/event.hpp>
#include <string>
#include <vector>

#include "store/cursor.hpp"
#include "store/part.hpp"

namespace outbox::store {

/// A registered relay.
struct Member {
  EventId id{};
  std::string name;
  std::vector<std::string> groups;  ///< What it serves: names, and "*".
  bool alive{
      false};  ///< Its lease has not run out, and its process has not ended as far as this machine can tell.
};

/// Lanes of one owner.
struct OwnedLanes {
  std::optional<EventId> owner;  ///< None: they were given back.
  LaneMask lanes{0};
  std::int64_t generation{0};
};

struct Group {
  std::string name;
  bool one_owner{false};  ///< Its lanes are not shared: all or none.
  bool has_subscriptions{false};
  std::int64_t least_generation{
      0};  ///< A subscription came from another group: older ownership does not count for it.
  std::vector<OwnedLanes> owners;  ///< Lanes that are not named were never owned.
};

/// What the store knows at one moment.
struct Fleet {
  std::string outbox;  ///< The identity of the outbox (store/catalog.hpp).
  std::vector<Member> members;
  std::vector<Group> groups;  ///< Those with subscriptions, and those that ever had an owner.
};

/// Lanes that this relay owns, under its newest generation.
struct Holding {
  LaneMask lanes{0};
  std::int64_t generation{0};

  bool operator==(const Holding&) const = default;
};

/// One thread at a time.
class LaneOwners : public Part {
 public:
  /// Cheap; called often.
  [[nodiscard]] virtual Result<Fleet> look() = 0;
  /// Makes these lanes of the group this relay's own, as far as no other live relay owns them, under a new generation, with a claim
  /// for every subscription of the group; gives back those it has beside them. In one flushed transaction. Nothing may be delivered or
  /// settled in this group meanwhile. None: a lock could not be got, and nothing has changed. An error of code lease_lost: this
  /// relay is not registered any more.
  [[nodiscard]] virtual Result<std::optional<Holding>> change(const std::string& group,
                                                              LaneMask wanted) = 0;
};

}  // namespace outbox::store
