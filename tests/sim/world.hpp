// A small world for the delivery core: a log with transactions that commit late, a sink that fails
// and rejects events for a while or for good, and relays that crash or continue as zombies. One
// seed decides everything. After every step the promises are checked against the world's own
// records (checks.hpp).
#pragma once

#include "sim/options.hpp"
#include "sim/result.hpp"

namespace outbox::sim {

[[nodiscard]] SimResult run(const SimOptions& options);

}  // namespace outbox::sim
