// Members, and whose the lanes are, by the rules of store/postgres/lane_owners.cpp. The clock is
// the server's.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "relay/trust_deadline.hpp"
#include "store/ownership.hpp"

namespace outbox::sim {

class Members {
 public:
  [[nodiscard]] store::Fleet look(const EventId& asking, relay::TimePoint now,
                                  std::chrono::milliseconds lease) const;
  /// Registers, or renews the lease. False: it had been removed.
  bool keep(const EventId& relay, relay::TimePoint now);
  void leave(const EventId& relay);
  /// A process of this machine that is gone is seen at once.
  void process_ended(const EventId& relay);
  /// LaneOwners::change(). `claim`: the cursors of lanes that have a new generation. None: this
  /// relay is not registered any more.
  using Claim = std::function<void(store::LaneMask lanes, std::int64_t generation)>;
  [[nodiscard]] std::optional<store::Holding> change(const EventId& relay, store::LaneMask wanted,
                                                     relay::TimePoint now,
                                                     std::chrono::milliseconds lease,
                                                     const Claim& claim);
  [[nodiscard]] std::int64_t generation_of(unsigned lane) const { return lanes_[lane].generation; }
  /// hold_lanes()
  [[nodiscard]] bool owns(store::LaneMask lanes, std::int64_t generation) const;

 private:
  struct Member {
    EventId id{};
    relay::TimePoint heartbeat{};
    bool gone{false};  ///< The process.
  };
  struct Lane {
    std::optional<EventId> owner;
    std::int64_t generation{0};
  };

  [[nodiscard]] static bool is_alive(const Member& member, relay::TimePoint now,
                                     std::chrono::milliseconds lease) {
    return !member.gone && now - member.heartbeat <= lease;
  }
  void give(std::optional<EventId> owner, store::LaneMask lanes, std::int64_t generation,
            const Claim& claim);

  std::vector<Member> members_;
  std::array<Lane, 64> lanes_;
  std::int64_t generation_{0};
};

}  // namespace outbox::sim
