// Checks the settlements of a subscription on PostgreSQL against the log.
#pragma once

#include <string>

#include "support/pg.hpp"

namespace outbox::test {

/// Empty if the settlements of the subscription lead without a gap from its beginning to its
/// cursor, and their counts and hash sums are those of all events in the log. Call it when
/// everything is delivered and no relay runs.
[[nodiscard]] std::string ledger_fault(Pg& connection, const std::string& subscription);

}  // namespace outbox::test
