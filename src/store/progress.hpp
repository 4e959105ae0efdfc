// Progress of the subscriptions: cursors and appended settlements, and the events that were set aside.
#pragma once

#include <algorithm>
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

/// Whether sends go on as runs of their workers once this is written (docs/design/tasks.md). A crash of the store must not take it back:
/// the tasks would begin again beside them.
[[nodiscard]] inline bool begins_runs(const ProgressBatch& batch) {
  const auto runs = [](const auto& row) { return row.state == ParkedState::running; };
  return std::any_of(batch.parked.begin(), batch.parked.end(), runs) ||
         std::any_of(batch.results.begin(), batch.results.end(), runs);
}

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
  /// Those of these lanes in which the subscription has no cursor yet begin where `base` stands. Under a generation that owns the lanes.
  [[nodiscard]] virtual Status begin_beside(std::int32_t base, std::int32_t subscription,
                                            LaneMask lanes, std::int64_t generation) = 0;
  /// The keys of a subscription in these lanes that have something to do. Unless dead events block, those that one blocks go on first.
  [[nodiscard]] virtual Result<ParkedKeys> parked_keys(std::int32_t subscription, LaneMask lanes,
                                                       bool dead_block) = 0;
  /// Parked events in these lanes that are due, the longest due first, and what waits behind them. Of lanes that another generation owns
  /// by now, none. `asked`: also what has become of these.
  [[nodiscard]] virtual Result<DueEvents> due(std::int32_t subscription, const Holding& holding,
                                              const DueLimits& limits,
                                              std::span<const AskedRow> asked) = 0;
  /// An empty batch writes nothing. What is parked, the results, and what replays did, count only under the generation that owns the lanes;
  /// otherwise nothing of the batch is written, and the error says so. What a result does, docs/design/parking.md says ("The law").
  /// Returns the keys of the batch that have nothing to do any more, in order.
  [[nodiscard]] virtual Result<std::vector<ReleasedKey>> append(const ProgressBatch& batch,
                                                                Durability durability) = 0;
  /// SQL statements sent so far.
  [[nodiscard]] virtual std::uint64_t statements() const = 0;
};

}  // namespace outbox::store
