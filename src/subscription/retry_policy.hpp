// When a parked event is tried again, and when it is dead. Pure: randomness comes from a seed.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <outbox/subscription.hpp>
#include <vector>

#include "base/field_error.hpp"

namespace outbox::subscription {

class RetryPolicy {
 public:
  /// The spec must have no errors.
  explicit RetryPolicy(const SubscriptionSpec& spec);
  static void check(const SubscriptionSpec& spec, FieldErrors& errors);

  /// The pause after this many failed attempts; nullopt if the event is dead.
  [[nodiscard]] std::optional<std::chrono::milliseconds> pause_after(std::size_t attempts,
                                                                     std::uint64_t seed) const;

 private:
  [[nodiscard]] std::chrono::milliseconds exact_pause(std::size_t attempts) const;

  std::vector<std::chrono::milliseconds> delays_;
  std::size_t max_attempts_;
  std::chrono::milliseconds base_;
  std::size_t factor_;
  std::chrono::milliseconds cap_;
  std::size_t jitter_;  ///< Percent.
};

}  // namespace outbox::subscription
