// Checkpoints of the WAL, and whether the linked SQLite can be trusted with them.
#pragma once

#include <cstdint>
#include <string>

#include "store/sqlite/connection.hpp"

namespace outbox::store::sqlite {

/// 3.7.0 to 3.51.2: when one connection starts a second checkpoint right after a complete one while another connection
/// commits, the file can be corrupted (https://sqlite.org/wal.html, "the WAL-reset bug"). With such a version the relay
/// leaves checkpoints to the application.
[[nodiscard]] constexpr bool has_wal_reset_bug(int version_number) noexcept {
  return version_number >= 3007000 && version_number < 3051003;
}

/// The size of the file's WAL; 0 when there is none.
[[nodiscard]] std::uint64_t wal_bytes(const std::string& database);

/// Copies the WAL into the file while another connection of ours holds the write lock: no commit runs meanwhile, which avoids
/// the WAL-reset bug. The WAL keeps its size and is used from its beginning again. Busy: Remedy::retry_call,
/// nothing is done.
[[nodiscard]] Status checkpoint_alone(Connection& connection);

}  // namespace outbox::store::sqlite
