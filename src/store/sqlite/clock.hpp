// The two clocks of the store. The file belongs to one machine, so the machine's clocks are the
// database's clocks.
#pragma once

#include <chrono>
#include <cstdint>

namespace outbox::store::sqlite {

template <class Clock>
[[nodiscard]] std::int64_t now_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(Clock::now().time_since_epoch())
      .count();
}

/// Microseconds since 1970, UTC. It is used for rows.
[[nodiscard]] inline std::int64_t wall_us() { return now_us<std::chrono::system_clock>(); }
/// Microseconds of CLOCK_MONOTONIC, which is the same for all processes of a boot. It is used for
/// leases, which a change of the wall clock must not end.
[[nodiscard]] inline std::int64_t monotonic_us() { return now_us<std::chrono::steady_clock>(); }

}  // namespace outbox::store::sqlite
