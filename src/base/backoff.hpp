// Growing pauses with jitter. Pure: randomness comes from a seed.
#pragma once

#include <chrono>
#include <cstdint>

namespace outbox {

struct BackoffPolicy {
  std::chrono::nanoseconds first{std::chrono::milliseconds(100)};
  std::chrono::nanoseconds longest{std::chrono::seconds(30)};
};

/// The pause after the failed attempt `attempt` (the first is 1): first * 2^(attempt-1), at most
/// longest, times a factor in [0.75, 1.25) derived from the seed and the attempt.
[[nodiscard]] std::chrono::nanoseconds backoff(const BackoffPolicy& policy, int attempt,
                                               std::uint64_t seed);

}  // namespace outbox
