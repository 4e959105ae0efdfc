// The tests of parking share these rules, and a short text for parked events.
#pragma once

#include <string>
#include <vector>

#include "relay/delivery_core.hpp"

namespace outbox::relay {

inline SubscriptionSpec spec_of(std::size_t max_attempts) {
  SubscriptionSpec spec{.name = "orders", .sink = "custom"};
  spec.max_attempts = max_attempts;
  spec.retry_jitter = 0;
  return spec;
}

inline ParkingRules rules(std::size_t max_attempts = 3) {
  return {.policy = subscription::RetryPolicy(spec_of(max_attempts)), .max_waiting = 1000};
}

/// Each event as its seq, state and attempts, for example "3 waiting 0".
inline std::vector<std::string> shown(const std::vector<store::ParkedEvent>& events) {
  std::vector<std::string> all;
  for (const auto& event : events)
    all.push_back(std::to_string(event.seq) + " " + to_string(event.state) + " " +
                  std::to_string(event.attempts));
  return all;
}

}  // namespace outbox::relay
