// Writes events for the command line and the benchmarks. Applications use outbox/postgres.hpp and outbox/sqlite.hpp.
#pragma once

#include <outbox/error.hpp>
#include <outbox/event.hpp>
#include <span>
#include <vector>

#include "store/part.hpp"

namespace outbox::store {

/// One thread at a time.
class Writer : public Part {
 public:
  /// All of them in one transaction, or none. Ids in the order of the events.
  [[nodiscard]] virtual Result<std::vector<EventId>> write(std::span<const Event> events) = 0;
};

}  // namespace outbox::store
