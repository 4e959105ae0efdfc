// What relays read from the log, and what they write about their progress.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <outbox/error.hpp>
#include <outbox/event.hpp>
#include <outbox/time.hpp>
#include <span>
#include <string>
#include <string_view>
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

/// The memory that is counted for each event besides its payload, headers and other texts.
inline constexpr std::size_t kEventOverhead = 256;

/// The next read of the log, for the strands that are at one cursor.
struct PageRequest {
  LaneMask lanes{kAllLanes};
  Cursor cursor;
  std::size_t rows{1000};
  /// The page ends with the event that exceeds this, so it has at least one row.
  std::size_t bytes{std::size_t{8} << 20U};
  /// The caller will probably ask for the following page next, so the reader may request it ahead.
  bool ahead{false};
  /// A new pair ends at this snapshot (with its bound) instead of the present. Only for a drained
  /// cursor.
  std::shared_ptr<const Pair> until{};
};

/// Rows of the log in order, including those that no filter matches.
struct Page {
  std::shared_ptr<const Pair> pair;
  std::int64_t from{0};      ///< The position before this page; 0 if the pair begins here.
  std::int64_t position{0};  ///< The position after it.
  bool drained{false};       ///< The pair ends with this page.
  bool caught_up{false};     ///< The log had no more rows when this page was read.
  std::vector<EventView> events;
  std::size_t bytes{0};  ///< Payloads, headers and other texts, plus kEventOverhead for each event.
  std::shared_ptr<const void> storage;  ///< Owns the memory that `events` refer to.
  // About all events of the page; only set if several subscriptions share it.
  event::Kinds kinds;
  std::optional<Tally> tally{};

  /// Where the next page begins.
  [[nodiscard]] Cursor end() const {
    if (drained) return {.s1 = pair->s2};
    return {.s1 = pair->s1, .s2 = pair->s2, .position = position, .bound = pair->bound};
  }
};

[[nodiscard]] inline Tally make_tally(std::span<const EventView> events) {
  Tally tally;
  for (const EventView& event : events) tally.add(event::id_hash(event.id));
  return tally;
}

/// The standbys that must have an event before it goes out (PublishAfter::replicated).
struct Standbys {
  std::size_t count{1};
  std::vector<std::string> names{};  ///< If not empty, all of these instead of any `count`.

  [[nodiscard]] std::size_t wanted() const { return names.empty() ? count : names.size(); }
};

/// How far the standbys are.
struct Replication {
  std::size_t flushed{0};    ///< How many of the wanted kind have flushed what was asked for.
  std::size_t connected{0};  ///< How many of that kind are connected.
  bool hidden{false};        ///< This login may not see how far they are.
};

/// It is used by one thread at a time. A fetch is split in two so that a page is read while the
/// last one is sent.
class LogReader : public Interface {
 public:
  /// Prepares to read from these cursors; precedes start(). PostgreSQL writes its mark here.
  [[nodiscard]] virtual Status begin(std::span<const Cursor> cursors) = 0;
  /// Sends a request; finish() must be called before the next start().
  [[nodiscard]] virtual Status start(const PageRequest& request) = 0;
  /// Waits for the page of the last start().
  [[nodiscard]] virtual Result<Page> finish() = 0;
  /// Waits until all that is visible in the newest s2 that this reader took itself survives a crash
  /// of the database (P3). Must succeed before a sink gets events of that pair, and before its s2
  /// becomes an s1, even if the pair is empty.
  [[nodiscard]] virtual Status wait_durable() = 0;
  /// Asks which standbys have flushed all that is visible in the newest s2 that this reader took
  /// itself; before the first one, all that was in the log when begin() was called.
  [[nodiscard]] virtual Result<Replication> replication(const Standbys& standbys) = 0;
  /// How many SQL statements were sent so far.
  [[nodiscard]] virtual std::uint64_t statements() const = 0;
};

// ---- Wakes an idle reader when events are committed.

/// How a relay learns of new events at the moment.
struct FeedState {
  bool streams{false};    ///< The store's log tells of each commit (docs/design/feed.md).
  std::string trouble{};  ///< Why it does not, if the relay wants it to.

  [[nodiscard]] bool operator==(const FeedState&) const = default;
};

/// interrupt() and feed() may be called by any thread; the rest is used by one thread at a time.
class Wakeup : public Interface {
 public:
  enum class Wake : std::uint8_t { notified, timeout, interrupted };

