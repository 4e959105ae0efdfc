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

// ---- What became of each event of the log in every subscription, for people
// (docs/design/status.md).

/// Selects events. A field that is not set does not restrict the selection.
struct EventFilter {
  std::optional<EventId> id{};
  std::string aggregate_type{};
  std::string aggregate_id{};
  std::string event_type{};
  /// Bounds of created_at: `since_us` is included, `until_us` is not. All times in this header are
  /// microseconds since 1970, UTC.
  std::optional<std::int64_t> since_us{};
  std::optional<std::int64_t> until_us{};
  std::optional<std::int64_t> before{};  ///< Only events with a lower seq: the next page.
};

/// What became of an event in one subscription.
struct EventLife {
  std::string subscription{};
  /// A frozen word. pending: not passed yet; skipped: the subscription began after the event;
  /// retrying, waiting, dead: it is parked; discarded, edited: a person ended its parking.
  std::string state{};
  bool apart{false};  ///< The task is delivered by its type's subscription, not its queue's.
  /// Only of `published`: the sink accepted it after created_at and no later than this.
  std::optional<std::int64_t> published_by_us{};
  // Only of an event that is or was parked:
  std::optional<std::int32_t> attempts{};
  std::optional<std::int64_t> next_attempt_at_us{};  ///< Only of `retrying`.
  std::string error{};
  std::optional<EventId> waiting_for{};  ///< Only of `waiting`: the first parked event of its key.
  std::optional<std::int64_t> waiting_for_seq{};
  std::string ended_by{};
  std::string reason{};
  std::optional<EventId> replaced_by{};  ///< Only of `edited`: its corrected copy.
};

struct EventListing {
  std::int64_t seq{0};
  EventId id{};
  std::string aggregate_type{};
  std::string aggregate_id{};
  std::string event_type{};
  std::string content_type{};
  Timestamp created_at{};
  std::optional<Timestamp> occurred_at{};
  /// False for a corrected copy of a parked event, and for a parked event that the log lost since.
  bool in_log{true};
  /// False for a corrected copy that was delivered or discarded: the store keeps its outcome only.
  /// The fields event_type, content_type, occurred_at, payload and headers are empty then.
  bool content_kept{true};
  std::vector<EventLife> subscriptions{};
  // Only with `whole`:
  std::string payload{};
  std::string headers{};  ///< A JSON object.
};

struct EventPage {
  std::vector<EventListing> events;
  /// False if the search ended before the oldest event, so that more may match.
  bool complete{true};
  /// Where it ended then, as EventFilter::before of a search that goes on.
  std::int64_t searched_from{0};
};

/// The most events that a search without a suitable index reads.
inline constexpr std::int64_t kMostSearched = 1'000'000;

/// It is used by one thread at a time.
class Events : public Interface {
 public:
  /// Returns at most `limit` events, the newest first. A search by id also finds events that are
  /// only in the tables of parked events. `whole` adds payloads and headers.
  [[nodiscard]] virtual Result<EventPage> list(const EventFilter& filter, std::size_t limit,
                                               bool whole) = 0;
};

// ---- What `outbox verify` reads (docs/design/verify.md): settlements, the events they cover, and
// sums of parked events, all as of one moment.

/// The transactions that a snapshot sees: those below `xmax`, except the ones running then.
struct Visible {
  std::uint64_t xmax{0};
  std::vector<std::uint64_t> running{};  ///< Ascending.

  [[nodiscard]] bool sees(std::uint64_t xid) const noexcept {
    return xid < xmax && !std::binary_search(running.begin(), running.end(), xid);
  }
  /// The lowest transaction that the snapshot does not see.
  [[nodiscard]] std::uint64_t first_unseen() const noexcept {
    return running.empty() ? xmax : running.front();
  }
  bool operator==(const Visible&) const = default;

  /// SQLite has no snapshots: its pairs all go from nothing() to everything().
  static constexpr std::uint64_t kOnlyTransaction = 1;
  static std::shared_ptr<const Visible> nothing() { return std::make_shared<const Visible>(); }
  static std::shared_ptr<const Visible> everything() {
    return std::make_shared<const Visible>(
        Visible{.xmax = std::numeric_limits<std::uint64_t>::max()});
  }
};
using VisiblePtr = std::shared_ptr<const Visible>;

