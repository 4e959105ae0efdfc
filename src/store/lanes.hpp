// Lanes: the 64 hash slices of the keys that relays divide among themselves.
#pragma once

#include <cstdint>

namespace outbox::store {

/// One bit per lane.
using LaneMask = std::uint64_t;
inline constexpr LaneMask kAllLanes = ~LaneMask{0};

}  // namespace outbox::store
