// Where in the log a moment is.
#pragma once

#include <cstdint>

#include "store/sqlite/connection.hpp"

namespace outbox::store::sqlite {

/// The first seq that was written then or later; one behind the newest if there is none. Unit: microseconds since 1970, UTC.
[[nodiscard]] Result<std::int64_t> seq_at(Connection& connection, std::int64_t time_us);

}  // namespace outbox::store::sqlite
