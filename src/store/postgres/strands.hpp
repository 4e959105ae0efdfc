// The cursors in the rows of the statement `cursors`.
#pragma once

#include <outbox/error.hpp>
#include <vector>

#include "store/cursor.hpp"
#include "store/postgres/rows.hpp"

namespace outbox::store::postgres {

/// The newest cursor of every lane that has one, lanes at one place together. Rows: lanes, s1, s2, position, l, generation;
/// the newest first.
[[nodiscard]] Result<std::vector<Strand>> strands_of(const Rows& rows);

}  // namespace outbox::store::postgres
