// Makes sure that what a connection has read survives power loss (P3), whatever the writers' PRAGMA
// synchronous is.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <outbox/error.hpp>

#include "store/sqlite/connection.hpp"

namespace outbox::store::sqlite {

/// It syncs through SQLite's own file handles: they are the files that the connection reads, and no
/// descriptor of ours is closed, which would drop SQLite's locks.
class DurableRead {
 public:
  /// Remembers which commits were visible at the latest. Must be called after reading, on the same
  /// connection.
  [[nodiscard]] Status note(Connection& connection);

  /// Returns when everything read before the last note() is on disk. Costs nothing when there was
  /// no commit since.
  [[nodiscard]] Status wait(Connection& connection);

 private:
  using WalHeader = std::array<unsigned char, 32>;

  std::optional<std::int64_t> noted_;    ///< The data_version at the last note().
  std::optional<std::int64_t> durable_;  ///< The data_version up to which everything is on disk.
  WalHeader header_{};                   ///< The header of the WAL at the last sync.
};

}  // namespace outbox::store::sqlite