/// A row of the ledger.
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

/// The events of these lanes with above < seq <= last that `upto` sees and `after` does not.
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

/// A row of the parked events, or of those that have left.
struct ParkedEntry {
  EventId id{};
  std::optional<ParkedOutcome> outcome{};  ///< Not set while it is parked.
  bool copied{false};                      ///< A corrected copy, which is not in the log.
};
using VisitParked = std::function<void(const ParkedEntry&)>;

/// What became of the events that settlements parked.
struct ParkedLedger {
  Tally parked{};     ///< All that were parked; an edited one counts under its id in the log.
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

/// The position of a row in the order of the ledger.
struct LedgerRank {
  std::int64_t generation{0};
  std::int64_t id{0};
  auto operator<=>(const LedgerRank&) const = default;
};

/// There is no higher generation.
inline constexpr std::int64_t kLastGeneration = std::numeric_limits<std::int64_t>::max();

/// Which history retention has removed, and the sums of the settlements that it removed.
struct Pruned {
  std::uint64_t below_xid{0};   ///< PostgreSQL: events of transactions below this may be gone.
  std::int64_t through_seq{0};  ///< SQLite: events up to this seq may be gone.
  std::int64_t events{0};       ///< The number of removed events since the baseline.
  std::int64_t acked{0};        ///< From here on: sums of the removed settlements.
  std::int64_t filtered{0};
  std::int64_t parked{0};
  std::int64_t discarded{0};  ///< The number of removed ends of parked events that were discards.
  LedgerRank newest{};        ///< The newest removed settlement; lower ones may remain.

  [[nodiscard]] bool any() const noexcept { return below_xid > 0 || through_seq > 0; }
  bool operator==(const Pruned&) const = default;
};

/// The moment as of which the ledger is read, and the parked events at it.
struct LedgerMoment {
  VisiblePtr now{};
  std::int64_t last_seq{kNoSeqBound};  ///< Only SQLite sets it.
  ParkedLedger parked{};
};

/// It is used by one thread at a time. Writes nothing; no transaction is open between calls.
class LedgerReader : public Interface {
 public:
  /// Fixes the moment as of which next_rows(), scan() and count() read.
  [[nodiscard]] virtual Result<LedgerMoment> begin(std::int32_t subscription,
                                                   const VisitParked& visit) = 0;
  [[nodiscard]] Result<LedgerMoment> begin(std::int32_t subscription) {
    return begin(subscription, {});
  }
  /// The same for next_rows() and scan() only: the parked events are not read.
  [[nodiscard]] virtual Status begin_rows(std::int32_t subscription) = 0;
  /// next_rows() goes on behind this row, up to the end of the generation `last`.
  virtual void seek(const LedgerRank& after, std::int64_t last) = 0;
  /// The next settlements in the order of (generation, id); empty at the end.
  [[nodiscard]] virtual Result<std::vector<LedgerRow>> next_rows(std::size_t limit) = 0;
  using Visit = std::function<void(std::span<const LedgerEvent>)>;
  /// Hands each event of the range to `visit` once, in pages, in any order.
  [[nodiscard]] virtual Status scan(const EventRange& range, const Visit& visit) = 0;
  /// The number of events in this range of the log, counted by the database.
  [[nodiscard]] virtual Result<std::int64_t> count(const EventRange& range) = 0;
  /// What has been removed until now, not until the moment of begin().
  [[nodiscard]] virtual Result<Pruned> pruned(std::int32_t subscription) = 0;
};

// ---- What continuous verification has compared (docs/design/verify.md, "All the time").

struct VerifiedRow {
  std::int32_t subscription{0};
  std::string name{};           ///< The subscription's.
  std::string place{};          ///< How far, as verify::Checkpoint writes it; may be empty.
  std::int64_t events{0};       ///< The number of events that were compared.
  std::int64_t differences{0};  ///< The faults that were found since a person has looked at them.
  std::string verifier{};       ///< Who has written the row.
  std::chrono::milliseconds age{0};  ///< How long ago it was written.
  std::int64_t revision{0};          ///< Changes whenever the row does; 0 if there is no row.
  std::int64_t now_us{0};            ///< The store's clock.
};

/// It is used by one thread at a time.
class Verified : public Interface {
 public:
  /// A row for each subscription, by name.
  [[nodiscard]] virtual Result<std::vector<VerifiedRow>> list() = 0;
  /// Writes the place and the verifier, and adds these events and differences. Returns false if the
  /// row has changed since it was read, or the subscription is gone.
  [[nodiscard]] virtual Result<bool> save(const VerifiedRow& read, const std::string& place,
                                          const std::string& verifier, std::int64_t events,
                                          std::int64_t differences) = 0;
  /// A person has looked at the differences. Returns false if the row has changed since it was
  /// read.
  [[nodiscard]] virtual Result<bool> forget_differences(const VerifiedRow& read) = 0;
};

// ---- Removing events that every subscription has passed, and rows about them
// (docs/design/retention.md).

/// The shortest time for which ends and results of tasks are kept; longer if events are.
inline constexpr std::chrono::milliseconds kLeastKept = std::chrono::hours(1);
/// The shortest time for which it is kept what people changed.
inline constexpr std::chrono::milliseconds kLeastAuditKept = std::chrono::hours(24);

/// The unit of removal: a partition of the log (PostgreSQL), or a range of seqs (SQLite).
struct LogPiece {
  enum class State : std::uint8_t {
    removable,
    empty,   ///< Its events were removed already.
    held,    ///< It is old enough, but the subscriptions `held_by` have not passed it.
    young,   ///< Its newest event is younger than what is kept.
    in_use,  ///< Transactions may still write to it.
  };

