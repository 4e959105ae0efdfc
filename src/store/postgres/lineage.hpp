// The repair of an outbox whose transaction ids are of another database (docs/design/lineage.md).
#pragma once

#include <outbox/error.hpp>

#include "store/lineage.hpp"
#include "store/postgres/connection.hpp"

namespace outbox::store::postgres {

/// What repair_lineage() would do. Changes nothing.
[[nodiscard]] Result<LineageRepair> plan_lineage_repair(Connection& connection);

/// As the owner of the schema. Writers wait meanwhile.
[[nodiscard]] Result<LineageRepair> repair_lineage(Connection& connection);

}  // namespace outbox::store::postgres
