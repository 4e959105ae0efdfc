// The two clocks of the store. One machine has the file, so its clocks are the database's clocks.
#pragma once

#include <cstdint>
#include <string>

namespace outbox::store::sqlite {

/// Microseconds since 1970, UTC: for rows.
[[nodiscard]] std::int64_t wall_us();
/// Microseconds of CLOCK_MONOTONIC, the same for all processes of a boot: for leases, which a change of the wall clock
/// must not end.
[[nodiscard]] std::int64_t monotonic_us();
/// RFC 3339.
[[nodiscard]] std::string time_text(std::int64_t us_since_1970);

}  // namespace outbox::store::sqlite
