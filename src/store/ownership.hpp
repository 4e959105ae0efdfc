// Who delivers: relays, the lanes that they own, and what they record of their runs.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <outbox/error.hpp>
#include <outbox/event.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "store/interface.hpp"
#include "store/settlement.hpp"

namespace outbox::store {

// ---- A relay's row among the relays of this outbox, and its lease (docs/design/groups.md).

/// Who a relay is. The id stays the same when it comes back after it lost its connection.
struct RelayIdentity {
  EventId id{EventId::generate()};
  std::string name;
  std::vector<std::string> groups{"*"};  ///< What it serves (event/group.hpp).
};

/// One thread at a time.
class Membership : public Interface {
 public:
  /// Registers this relay, or renews its lease. False: another relay took this one for dead meanwhile; it is registered again and
  /// owns nothing.
  [[nodiscard]] virtual Result<bool> keep(std::chrono::milliseconds lease) = 0;
  /// Gives back all its lanes and removes the row.
  [[nodiscard]] virtual Status leave() = 0;
};

// ---- Which relay owns which lanes of a group of subscriptions (docs/design/groups.md).

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
  std::string outbox;  ///< The identity of the outbox (store/subscriptions.hpp).
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
class LaneOwners : public Interface {
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

// ---- What relays record of their runs, so that an event that kills them is found (docs/design/trials.md). A row per strand and run; nothing
// per event but while one is tried alone.

/// How the trouble of a subscription begins that is on trial (store/subscriptions.hpp).
inline constexpr std::string_view kOnTrial = "on trial: ";

/// A run that is over, on some of the lanes that were asked about.
struct FormerRun {
  std::int64_t generation{0};
  LaneMask lanes{0};
  std::string place;     ///< Where the cursor of the strand stood when the run began.
  std::size_t range{0};  ///< How many events were on trial when it ended; 0: none.
  std::int64_t seq{0};   ///< The first of them; 0: none of them was sent.
  bool parked{false};    ///< That event is parked.
  bool alive{false};     ///< No death: the run ended in order during a trial, or its relay lives.
  bool counted{false};   ///< A later run on these lanes has begun since.
};

/// One thread at a time. All is committed, and flushed, on return.
class Trials : public Interface {
 public:
  /// The runs that others have left on these lanes, and those that `relay` itself has left. The newest comes first.
  [[nodiscard]] virtual Result<std::vector<FormerRun>> former(std::int32_t subscription,
                                                              LaneMask lanes,
                                                              const EventId& relay) = 0;
  /// A run begins, under a generation that owns the lanes. A `range` of events is on trial before the first one is sent. Of the former
  /// runs on these lanes those of the generations `keep` are kept, and count as seen.
  [[nodiscard]] virtual Status begin(std::int32_t subscription, const Holding& holding,
                                     const EventId& relay, const std::string& place,
                                     std::size_t range, const std::vector<std::int64_t>& keep) = 0;
  struct Range {
    LaneMask lanes{0};  ///< Where its events are.
    std::size_t events{0};
    std::int64_t seq{0};  ///< The first of them.
  };
  /// Events are sent on trial next; those before have survived. Returns the generations of the former runs on the lanes that are held
  /// which ended by a death, for all that is known by now.
  [[nodiscard]] virtual Result<std::vector<std::int64_t>> open(std::int32_t subscription,
                                                               const Holding& holding,
                                                               const Range& range) = 0;
  /// The trial is over, and the run goes on. Former runs are forgotten, except those of the generations `keep` that died of one event.
  [[nodiscard]] virtual Status close(std::int32_t subscription, const Holding& holding,
                                     const std::vector<std::int64_t>& keep) = 0;
  /// The run ends in order. If a trial goes on, the next run on these lanes continues it.
  [[nodiscard]] virtual Status end(std::int32_t subscription, const Holding& holding) = 0;
};

}  // namespace outbox::store
