// The optional indexes of the log that find events by id and by key. Each costs every writer.
#pragma once

#include <outbox/error.hpp>
#include <string>
#include <vector>

#include "store/postgres/connection.hpp"

namespace outbox::store::postgres {

/// Makes what is missing, beside writers; goes on where an earlier run ended. Returns the names of what was made.
[[nodiscard]] Result<std::vector<std::string>> make_lookup_indexes(Connection& connection);

}  // namespace outbox::store::postgres
