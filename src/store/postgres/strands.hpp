// The cursors of a subscription's lanes.
#pragma once

#include <outbox/error.hpp>
#include <vector>

#include "store/postgres/connection.hpp"
#include "store/settlement.hpp"

namespace outbox::store::postgres {

/// The cursors in the answer of Queries::cursors.
[[nodiscard]] Result<std::vector<Strand>> to_strands(const Rows& rows);
/// The newest cursors of those of the lanes that have one; lanes at the same place share a strand.
[[nodiscard]] Result<std::vector<Strand>> read_strands(Connection& connection,
                                                       std::int32_t subscription, LaneMask lanes);

}  // namespace outbox::store::postgres
