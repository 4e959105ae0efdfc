// Which relays exist, which lanes they own, and what they record of their runs.
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

/// Identifies a relay. The id survives a lost connection.
struct RelayIdentity {
  EventId id{EventId::generate()};
  std::string name;
  std::vector<std::string> groups{"*"};  ///< The groups it serves (event/group.hpp).
};

/// It is used by one thread at a time.
class Membership : public Interface {
 public:
  /// Registers this relay or renews its lease. Returns false if the relay had been taken for dead;
  /// then it is registered again and owns nothing.
  [[nodiscard]] virtual Result<bool> keep(std::chrono::milliseconds lease) = 0;
  /// Gives back all lanes of this relay and removes its row.
  [[nodiscard]] virtual Status leave() = 0;
};

// ---- Which relay owns which lanes of a group of subscriptions (docs/design/groups.md).

/// A registered relay.
struct Member {
  EventId id{};
  std::string name;
  std::vector<std::string> groups;  ///< The groups it serves: names, and "*".
  bool alive{false};                ///< Its lease runs, and its process has not visibly ended.
};

/// Lanes with one owner and generation.
struct OwnedLanes {
  std::optional<EventId> owner;  ///< Not set if they were given back.
  LaneMask lanes{0};
  std::int64_t generation{0};
};

struct Group {
  std::string name;
  bool one_owner{false};  ///< One relay owns all of its lanes, or none.
  bool has_subscriptions{false};
  /// Older ownership does not count: a subscription came from another group.
  std::int64_t least_generation{0};
  std::vector<OwnedLanes> owners;  ///< Lanes that are missing were never owned.
};

/// All relays and groups, read at one moment.
struct Fleet {
  std::string outbox;  ///< The identity of the outbox (store/subscriptions.hpp).
  std::vector<Member> members;
  std::vector<Group> groups;  ///< The groups that have subscriptions or ever had an owner.
};

/// The lanes that this relay owns, under its newest generation.
struct Holding {
  LaneMask lanes{0};
  std::int64_t generation{0};

  bool operator==(const Holding&) const = default;
};

/// It is used by one thread at a time.
class LaneOwners : public Interface {
 public:
  /// It is called often, so it must be cheap.
  [[nodiscard]] virtual Result<Fleet> look() = 0;
  /// Takes these lanes of the group, except those that another live relay owns, under a new
  /// generation, with a claim for every subscription of the group, and gives back all its others,
  /// in one durable transaction. Nothing may be delivered or settled in the group meanwhile.
  /// Returns nullopt if a lock was taken; then nothing changed. The error is lease_lost if the
  /// relay is not registered.
  [[nodiscard]] virtual Result<std::optional<Holding>> change(const std::string& group,
                                                              LaneMask wanted) = 0;
};

// ---- Records of runs, which help to find an event that kills relays (docs/design/trials.md): one
// row per strand and run; a row per event is written only while events are tried alone.

/// The beginning of the trouble (store/subscriptions.hpp) of a subscription that is on trial.
inline constexpr std::string_view kOnTrial = "on trial: ";

/// A run that has ended, on some of the lanes that former() was asked about.
struct FormerRun {
  std::int64_t generation{0};
  LaneMask lanes{0};
  std::string place;     ///< The place of the strand's cursor when the run began.
  std::size_t range{0};  ///< How many events were on trial when it ended; 0 if none were.
  std::int64_t seq{0};   ///< The first of these events; 0 if none was sent.
  bool parked{false};    ///< Whether the event `seq` is parked.
  bool alive{false};     ///< It did not die: it ended in order during a trial, or its relay lives.
  bool counted{false};   ///< A later run on these lanes has begun since.
};

/// It is used by one thread at a time. Everything is committed and flushed when a call returns.
class Trials : public Interface {
 public:
  /// Runs on these lanes that have ended, of other relays and of `relay`, the newest first.
  [[nodiscard]] virtual Result<std::vector<FormerRun>> former(std::int32_t subscription,
                                                              LaneMask lanes,
                                                              const EventId& relay) = 0;
  /// Records that a run begins, under a generation that owns the lanes, with the first `range`
  /// events on trial. Former runs on these lanes are removed, except those of the generations
  /// `keep`, which count as seen.
  [[nodiscard]] virtual Status begin(std::int32_t subscription, const Holding& holding,
                                     const EventId& relay, const std::string& place,
                                     std::size_t range, const std::vector<std::int64_t>& keep) = 0;
  struct Range {
    LaneMask lanes{0};  ///< The lanes of its events.
    std::size_t events{0};
    std::int64_t seq{0};  ///< The first of its events.
  };
  /// Records that these events are sent on trial next, so that earlier ones have survived. Returns
  /// the generations of former runs on the held lanes that are known to have died.
  [[nodiscard]] virtual Result<std::vector<std::int64_t>> open(std::int32_t subscription,
                                                               const Holding& holding,
                                                               const Range& range) = 0;
  /// Ends the trial, not the run. Forgets former runs, except those of the generations `keep`.
  [[nodiscard]] virtual Status close(std::int32_t subscription, const Holding& holding,
                                     const std::vector<std::int64_t>& keep) = 0;
  /// Ends the run in order. The next run on these lanes continues a trial that is not over.
  [[nodiscard]] virtual Status end(std::int32_t subscription, const Holding& holding) = 0;
};

}  // namespace outbox::store