  /// What a stream of the store's log has told a reader that has read to the end of a snapshot.
  enum class Told : std::uint8_t {
    nothing,  ///< There is no stream, so only arm() makes commits wake.
    late,     ///< A commit of which it told before the snapshot was taken is not in it: poll soon.
    more,     ///< A commit that is not in it, since then: the reader polls at once.
    all,      ///< Every commit that the snapshot does not contain will wake: call wait().
  };
  [[nodiscard]] virtual Result<Told> told(std::string_view snapshot) = 0;
  [[nodiscard]] virtual FeedState feed() const = 0;

  /// Returns true if from now on every commit wakes (nearly every one while another relay is armed
  /// instead); then poll once more and call wait(). Returns false if the relay must keep polling,
  /// since writers are in flight or the store cannot notify.
  [[nodiscard]] virtual Result<bool> arm() = 0;
  [[nodiscard]] virtual Status disarm() = 0;
  /// If stays_armed(), wait() may follow a timeout and a poll that found nothing without arm().
  [[nodiscard]] virtual Result<Wake> wait(Duration longest) = 0;
  [[nodiscard]] virtual bool stays_armed() const = 0;
  virtual void interrupt() noexcept = 0;
  /// How many SQL statements were sent so far.
  [[nodiscard]] virtual std::uint64_t statements() const = 0;
};

// ---- Progress of subscriptions: cursors, appended settlements, and parked events.

enum class Durability : std::uint8_t { eventual, flushed };

/// What is written in one transaction.
struct ProgressBatch {
  std::span<const Settlement> settlements;
  /// Events that these settlements pass and that become parked.
  std::span<const ParkedEvent> parked{};
  std::span<const RetryResult> results{};
  std::span<const ReplayProgress> replays{};
};

/// Whether this batch hands events over to runs of workers (docs/design/tasks.md). Such a batch
/// must survive a crash of the store, or the tasks would begin again beside their runs.
[[nodiscard]] inline bool begins_runs(const ProgressBatch& batch) {
  const auto runs = [](const auto& row) { return row.state == ParkedState::running; };
  return std::any_of(batch.parked.begin(), batch.parked.end(), runs) ||
         std::any_of(batch.results.begin(), batch.results.end(), runs);
}

/// It is used by one thread at a time.
class Progress : public Interface {
 public:
  /// The newest cursors of these lanes, grouped. A subscription without one is an error.
  [[nodiscard]] virtual Result<std::vector<Strand>> load(std::int32_t subscription,
                                                         LaneMask lanes) = 0;
  /// Appends a claim at the cursor of each of these strands, under a generation that owns the
  /// lanes. Needed if this owner has not settled the subscription yet, and if lanes have met at one
  /// position, so that their totals continue in one row.
  [[nodiscard]] virtual Status claim(std::int32_t subscription, LaneMask lanes,
                                     std::int64_t generation) = 0;
  /// Starts the lanes in which the subscription has no cursor at the cursor of `base`, under a
  /// generation that owns the lanes.
  [[nodiscard]] virtual Status begin_beside(std::int32_t base, std::int32_t subscription,
                                            LaneMask lanes, std::int64_t generation) = 0;
  /// The keys of the subscription in these lanes that have a row. If dead events do not block (any
  /// more), first releases the keys that they block.
  [[nodiscard]] virtual Result<ParkedKeys> parked_keys(std::int32_t subscription, LaneMask lanes,
                                                       bool dead_block) = 0;
  /// Parked events in these lanes that are due, the longest due first, and the events that wait
  /// behind them. Lanes that another generation owns by now are left out. Also answers `asked`.
  [[nodiscard]] virtual Result<DueEvents> due(std::int32_t subscription, const Holding& holding,
                                              const DueLimits& limits,
                                              std::span<const AskedRow> asked) = 0;
  /// Writes the batch; an empty one writes nothing. Parked events, results and replays count only
  /// under the generation that owns the lanes; otherwise nothing is written, and that is an error.
  /// docs/design/parking.md says what a result does. Returns the keys without a row, sorted.
  [[nodiscard]] virtual Result<std::vector<ReleasedKey>> append(const ProgressBatch& batch,
                                                                Durability durability) = 0;
  /// How many SQL statements were sent so far.
  [[nodiscard]] virtual std::uint64_t statements() const = 0;
};

}  // namespace outbox::store
