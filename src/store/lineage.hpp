// The repair of an outbox that was restored into another database (docs/design/lineage.md).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace outbox::store {

/// What a repair does, or did.
struct LineageRepair {
  struct Pending {
    std::string subscription;
    std::int64_t events{0};  ///< Restored ones that it still has to get, of all types.
  };

  bool needed{false};        ///< False: the outbox is of this database.
  std::int64_t restored{0};  ///< Events that came with the restore.
  std::int64_t fresh{0};     ///< Events that were written here since: every subscription gets them.
  std::vector<Pending> pending{};
};

}  // namespace outbox::store