  std::string name;
  State state{State::in_use};
  std::vector<std::int32_t> held_by{};  ///< Empty if it is held for lack of subscriptions.
  std::int64_t bytes{0};                ///< Includes indexes; an estimate in SQLite.
  std::int64_t newest_us{0};            ///< The time of its newest event; 0 if it is empty.
  std::int64_t last_seq{0};             ///< 0 if it is empty.
  // For the store: transaction ids (PostgreSQL; 0: default partition) or seqs (SQLite).
  std::uint64_t first{0};
  std::uint64_t end{0};
};

[[nodiscard]] const char* to_string(LogPiece::State state) noexcept;

/// The pieces that are old enough to be removed, but that one subscription has not passed.
struct Hold {
  std::int32_t subscription{0};
  std::int64_t pieces{0};
  std::int64_t bytes{0};
  std::int64_t oldest_us{0};  ///< The time of the newest event in the oldest of these pieces.
};

[[nodiscard]] std::vector<Hold> find_holds(const std::vector<LogPiece>& pieces);

/// The result of remove().
struct Removal {
  bool removed{false};  ///< False if something holds or locks it; then nothing changed.
  std::int64_t events{0};
  std::string archived{};  ///< The file to which the events were written.
};

/// It is used by one thread at a time.
class Retention : public Interface {
 public:
  using Duration = std::chrono::milliseconds;

  /// Makes `who` the one that removes history, or extends its lease. Returns false if another one
  /// has it.
  [[nodiscard]] virtual Result<bool> hold(const EventId& who, Duration lease) = 0;
  [[nodiscard]] virtual Status release(const EventId& who) = 0;

  /// All pieces of the log, the oldest first. Events stay for `keep` after they were written.
  [[nodiscard]] virtual Result<std::vector<LogPiece>> survey(Duration keep) = 0;
  /// Removes a piece that is still removable, and notes it in the ledger. Its events are first
  /// written to a file in the folder `archive`, unless that is empty. A stop prevents removal.
  [[nodiscard]] virtual Result<Removal> remove(const LogPiece& piece, const std::string& archive,
                                               const std::stop_token& stop) = 0;
  /// Removes emptied partitions, old settlements and ends of parked events; returns how many.
  [[nodiscard]] virtual Result<std::int64_t> tidy(Duration keep, const std::stop_token& stop) = 0;
  /// Removes older rows of the inbox (docs/design/consumers.md).
  [[nodiscard]] virtual Status tidy_inbox(Duration keep, const std::stop_token& stop) = 0;
  /// Removes older rows of `audit` (docs/design/audit.md). A day's rows stay.
  [[nodiscard]] virtual Status tidy_audit(Duration keep, const std::stop_token& stop) = 0;
};

}  // namespace outbox::store
