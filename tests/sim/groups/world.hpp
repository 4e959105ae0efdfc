// A world of several relays that share lanes. It has leases on the server's clock, takeovers,
// hand-overs, zombies, and crashes of the database.
#pragma once

#include "sim/groups/shared.hpp"

namespace outbox::sim {

[[nodiscard]] SimResult run(const GroupOptions& options);

}  // namespace outbox::sim
