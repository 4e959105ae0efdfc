// The two clocks of the store. One machine has the file, so its clocks are the database's clocks.
#pragma once

#include <chrono>
#include <cstdint>

namespace outbox::store::sqlite {

template <class Clock>
[[nodiscard]] std::int64_t now_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(Clock::now().time_since_epoch())
      .count();
}

/// Microseconds since 1970, UTC: for rows.
[[nodiscard]] inline std::int64_t wall_us() { return now_us<std::chrono::system_clock>(); }
/// Microseconds of CLOCK_MONOTONIC, the same for all processes of a boot: for leases, which a
/// change of the wall clock must not end.
[[nodiscard]] inline std::int64_t monotonic_us() { return now_us<std::chrono::steady_clock>(); }

}  // namespace outbox::store::sqlite
