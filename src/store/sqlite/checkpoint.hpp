// Checkpoints of the WAL.
#pragma once

#include <cstdint>
#include <string>

#include "store/sqlite/connection.hpp"

namespace outbox::store::sqlite {

/// The size of the file's WAL; 0 when there is none.
[[nodiscard]] std::uint64_t wal_bytes(const std::string& database);

/// Copies the WAL into the file while another connection of ours holds the write lock: no commit runs meanwhile, which avoids
/// the WAL-reset bug (version.hpp). The WAL keeps its size and is used from its beginning again. Busy: Remedy::retry_call,
/// nothing is done.
[[nodiscard]] Status checkpoint_alone(Connection& connection);

}  // namespace outbox::store::sqlite
