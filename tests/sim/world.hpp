// A small world for the delivery core: a log with transactions that commit late, a sink that fails,
// relays that crash and continue as zombies, and events that it rejects for a while or for good.
// One seed decides everything. After every step the promises are checked against the world's own
// records (checks.hpp).
#pragma once

#include "sim/options.hpp"
#include "sim/result.hpp"

namespace outbox::sim {

[[nodiscard]] SimResult run(const SimOptions& options);

}  // namespace outbox::sim
