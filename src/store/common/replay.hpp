// What both stores say about replays, and how they put the places of lanes together.
#pragma once

#include <outbox/error.hpp>
#include <vector>

#include "store/replay.hpp"

namespace outbox::store {

[[nodiscard]] tl::unexpected<Error> begins_too_early(std::int64_t first, const RetainedLog& log);
[[nodiscard]] tl::unexpected<Error> another_is_running();
[[nodiscard]] tl::unexpected<Error> not_stopped(std::int64_t replay);

/// Each of these lanes at the greatest position of the places that have it, else at `start`; lanes at one position together.
[[nodiscard]] std::vector<ReplayPlace> places_of(const std::vector<ReplayPlace>& rows,
                                                 std::int64_t start, LaneMask lanes);

}  // namespace outbox::store
