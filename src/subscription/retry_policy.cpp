#include "subscription/retry_policy.hpp"

#include <algorithm>

#include "base/hash.hpp"
#include "base/text.hpp"
#include "base/units.hpp"

namespace outbox::subscription {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLongestDelay = std::chrono::hours(24 * 30);
constexpr std::size_t kMostDelays = 1000;

}  // namespace

RetryPolicy::RetryPolicy(const SubscriptionSpec& spec)
    : delays_(spec.delays),
      max_attempts_(spec.delays.empty() ? spec.max_attempts : spec.delays.size() + 1),
      base_(spec.retry_base),
      factor_(spec.retry_factor),
      cap_(spec.retry_cap),
      jitter_(spec.retry_jitter) {}

void RetryPolicy::check(const SubscriptionSpec& spec, FieldErrors& errors) {
  if (spec.delays.size() > kMostDelays) errors.add({"delays", "has more than 1000 entries"});
  const auto wrong = [](milliseconds delay) { return delay.count() < 0 || delay > kLongestDelay; };
  if (std::any_of(spec.delays.begin(), spec.delays.end(), wrong))
    errors.add({"delays", "a pause is below 0 or longer than 30 days"});
  if (spec.max_attempts == 0)
    errors.add({"max_attempts", "is 0", "1: an event is never tried again"});
  if (spec.max_waiting == 0) errors.add({"max_waiting", "is 0", "at least 1"});
  if (spec.retry_factor == 0)
    errors.add({"retry_factor", "is 0", "1: every pause is as long as the first"});
  if (spec.retry_base.count() <= 0) errors.add({"retry_base", "is not above 0"});
  if (spec.retry_cap < spec.retry_base)
    errors.add(
        {"retry_cap", "is shorter than retry_base", "the longest pause is at least the first one"});
  if (spec.retry_jitter > 50) errors.add({"retry_jitter", "is more than 50 percent"});
}

std::optional<milliseconds> RetryPolicy::pause_after(std::size_t attempts,
                                                     std::uint64_t seed) const {
  if (attempts >= max_attempts_) return std::nullopt;
  const milliseconds pause = exact_pause(attempts);
  // The factor is between 1 - jitter and 1 + jitter, in parts of ten thousand.
  const auto spread = static_cast<std::int64_t>(jitter_ * 100);
  const auto random = static_cast<std::int64_t>(splitmix64(seed ^ splitmix64(attempts)) %
                                                static_cast<std::uint64_t>(2 * spread + 1));
  return milliseconds(pause.count() * (10'000 - spread + random) / 10'000);
}

milliseconds RetryPolicy::exact_pause(std::size_t attempts) const {
  const std::size_t step = std::max<std::size_t>(attempts, 1) - 1;
  if (!delays_.empty()) return delays_[std::min(step, delays_.size() - 1)];
  milliseconds pause = base_;
  for (std::size_t i = 0; i < step && pause < cap_; ++i) {
    const milliseconds longer = pause * static_cast<std::int64_t>(factor_);
    if (longer == pause) break;
    pause = longer;
  }
  return std::min(pause, cap_);
}

}  // namespace outbox::subscription
