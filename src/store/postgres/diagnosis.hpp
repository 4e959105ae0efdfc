// What `outbox doctor` asks of a PostgreSQL server.
#pragma once

#include <chrono>

#include "store/diagnosis.hpp"

namespace outbox::store::postgres {

[[nodiscard]] Diagnosis diagnose(const StoreOptions& options,
                                 std::chrono::steady_clock::time_point until);

}  // namespace outbox::store::postgres
