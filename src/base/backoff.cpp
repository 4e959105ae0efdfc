#include "base/backoff.hpp"

#include <algorithm>

#include "base/hash.hpp"

namespace outbox {

std::chrono::nanoseconds backoff(const BackoffPolicy& policy, int attempt, std::uint64_t seed) {
  const int doublings = std::clamp(attempt - 1, 0, 40);
  auto pause = policy.first;
  for (int i = 0; i < doublings && pause < policy.longest; ++i) pause *= 2;
  pause = std::min(pause, policy.longest);
  const auto random = splitmix64(seed ^ static_cast<std::uint64_t>(attempt)) >> 11U;
  const double factor = 0.75 + 0.5 * (static_cast<double>(random) / 9007199254740992.0);
  return std::chrono::nanoseconds(
      static_cast<std::int64_t>(static_cast<double>(pause.count()) * factor));
}

}  // namespace outbox
