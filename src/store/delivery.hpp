// What delivery reads of the log and writes about it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <outbox/duration.hpp>
#include <outbox/error.hpp>
#include <outbox/event.hpp>
#include <span>
#include <vector>

#include "event/key.hpp"
#include "event/kinds.hpp"
#include "store/interface.hpp"
#include "store/ownership.hpp"
#include "store/parked.hpp"
#include "store/replay.hpp"
#include "store/settlement.hpp"

namespace outbox::store {

// ---- Reading the log, page by page.

/// Memory that an event costs besides its payload, headers and other texts.
inline constexpr std::size_t kEventOverhead = 256;

/// What to read next for the strands at one cursor.
struct PageRequest {
  LaneMask lanes{kAllLanes};
  Cursor cursor;
  std::size_t rows{1000};
  /// The page ends once its events exceed this; it has at least one row.
  std::size_t bytes{std::size_t{8} << 20U};
  /// The next request will probably be for the next page: the reader may send it ahead.
  bool ahead{false};
  /// Ends a new pair at this snapshot (with its bound) instead of the present. Only with a drained cursor.
  std::shared_ptr<const Pair> until{};
};

/// Rows of the log in order, whether or not a filter matches them.
struct Page {
  std::shared_ptr<const Pair> pair;
  std::int64_t from{0};      ///< The position before this page; 0: the pair begins here.
  std::int64_t position{0};  ///< The position after it.
  bool drained{false};       ///< The pair ends with this page.
  bool caught_up{false};     ///< The log had no more rows when this was read.
  std::vector<EventView> events;
  std::size_t bytes{0};  ///< Payloads, headers and other texts, with kEventOverhead for each event.
  std::shared_ptr<const void> storage;  ///< Owns what `events` point into.
  // Of all events; only where several subscriptions share the page.
  event::Kinds kinds;
  std::optional<Tally> tally{};

  /// Where the next page begins.
  [[nodiscard]] Cursor end() const {
    if (drained) return {.s1 = pair->s2};
    return {.s1 = pair->s1, .s2 = pair->s2, .position = position, .bound = pair->bound};
  }
};

[[nodiscard]] inline Tally tally_of(std::span<const EventView> events) {
  Tally tally;
  for (const EventView& event : events) tally.add(event::id_hash(event.id));
  return tally;
}

/// One thread at a time. A fetch has two halves, so that the next page is read while the last one is worked on.
class LogReader : public Interface {
 public:
  /// Prepares for reading from these cursors; before the first start(). PostgreSQL writes its mark here.
  [[nodiscard]] virtual Status begin(std::span<const Cursor> cursors) = 0;
  /// Sends a request; finish() must follow before the next.
  [[nodiscard]] virtual Status start(const PageRequest& request) = 0;
  /// Waits for the page.
  [[nodiscard]] virtual Result<Page> finish() = 0;
  /// Waits until everything visible in the newest s2 that this reader took itself would survive a crash of the database
  /// (P3). Must succeed before that pair's events are handed to a sink and before the pair's s2 is used as a new s1, empty
  /// pairs included.
  [[nodiscard]] virtual Status wait_durable() = 0;
  /// SQL statements sent so far.
  [[nodiscard]] virtual std::uint64_t statements() const = 0;
};

// ---- Wakes an idle reader when events are committed.

/// interrupt() from any thread; the rest from one thread at a time.
class Wakeup : public Interface {
 public:
  enum class Wake : std::uint8_t { notified, timeout, interrupted };

  /// True: every commit from now on will wake (while another relay is armed instead: nearly every one); poll once more, then wait().
  /// False: writers are in flight, or this store cannot notify; keep polling.
  [[nodiscard]] virtual Result<bool> arm() = 0;
  [[nodiscard]] virtual Status disarm() = 0;
  /// After a timeout it may be called again without arm(), once a poll has found nothing, if it stays armed.
  [[nodiscard]] virtual Result<Wake> wait(Duration longest) = 0;
  [[nodiscard]] virtual bool stays_armed() const = 0;
  virtual void interrupt() noexcept = 0;
  /// SQL statements sent so far.
  [[nodiscard]] virtual std::uint64_t statements() const = 0;
};

// ---- Progress of the subscriptions: cursors and appended settlements, and the events that were set aside.

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
class Progress : public Interface {
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
