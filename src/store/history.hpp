// The log beside delivery: what became of events, what is verified, and what is removed.
#pragma once

#include <algorithm>
#include <chrono>
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
#include <stop_token>
#include <string>
#include <vector>

#include "event/key.hpp"
#include "store/interface.hpp"
#include "store/parked.hpp"
#include "store/settlement.hpp"

namespace outbox::store {

// ---- Events of the log and what became of each in every subscription, for people (docs/design/status.md).

/// Which events; what is not given does not matter.
struct EventFilter {
  std::optional<EventId> id{};
  std::string aggregate_type{};
  std::string aggregate_id{};
  std::string event_type{};
  /// By created_at, from and before. Unit: microseconds since 1970, UTC, as all times here.
  std::optional<std::int64_t> since_us{};
  std::optional<std::int64_t> until_us{};
};

/// What became of an event in one subscription.
struct EventLife {
  std::string subscription{};
  /// pending: not passed yet. published. filtered. skipped: the subscription began after it. retrying, waiting, dead: parked.
  /// discarded, edited: parked, until a person ended that. The words are frozen.
  std::string state{};
  bool apart{
      false};  ///< A task that a subscription of its type delivers, not this one of its queue.
  /// Of `published`: accepted between created_at and this.
  std::optional<std::int64_t> published_by_us{};
  // Of an event that is or was parked:
  std::optional<std::int32_t> attempts{};
  std::optional<std::int64_t> next_attempt_at_us{};  ///< Of `retrying`.
  std::string error{};
  std::optional<EventId> waiting_for{};  ///< Of `waiting`: the first parked event of its key.
  std::optional<std::int64_t> waiting_for_seq{};
  std::string ended_by{};
  std::string reason{};
  std::optional<EventId> replaced_by{};  ///< Of `edited`: its corrected copy.
};

struct EventListing {
  std::int64_t seq{0};
  EventId id{};
  std::string aggregate_type{};
  std::string aggregate_id{};
  std::string event_type{};
  std::string content_type{};
  std::int64_t created_at_us{0};
  std::optional<std::int64_t> occurred_at_us{};
  /// False: a corrected copy of a parked event, or one that was removed from the log since it was parked.
  bool in_log{true};
  std::vector<EventLife> subscriptions{};
  // Only with `whole`:
  std::string payload{};
  std::string headers{};  ///< A JSON object.
};

struct EventPage {
  std::vector<EventListing> events;
  /// False: there may be older ones beyond those that were looked at.
  bool complete{true};
};

/// Events that are looked at, at most, where no index leads to those that are wanted.
inline constexpr std::int64_t kMostSearched = 1'000'000;

/// One thread at a time.
class Events : public Interface {
 public:
  /// The newest first, at most `limit`. By id also those that are only known as parked. `whole`: with payload and headers.
  [[nodiscard]] virtual Result<EventPage> list(const EventFilter& filter, std::size_t limit,
                                               bool whole) = 0;
};

// ---- What `outbox verify` reads: settlements, the events they cover, and sums of parked events, all of one moment
// (docs/design/verify.md).

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
class LedgerReader : public Interface {
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

// ---- Removing delivered history (docs/design/retention.md): events that every subscription has passed, and the rows about them.

/// Ends and results of tasks are kept as long as events, and at least this long.
inline constexpr std::chrono::milliseconds kLeastKept = std::chrono::hours(1);
/// What consumers have applied.
inline constexpr std::chrono::milliseconds kInboxKept = std::chrono::hours(24 * 30);

/// A part of the log that goes as a whole: a partition (PostgreSQL), a range of seqs (SQLite).
struct LogPiece {
  enum class State : std::uint8_t {
    removable,
    empty,   ///< Its events were removed.
    held,    ///< Old enough, but `held_by` have not passed it.
    young,   ///< Its newest event is younger than what is kept.
    in_use,  ///< Transactions may still write to it.
  };

  std::string name;
  State state{State::in_use};
  std::vector<std::int32_t>
      held_by{};              ///< Subscriptions. None, though held: there is no subscription.
  std::int64_t bytes{0};      ///< With indexes; SQLite: an estimate.
  std::int64_t newest_us{0};  ///< Microseconds since 1970, UTC: its newest event; 0: none.
  std::int64_t last_seq{0};   ///< 0: none.
  // The store's own: transaction ids (PostgreSQL; 0: the default partition), or seqs, from `first` to before `end`.
  std::uint64_t first{0};
  std::uint64_t end{0};
};

[[nodiscard]] const char* to_string(LogPiece::State state) noexcept;

/// What one subscription holds back: old enough to go, but not passed by it.
struct Hold {
  std::int32_t subscription{0};
  std::int64_t pieces{0};
  std::int64_t bytes{0};
  std::int64_t oldest_us{0};  ///< The newest event of the oldest of these pieces.
};

[[nodiscard]] std::vector<Hold> holds_of(const std::vector<LogPiece>& pieces);

/// What a call of remove() did.
struct Removal {
  bool removed{
      false};  ///< False: something holds it after all, or it is locked; nothing was changed.
  std::int64_t events{0};
  std::string archived{};  ///< The file that has them.
};

/// One thread at a time.
class Retention : public Interface {
 public:
  using Duration = std::chrono::milliseconds;

  /// Becomes or remains the one that removes history. False: another one does.
  [[nodiscard]] virtual Result<bool> hold(const EventId& who, Duration lease) = 0;
  [[nodiscard]] virtual Status release(const EventId& who) = 0;

  /// The log, the oldest first. `keep`: how long history is kept after it was written.
  [[nodiscard]] virtual Result<std::vector<LogPiece>> survey(Duration keep) = 0;
  /// Removes a piece that survey() called removable, if that is still true, and notes it in the ledger. Before that, writes its events to a file
  /// in `archive`, unless that is empty. A stop ends it with `removed` false.
  [[nodiscard]] virtual Result<Removal> remove(const LogPiece& piece, const std::string& archive,
                                               const std::stop_token& stop) = 0;
  /// Removes what is left of removed events: emptied partitions, old settlements, ends of parked events. Returns how many rows.
  [[nodiscard]] virtual Result<std::int64_t> tidy(Duration keep, const std::stop_token& stop) = 0;
};

}  // namespace outbox::store
