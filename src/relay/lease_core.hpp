// When the lease is renewed, how long it is trusted, and what the answer to a heartbeat means.
// Pure: it sends nothing, and knows no time but what it is told. Drivers: lease_renewer.cpp in a
// relay, tests/sim/groups/process.cpp in the simulation (docs/design/groups.md, "The cores").
#pragma once

#include <chrono>
#include <optional>
#include <outbox/error.hpp>
#include <string>

#include "relay/trust_deadline.hpp"

namespace outbox::relay {

[[nodiscard]] Error lease_lost(std::string message);

/// Until when a lease is trusted that was kept by a heartbeat which was sent at this time: less a
/// margin for messages on their way to the sinks.
[[nodiscard]] TimePoint trusted_until(TimePoint sent, std::chrono::milliseconds lease);

class LeaseCore {
 public:
  /// The lease of a relay that was registered just now.
  LeaseCore(std::chrono::milliseconds lease, TrustDeadline& trust, TimePoint now)
      : lease_(lease), trust_(trust), next_at_(now + lease / 3) {}

  /// When the next heartbeat is sent. None is sent after a failure.
  [[nodiscard]] TimePoint next_at() const { return next_at_; }
  /// The answer to the heartbeat that was sent at this time. It is false if another relay took this
  /// one for dead.
  void answered(const Result<bool>& kept, TimePoint sent, TimePoint now);
  /// Why the lease was lost or could not be renewed; nullopt if neither happened.
  [[nodiscard]] const std::optional<Error>& failure() const { return failure_; }

 private:
  const std::chrono::milliseconds lease_;
  TrustDeadline& trust_;
  TimePoint next_at_;
  std::optional<Error> failure_;
};

}  // namespace outbox::relay
