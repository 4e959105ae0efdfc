// The members, and which lanes each one owns, by the rules of store/postgres/lane_owners.cpp. The
// clock is the server's.
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
  /// Registers the relay, or renews its lease. Returns false if it was not registered.
  bool keep(const EventId& relay, relay::TimePoint now);
  void leave(const EventId& relay);
  /// Relays on the same machine see at once that this process is gone.
  void process_ended(const EventId& relay);
  /// Like LaneOwners::change(). `claim` claims the cursors of lanes that have a new generation.
  /// Returns nullopt if this relay is not registered any more.
  using Claim = std::function<void(store::LaneMask lanes, std::int64_t generation)>;
  [[nodiscard]] std::optional<store::Holding> change(const EventId& relay, store::LaneMask wanted,
                                                     relay::TimePoint now,
                                                     std::chrono::milliseconds lease,
                                                     const Claim& claim);
  [[nodiscard]] const std::optional<EventId>& owner_of(unsigned lane) const {
    return lanes_[lane].owner;
  }
  /// Whether no other relay may take it for dead.
  [[nodiscard]] bool is_alive(const EventId& relay, relay::TimePoint now,
                              std::chrono::milliseconds lease) const;
  [[nodiscard]] std::int64_t generation_of(unsigned lane) const { return lanes_[lane].generation; }
  /// Like hold_lanes().
  [[nodiscard]] bool owns(store::LaneMask lanes, std::int64_t generation) const;

 private:
  struct Member {
    EventId id{};
    relay::TimePoint heartbeat{};
    bool gone{false};  ///< Whether the process is gone.
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
