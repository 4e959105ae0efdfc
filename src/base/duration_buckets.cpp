#include "base/duration_buckets.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace outbox {
namespace {

/// Bucket 0 has the nanoseconds below 2^8; then each octave has four buckets.
constexpr std::size_t kFirstOctave = 8;
constexpr std::size_t kQuarters = 4;

std::chrono::nanoseconds middle(std::size_t bucket) {
  if (bucket == 0) return std::chrono::nanoseconds(1U << (kFirstOctave - 1));
  const std::size_t octave = kFirstOctave + (bucket - 1) / kQuarters;
  const std::uint64_t eighths = 2 * (kQuarters + (bucket - 1) % kQuarters) + 1;
  return std::chrono::nanoseconds(static_cast<std::int64_t>(eighths << (octave - 3)));
}

}  // namespace

std::size_t duration_bucket(std::chrono::nanoseconds duration) noexcept {
  const auto count = static_cast<std::uint64_t>(std::max<std::int64_t>(duration.count(), 0));
  const auto width = static_cast<std::size_t>(std::bit_width(count));
  if (width <= kFirstOctave) return 0;
  const std::size_t octave = width - 1;
  const std::size_t quarter = (count >> (octave - 2)) & 3U;
  return std::min(1 + (octave - kFirstOctave) * kQuarters + quarter, kDurationBuckets - 1);
}

std::optional<std::chrono::nanoseconds> duration_quantile(const DurationCounts& counts,
                                                          double share) {
  std::uint64_t all = 0;
  for (const auto& [bucket, count] : counts) all += count;
  if (all == 0) return std::nullopt;
  const auto wanted = static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(all)));
  std::uint64_t seen = 0;
  for (const auto& [bucket, count] : counts) {
    seen += count;
    if (seen >= wanted && count > 0) return middle(bucket);
  }
  return middle(counts.rbegin()->first);
}

}  // namespace outbox
