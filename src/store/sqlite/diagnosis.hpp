// What `outbox doctor` asks of a SQLite file and its file system.
#pragma once

#include <chrono>

#include "store/diagnosis.hpp"

namespace outbox::store::sqlite {

[[nodiscard]] Diagnosis diagnose(const StoreOptions& options,
                                 std::chrono::steady_clock::time_point until);

}  // namespace outbox::store::sqlite
