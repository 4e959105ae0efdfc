// Reading the log, page by page.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <outbox/error.hpp>
#include <outbox/event.hpp>
#include <span>
#include <vector>

#include "event/key.hpp"
#include "event/kinds.hpp"
#include "store/cursor.hpp"
#include "store/part.hpp"
#include "store/settlement.hpp"

namespace outbox::store {

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
class LogReader : public Part {
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

}  // namespace outbox::store
