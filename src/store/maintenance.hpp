// Work that keeps a store healthy: partitions ahead of the writers (PostgreSQL), checkpoints (SQLite).
#pragma once

#include <outbox/error.hpp>
#include <string>

#include "store/part.hpp"

namespace outbox::store {

/// One thread at a time.
class Maintenance : public Part {
 public:
  /// What was done, for the log; empty: nothing was due.
  [[nodiscard]] virtual Result<std::string> run() = 0;
};

}  // namespace outbox::store
