// The cursors of a subscription's lanes.
#pragma once

#include <outbox/error.hpp>
#include <vector>

#include "store/postgres/connection.hpp"
#include "store/settlement.hpp"

namespace outbox::store::postgres {

/// In the answer of Queries::cursors.
[[nodiscard]] Result<std::vector<Strand>> strands_of(const Rows& rows);
/// The newest cursor of every one of these lanes that has one, lanes at one place together.
[[nodiscard]] Result<std::vector<Strand>> read_strands(Connection& connection,
                                                       std::int32_t subscription, LaneMask lanes);

}  // namespace outbox::store::postgres
