// outbox/histogram.hpp: how often something took how long, in buckets with fixed bounds.
//
//   const outbox::DurationHistogram& latency = report.totals.front().sends.latency;
//   std::printf("%.3f s on average\n", latency.seconds / latency.count());
//
// Threads: values; const methods from any thread.
// Lifetime: values own what they have.
// Errors: none.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace outbox {

struct DurationHistogram {
  /// The upper bounds of the buckets, those of OpenTelemetry for messaging and a few longer ones.
  /// Unit: seconds.
  static constexpr std::array<double, 18> bounds{
      0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 30, 60, 300, 3600};
  /// How many took at most bounds[i], and more than the bound before it. The last one has those
  /// that took longer than all bounds.
  std::array<std::uint64_t, bounds.size() + 1> counts{};
  double seconds{0};  ///< How long all of them took together.

  [[nodiscard]] static std::size_t bucket(double took) noexcept {
    std::size_t place = 0;
    for (const double bound : bounds) place += took > bound ? 1 : 0;
    return place;
  }
  void add(std::chrono::nanoseconds took) noexcept {
    const double length = std::chrono::duration<double>(took).count();
    ++counts[bucket(length)];
    seconds += length;
  }
  [[nodiscard]] std::uint64_t count() const noexcept {
    std::uint64_t all = 0;
    for (const std::uint64_t one : counts) all += one;
    return all;
  }
  DurationHistogram& operator+=(const DurationHistogram& more) noexcept {
    for (std::size_t i = 0; i < counts.size(); ++i) counts[i] += more.counts[i];
    seconds += more.seconds;
    return *this;
  }
};

}  // namespace outbox
