// Removes old rows of the history (docs/design/history.md). The relay and `outbox prune` use it.
#pragma once

#include <chrono>
#include <cstdint>
#include <outbox/error.hpp>
#include <stop_token>

#include "store/store.hpp"

namespace outbox::history {

/// Removes the rows that are older than this by the store's clock, in batches. Returns how many;
/// with 0, which means that no history is kept here, none.
[[nodiscard]] Result<std::int64_t> prune(store::Store& store, std::chrono::milliseconds keep,
                                         const std::stop_token& stop);

}  // namespace outbox::history
