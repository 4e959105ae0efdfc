// Several relays that share lanes: leases on the server's clock, takeovers, hand-over, zombies,
// crashes of the database.
#pragma once

#include "sim/groups/shared.hpp"

namespace outbox::sim {

[[nodiscard]] SimResult run(const GroupOptions& options);

}  // namespace outbox::sim
