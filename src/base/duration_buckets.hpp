// Durations in buckets, four to an octave: fewer than two hundred numbers tell how long many runs
// took, from a microsecond to days, within an eighth. Pure.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

namespace outbox {

inline constexpr std::size_t kDurationBuckets = 172;

[[nodiscard]] std::size_t duration_bucket(std::chrono::nanoseconds duration) noexcept;

/// The number of durations in each bucket.
using DurationCounts = std::map<std::size_t, std::uint64_t>;
/// The duration that this share of all does not exceed (0.5: the median); nullopt without any.
[[nodiscard]] std::optional<std::chrono::nanoseconds> duration_quantile(
    const DurationCounts& counts, double share);

}  // namespace outbox
