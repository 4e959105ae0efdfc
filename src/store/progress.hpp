// Progress of the subscriptions: cursors and appended settlements, and the events that were set aside.
#pragma once

#include <cstdint>
#include <outbox/error.hpp>
#include <span>
#include <vector>

#include "store/cursor.hpp"
#include "store/lane_owners.hpp"
#include "store/parked.hpp"
#include "store/part.hpp"
#include "store/replay.hpp"
#include "store/settlement.hpp"

namespace outbox::store {

enum class Durability : std::uint8_t { eventual, flushed };

/// What is written together, in one transaction.
struct ProgressBatch {
  std::span<const Settlement> settlements;
  /// Passed by these settlements.
  std::span<const ParkedEvent> parked{};
  std::span<const RetryResult> results{};
  std::span<const ReplayProgress> replays{};
};

/// One thread at a time.
class Progress : public Part {
 public:
  /// The newest cursor of each of these lanes, grouped. A subscription without one is an error, never a start.
  [[nodiscard]] virtual Result<std::vector<Strand>> load(std::int32_t subscription,
                                                         LaneMask lanes) = 0;
  /// Appends a claim for each of these strands at its cursor, under a generation that owns the lanes: for a subscription that its owner
  /// has not settled yet, and for lanes that have come to one place again, whose totals then continue in one row.
  [[nodiscard]] virtual Status claim(std::int32_t subscription, LaneMask lanes,
                                     std::int64_t generation) = 0;
  /// The keys of a subscription in these lanes that have parked events, those of dead ones only if `dead_block`.
  [[nodiscard]] virtual Result<std::vector<BlockedKey>> blocked_keys(std::int32_t subscription,
                                                                     LaneMask lanes,
                                                                     bool dead_block) = 0;
  /// Parked events in these lanes that are due, at most `keys`, and for each at most `behind` that wait behind it. Of lanes that another
  /// generation owns by now, none. `runs`: also what is running in these lanes, and what has become of the rows with these seqs.
  [[nodiscard]] virtual Result<DueEvents> due(std::int32_t subscription, const Holding& holding,
                                              std::size_t keys, std::size_t behind,
                                              const std::vector<std::int64_t>* runs) = 0;
  /// An empty batch writes nothing. What is parked, the results, and what replays did, count only under the generation that owns the lanes;
  /// otherwise nothing of the batch is written, and the error says so. A result whose row is gone counts nothing: a person
  /// decided meanwhile.
  [[nodiscard]] virtual Status append(const ProgressBatch& batch, Durability durability) = 0;
  /// SQL statements sent so far.
  [[nodiscard]] virtual std::uint64_t statements() const = 0;
};

}  // namespace outbox::store
