// Makes what a connection has read survive power loss (P3), whatever the writers' PRAGMA
// synchronous is.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <outbox/error.hpp>

#include "store/sqlite/connection.hpp"

namespace outbox::store::sqlite {

/// Syncs through SQLite's own file handles: they are the files that the connection reads, and no
/// descriptor of ours is closed, which would drop SQLite's locks.
class DurableRead {
 public:
  /// Call after reading, on the same connection: remembers which commits were visible at the
  /// latest.
  [[nodiscard]] Status note(Connection& connection);

  /// Returns when everything read before the last note() is on disk. Costs nothing when no commit
  /// came since.
  [[nodiscard]] Status wait(Connection& connection);

 private:
  using WalHeader = std::array<unsigned char, 32>;

  std::optional<std::int64_t> noted_;    ///< data_version at the last note().
  std::optional<std::int64_t> durable_;  ///< data_version of which everything is on disk.
  WalHeader header_{};                   ///< Of the WAL at the last sync.
};

}  // namespace outbox::store::sqlite
