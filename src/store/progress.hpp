// Progress of the subscriptions: loads cursors, appends settlements, never updates.
#pragma once

#include <cstdint>
#include <outbox/error.hpp>
#include <span>
#include <vector>

#include "store/cursor.hpp"
#include "store/part.hpp"
#include "store/settlement.hpp"

namespace outbox::store {

enum class Durability : std::uint8_t { eventual, flushed };

/// What is written together, in one transaction.
struct ProgressBatch {
  std::span<const Settlement> settlements;
};

/// One thread at a time.
class Progress : public Part {
 public:
  /// The newest cursor of every lane, grouped. A subscription without one is an error, never a start.
  [[nodiscard]] virtual Result<std::vector<Strand>> load(std::int32_t subscription) = 0;
  /// An empty batch writes nothing.
  [[nodiscard]] virtual Status append(const ProgressBatch& batch, Durability durability) = 0;
  /// SQL statements sent so far.
  [[nodiscard]] virtual std::uint64_t statements() const = 0;
};

}  // namespace outbox::store
