// What `outbox verify` reads: settlements, the events they cover, and sums of parked events, all of one moment
// (docs/design/verify.md).
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <outbox/error.hpp>
#include <outbox/event.hpp>
#include <span>
#include <vector>

#include "event/key.hpp"
#include "store/cursor.hpp"
#include "store/parked_events.hpp"
#include "store/part.hpp"
#include "store/settlement.hpp"

namespace outbox::store {

/// The transactions that a snapshot sees: those below `xmax` that were not running.
struct Visible {
  std::uint64_t xmax{0};
  std::vector<std::uint64_t> running{};  ///< Ascending.

  [[nodiscard]] bool sees(std::uint64_t xid) const noexcept {
    return xid < xmax && !std::binary_search(running.begin(), running.end(), xid);
  }
  /// The lowest transaction that it does not see.
  [[nodiscard]] std::uint64_t first_unseen() const noexcept {
    return running.empty() ? xmax : running.front();
  }
  bool operator==(const Visible&) const = default;

  /// SQLite, which has no snapshots: its one endless pair.
  static constexpr std::uint64_t kOnlyTransaction = 1;
  static std::shared_ptr<const Visible> nothing() { return std::make_shared<const Visible>(); }
  static std::shared_ptr<const Visible> everything() {
    return std::make_shared<const Visible>(
        Visible{.xmax = std::numeric_limits<std::uint64_t>::max()});
  }
};
using VisiblePtr = std::shared_ptr<const Visible>;

/// A row of the ledger. `s2` is null where it has none.
struct LedgerRow {
  std::int64_t id{0};
  std::int64_t at_us{0};  ///< Microseconds since 1970, UTC.
  SettlementKind kind{SettlementKind::settle};
  LaneMask lanes{kAllLanes};
  std::int64_t generation{0};
  VisiblePtr s1{};
  VisiblePtr s2{};
  std::int64_t from_position{0};
  std::optional<std::int64_t> position{};
  std::int64_t bound{0};
  Tally acked{};
  Tally filtered{};
  Tally parked{};
};

struct LedgerEvent {
  std::uint64_t xid{0};
  std::int64_t seq{0};
  std::uint8_t lane{0};
  EventId id{};
  std::int64_t created_at_us{0};  ///< Microseconds since 1970, UTC.
};

inline constexpr std::int64_t kNoSeqBound = std::numeric_limits<std::int64_t>::max();

/// The events of the lanes visible in `upto`, not in `after`, with above < seq <= last.
struct EventRange {
  LaneMask lanes{kAllLanes};
  VisiblePtr after{};
  VisiblePtr upto{};
  std::int64_t above{0};
  std::int64_t last{kNoSeqBound};

  [[nodiscard]] bool has(const LedgerEvent& event) const noexcept {
    return (lanes >> event.lane & 1U) != 0 && event.seq > above && event.seq <= last &&
           !after->sees(event.xid) && upto->sees(event.xid);
  }
};

/// A row of the parked events, or one of their ends.
struct ParkedEntry {
  EventId id{};
  std::optional<ParkedOutcome> outcome{};  ///< None: it is parked.
  bool copied{false};  ///< It stands for an event that was edited, and is not in the log.
};
using VisitParked = std::function<void(const ParkedEntry&)>;

/// What became of the events that settlements parked.
struct ParkedLedger {
  Tally parked{};     ///< As they entered: an edited event under the id that it had in the log.
  Tally delivered{};  ///< Those that left by being delivered.
  std::int64_t rows{0};
  std::int64_t discarded{0};

  void add(const ParkedEntry& entry) {
    const std::uint64_t hash = event::id_hash(entry.id);
    if (!entry.copied) parked.add(hash);
    if (!entry.outcome) ++rows;
    if (entry.outcome == ParkedOutcome::delivered) delivered.add(hash);
    if (entry.outcome == ParkedOutcome::discarded) ++discarded;
  }
};

/// Where a row of the ledger stands in its order.
struct LedgerRank {
  std::int64_t generation{0};
  std::int64_t id{0};
  auto operator<=>(const LedgerRank&) const = default;
};

/// History that retention removed, and what its settlements said.
struct Pruned {
  std::uint64_t below_xid{0};   ///< Events of transactions below are gone, or may be. PostgreSQL.
  std::int64_t through_seq{0};  ///< The same by seq. SQLite.
  std::int64_t events{0};       ///< How many, of those since the baseline.
  std::int64_t acked{0};        ///< Counted by settlements that are gone, too.
  std::int64_t filtered{0};
  std::int64_t parked{0};
  std::int64_t discarded{0};  ///< Ends of parked events that are gone: those that were discarded.
  LedgerRank newest{};        ///< Of those settlements. Others of lower ranks may be there.

  [[nodiscard]] bool any() const noexcept { return below_xid > 0 || through_seq > 0; }
  bool operator==(const Pruned&) const = default;
};

/// The moment that everything else is read of.
struct LedgerMoment {
  VisiblePtr now{};
  std::int64_t last_seq{kNoSeqBound};  ///< Of SQLite, which has no snapshots.
  ParkedLedger parked{};
};

/// One thread at a time. Writes nothing; no transaction is open between calls.
class LedgerReader : public Part {
 public:
  /// Fixes the moment of which the other calls read.
  [[nodiscard]] virtual Result<LedgerMoment> begin(std::int32_t subscription,
                                                   const VisitParked& visit) = 0;
  [[nodiscard]] Result<LedgerMoment> begin(std::int32_t subscription) {
    return begin(subscription, {});
  }
  /// The next settlements in the order of (generation, id), none at the end.
  [[nodiscard]] virtual Result<std::vector<LedgerRow>> next_rows(std::size_t limit) = 0;
  using Visit = std::function<void(std::span<const LedgerEvent>)>;
  /// Hands the events to `visit` in pages, each event once, in any order.
  [[nodiscard]] virtual Status scan(const EventRange& range, const Visit& visit) = 0;
  /// How many events the log has in this range, counted by the database.
  [[nodiscard]] virtual Result<std::int64_t> count(const EventRange& range) = 0;
  /// As of now.
  [[nodiscard]] virtual Result<Pruned> pruned(std::int32_t subscription) = 0;
};

}  // namespace outbox::store
