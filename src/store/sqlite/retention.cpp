// Removes events that every subscription has passed, a few per transaction
// (docs/design/retention.md).
#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "base/process.hpp"
#include "event/key.hpp"
#include "event/time_text.hpp"
#include "store/archive.hpp"
#include "store/background_pace.hpp"
#include "store/history.hpp"
#include "store/settlement.hpp"
#include "store/sql/audit.hpp"
#include "store/sqlite/clock.hpp"
#include "store/sqlite/event_row.hpp"
#include "store/sqlite/parts.hpp"
#include "store/sqlite/queries.hpp"
#include "store/sqlite/subscription_queries.hpp"

namespace outbox::store::sqlite {
namespace {

using Clock = std::chrono::steady_clock;

/// The most events of one call of remove(), and of one archive.
constexpr std::int64_t kMostEvents = 50'000;
/// The limits of one transaction, which takes a few milliseconds: writers wait for it.
constexpr std::int64_t kRowsAtOnce = 500;
constexpr std::int64_t kBytesAtOnce = std::int64_t{2} << 20U;
/// A relay may go on writing for a dropped subscription until it learns that the subscription is
/// gone.
constexpr std::chrono::milliseconds kLateRows = std::chrono::hours(24);
constexpr std::int64_t kNoEvents = std::numeric_limits<std::int64_t>::max();

struct LogPlace {
  std::int64_t seq{0};
  std::int64_t created_us{0};
};

/// How far a subscription is.
struct Position {
  std::int32_t subscription{0};
  std::int64_t cursor{0};
  std::int64_t start{0};  ///< Events up to this seq never counted.
  Tally tally{};
};

std::int64_t least_cursor(const std::vector<Position>& positions) {
  // Without a subscription nothing was delivered.
  std::int64_t least = positions.empty() ? 0 : kNoEvents;
  for (const Position& position : positions) least = std::min(least, position.cursor);
  return least;
}

class SqliteRetention final : public Retention {
 public:
  explicit SqliteRetention(Connection connection) : connection_(std::move(connection)) {}

  [[nodiscard]] Result<bool> hold(const EventId& who, Duration lease) override {
    const std::int64_t now = wall_us();
    const std::int64_t lease_us = lease.count() * 1000;
    OUTBOX_TRY(
        connection_.run(query::kHoldPruning, who.str(), now + lease_us, now, now + 10 * lease_us));
    return connection_.changes() == 1;
  }

  [[nodiscard]] Status release(const EventId& who) override {
    return connection_.run(query::kReleasePruning, who.str());
  }

  [[nodiscard]] Result<std::vector<LogPiece>> survey(Duration keep) override {
    OUTBOX_TRY(const auto positions, read_positions());
    OUTBOX_TRY(const auto first, place(query::kFirstFrom, 0));
    OUTBOX_TRY(const auto last, place(query::kLastBefore, kNoEvents));
    std::vector<LogPiece> pieces;
    if (!first || !last) return pieces;
    OUTBOX_TRY(const std::int64_t old_end,
               first_since(wall_us() - keep.count() * 1000, *first, *last));
    const std::int64_t passed_end = std::min(least_cursor(positions), last->seq) + 1;
    OUTBOX_TRY(const std::int64_t bytes, connection_.integer(query::kFileBytes));
    const auto add = [&](LogPiece::State state, std::int64_t from, std::int64_t end) -> Status {
      if (from >= end) return {};
      OUTBOX_TRY(const auto newest, place(query::kLastBefore, end));
      LogPiece piece{.name = "outbox_event", .state = state};
      piece.bytes =
          static_cast<std::int64_t>(static_cast<double>(bytes) * static_cast<double>(end - from) /
                                    static_cast<double>(last->seq + 1 - first->seq));
      piece.newest_us = newest ? newest->created_us : 0;
      piece.last_seq = end - 1;
      piece.first = static_cast<std::uint64_t>(from);
      piece.end = static_cast<std::uint64_t>(end);
      if (state == LogPiece::State::held) {
        for (const Position& position : positions) {
          if (position.cursor < end - 1) piece.held_by.push_back(position.subscription);
        }
      }
      pieces.push_back(std::move(piece));
      return {};
    };
    const std::int64_t removable_end = std::max(first->seq, std::min(old_end, passed_end));
    OUTBOX_TRY(add(LogPiece::State::removable, first->seq, removable_end));
    OUTBOX_TRY(add(LogPiece::State::held, removable_end, old_end));
    OUTBOX_TRY(add(LogPiece::State::young, std::max(old_end, removable_end), last->seq + 1));
    return pieces;
  }

  [[nodiscard]] Result<Removal> remove(const LogPiece& piece, const std::string& archive,
                                       const std::stop_token& stop) override {
    const auto from = static_cast<std::int64_t>(piece.first);
    const std::int64_t to =
        std::min(static_cast<std::int64_t>(piece.end) - 1, from + kMostEvents - 1);
    Removal removal;
    if (!archive.empty()) {
      OUTBOX_TRY(removal.archived, write_archive(archive, from, to, stop));
    }
    recorded_ = 0;
    for (bool more = true; more && !stop.stop_requested();) {
      const auto began = Clock::now();
      auto removed = remove_some(to);
      // A writer is busy; the next pass removes the rest.
      if (!removed && removed.error().remedy == Remedy::retry_call) break;
      if (!removed) return pass(removed);
      removal.events += *removed;
      more = *removed > 0;
      // Writers that wait for the lock try again now and then, and must find it free.
      if (more) rest_.after(began, stop);
    }
    removal.removed = removal.events > 0;
    return removal;
  }

  [[nodiscard]] Result<std::int64_t> tidy(Duration keep, const std::stop_token& stop) override {
    const std::int64_t before = wall_us() - keep.count() * 1000;
    OUTBOX_TRY(connection_.run(query::kForgetRelays, this_process().boot_id, monotonic_us()));
    OUTBOX_TRY(const std::int64_t dropped, remove_dropped(stop));
    OUTBOX_TRY(const std::int64_t settlements, remove_settlements(before, stop));
    OUTBOX_TRY(const std::int64_t ends, remove_ends(before, stop));
    OUTBOX_TRY(const std::int64_t replayed, remove_old(query::kRemoveReplayed, {}, stop));
    const std::int64_t noted = std::min(before, wall_us() - in_us(kLeastKept));
    OUTBOX_TRY(const std::int64_t tasks, remove_old(query::kRemoveTaskEnds, noted, stop));
    return dropped + settlements + ends + replayed + tasks;
  }

  [[nodiscard]] Status tidy_inbox(Duration keep, const std::stop_token& stop) override {
    const std::int64_t before = wall_us() - in_us(keep);
    auto removed = remove_old(query::kRemoveMessages, before, stop);
    if (removed) removed = remove_old(query::kRemoveMessageKeys, before, stop);
    return removed ? Status{} : Status(pass(removed));
  }

  [[nodiscard]] Status tidy_audit(Duration keep, const std::stop_token& stop) override {
    const std::int64_t before = wall_us() - in_us(std::max(keep, kLeastAuditKept));
    auto removed = remove_old(query::kRemoveAudit, before, stop);
    return removed ? Status{} : Status(pass(removed));
  }

 private:
  [[nodiscard]] Result<std::vector<Position>> read_positions() {
    OUTBOX_TRY(Statement row, connection_.query(query::kPositions));
    std::vector<Position> positions;
    while (row.has_row()) {
      positions.push_back({.subscription = static_cast<std::int32_t>(row.integer(0)),
                           .cursor = row.integer(1),
                           .start = row.integer(2)});
      OUTBOX_TRY(row.next());
    }
    return positions;
  }

  [[nodiscard]] Result<std::optional<LogPlace>> place(std::string_view query, std::int64_t seq) {
    OUTBOX_TRY(const Statement row, connection_.query(query, seq));
    if (!row.has_row()) return std::optional<LogPlace>{};
    return std::optional(LogPlace{.seq = row.integer(0), .created_us = row.integer(1)});
  }

  /// The first seq that was written at this time or later; one more than the last seq if there is
  /// none. It is found by bisection: the times ascend with seq, unless the clock was set back,
  /// which makes an event count as a little older or younger than it is.
  [[nodiscard]] Result<std::int64_t> first_since(std::int64_t since_us, const LogPlace& first,
                                                 const LogPlace& last) {
    std::int64_t low = first.seq;
    std::int64_t high = last.seq + 1;
    while (low < high) {
      const std::int64_t middle = low + (high - low) / 2;
      OUTBOX_TRY(const auto probe, place(query::kFirstFrom, middle));
      if (probe && probe->created_us < since_us) {
        low = probe->seq + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }

  [[nodiscard]] Result<std::string> write_archive(const std::string& directory, std::int64_t from,
                                                  std::int64_t to, const std::stop_token& stop) {
    OUTBOX_TRY(const auto newest, place(query::kLastBefore, to + 1));
    std::string time = event::time_text(newest ? newest->created_us : 0);
    std::replace(time.begin(), time.end(), ':', '-');
    OUTBOX_TRY(ArchiveFile file,
               ArchiveFile::create(directory, "events-" + time + "-seq-" + std::to_string(from) +
                                                  "-" + std::to_string(to)));
    while (from <= to && !stop.stop_requested()) {
      OUTBOX_TRY(Statement row, connection_.query(query::kArchived, from, to, kRowsAtOnce));
      if (!row.has_row()) break;
      while (row.has_row()) {
        from = row.integer(kSeq) + 1;
        OUTBOX_TRY(file.add(read_view(row)));
        OUTBOX_TRY(row.next());
      }
    }
    if (stop.stop_requested()) return std::string{};
    OUTBOX_TRY(file.close());
    return file.path();
  }

  /// Removes some of the oldest events, up to this seq, if the cursors have passed them: nobody can
  /// change a cursor meanwhile. Returns how many were removed.
  [[nodiscard]] Result<std::int64_t> remove_some(std::int64_t to) {
    OUTBOX_TRY(WriteTransaction transaction, WriteTransaction::begin(connection_));
    OUTBOX_TRY(auto positions, read_positions());
    std::int64_t last = 0;
    std::int64_t events = 0;
    {
      OUTBOX_TRY(
          Statement row,
          connection_.query(query::kOldestIds, std::min(to, least_cursor(positions)), kRowsAtOnce));
      for (std::int64_t bytes = 0; row.has_row() && bytes < kBytesAtOnce; ++events) {
        last = row.integer(0);
        bytes += row.integer(2);
        EventId id;
        const std::string_view stored = row.bytes(1);
        std::memcpy(id.bytes.data(), stored.data(), std::min(stored.size(), id.bytes.size()));
        for (Position& position : positions) {
          if (last > position.start) position.tally.add(event::id_hash(id));
        }
        OUTBOX_TRY(row.next());
      }
    }
    if (events == 0) return events;
    OUTBOX_TRY(connection_.run(query::kRemoveEvents, last));
    for (const Position& position : positions) {
      OUTBOX_TRY(note(position, last));
    }
    OUTBOX_TRY(recorded_, sql::record_batch(connection_, recorded_, events));
    OUTBOX_TRY(transaction.commit());
    return events;
  }

  /// Writes the tally into the ledger. The hash is added here, since SQLite makes a floating point
  /// number of a sum that is too large.
  [[nodiscard]] Status note(const Position& position, std::int64_t last) {
    if (position.tally.count == 0) return {};
    std::uint64_t hash = position.tally.hash;
    {
      OUTBOX_TRY(const Statement row, connection_.query(query::kPrunedHash, position.subscription));
      if (row.has_row()) hash += static_cast<std::uint64_t>(row.integer(0));
    }
    return connection_.run(query::kNotePruned, position.subscription, last, position.tally.count,
                           static_cast<std::int64_t>(hash), wall_us());
  }

  /// Removes settlements from the oldest on, up to the first one that is younger or covers an event
  /// that exists.
  [[nodiscard]] Result<std::int64_t> remove_settlements(std::int64_t before,
                                                        const std::stop_token& stop) {
    OUTBOX_TRY(const auto oldest, place(query::kFirstFrom, 0));
    const std::int64_t first_event = oldest ? oldest->seq : kNoEvents;
    std::int64_t removed = 0;
    OldSettlements batch;
    while (batch.more && !stop.stop_requested()) {
      const auto began = Clock::now();
      const std::int64_t after = batch.last;
      // Looks without the lock first, since most of thousands of subscriptions have nothing to
      // remove.
      OUTBOX_TRY(batch, old_settlements(after, before, first_event));
      if (batch.over.empty()) continue;
      OUTBOX_TRY(WriteTransaction transaction, WriteTransaction::begin(connection_));
      OUTBOX_TRY(batch, old_settlements(after, before, first_event));
      for (const std::int64_t id : batch.over) {
        OUTBOX_TRY(connection_.run(query::kNotePrunedSettlement, id, wall_us()));
        OUTBOX_TRY(connection_.run(query::kRemoveSettlement, id));
      }
      OUTBOX_TRY(transaction.commit());
      removed += static_cast<std::int64_t>(batch.over.size());
      if (batch.more) rest_.after(began, stop);
    }
    return removed;
  }

  struct OldSettlements {
    std::vector<std::int64_t> over;  ///< The ids of the settlements to remove.
    std::int64_t last{0};            ///< The last settlement that was looked at.
    bool more{true};                 ///< Whether there may be others to remove behind it.
  };

  /// Looks at some settlements after the given one.
  [[nodiscard]] Result<OldSettlements> old_settlements(std::int64_t after, std::int64_t before,
                                                       std::int64_t first_event) {
    OldSettlements old{.over = {}, .last = after, .more = false};
    std::map<std::int64_t, std::set<std::int64_t>> kept;  // by subscription
    std::int64_t seen = 0;
    OUTBOX_TRY(Statement row, connection_.query(query::kOldSettlements, after, kRowsAtOnce));
    for (; row.has_row(); ++seen) {
      old.last = row.integer(0);
      const std::int64_t subscription = row.integer(4);
      if (!kept.contains(subscription)) {
        OUTBOX_TRY(kept[subscription], kept_settlements(subscription));
      }
      const bool stays = row.bytes(1) == "reset" || kept[subscription].contains(old.last);
      const bool is_over =
          row.integer(3) < before && (row.bytes(1) == "retry" || row.integer(2) < first_event);
      if (!stays && !is_over) return old;
      if (!stays) old.over.push_back(old.last);
      OUTBOX_TRY(row.next());
    }
    old.more = seen == kRowsAtOnce;
    return old;
  }

  [[nodiscard]] Result<std::set<std::int64_t>> kept_settlements(std::int64_t subscription) {
    OUTBOX_TRY(const Statement row, connection_.query(query::kKeptSettlements, subscription));
    std::set<std::int64_t> kept;
    if (row.has_row()) kept = {row.integer(0), row.integer(1), row.integer(2)};
    return kept;
  }

  static std::int64_t in_us(Duration duration) {
    return std::chrono::microseconds(duration).count();
  }

  /// Removes rows of a table beside the log; if `before` is given, only rows of an earlier time.
  [[nodiscard]] Result<std::int64_t> remove_old(std::string_view sql,
                                                std::optional<std::int64_t> before,
                                                const std::stop_token& stop) {
    std::int64_t removed = 0;
    for (bool more = true; more && !stop.stop_requested();) {
      const auto began = Clock::now();
      OUTBOX_TRY(before ? connection_.run(sql, kRowsAtOnce, *before)
                        : connection_.run(sql, kRowsAtOnce));
      more = connection_.changes() == kRowsAtOnce;
      removed += connection_.changes();
      if (more) rest_.after(began, stop);
    }
    return removed;
  }

  /// Removes what is left of dropped subscriptions.
  [[nodiscard]] Result<std::int64_t> remove_dropped(const std::stop_token& stop) {
    std::int64_t removed = 0;
    for (const std::string_view sql :
         {query::kRemoveDropped, query::kRemoveDroppedEnds, query::kRemoveDroppedSums}) {
      OUTBOX_TRY(const std::int64_t rows, remove_old(sql, {}, stop));
      removed += rows;
    }
    OUTBOX_TRY(remove_old(query::kForgetDropped, wall_us() - in_us(kLateRows), stop));
    return removed;
  }

  [[nodiscard]] Result<std::int64_t> remove_ends(std::int64_t before, const std::stop_token& stop) {
    struct End {
      std::int64_t row;
      std::int64_t subscription;
      std::string outcome;
    };
    std::int64_t removed = 0;
    for (std::int64_t got = kRowsAtOnce; got == kRowsAtOnce && !stop.stop_requested();) {
      OUTBOX_TRY(WriteTransaction transaction, WriteTransaction::begin(connection_));
      std::vector<End> ends;
      {
        OUTBOX_TRY(Statement row, connection_.query(query::kOldEnds, before, kRowsAtOnce));
        while (row.has_row()) {
          ends.push_back(
              {.row = row.integer(0), .subscription = row.integer(1), .outcome = row.text(2)});
          OUTBOX_TRY(row.next());
        }
      }
      for (const End& end : ends) {
        OUTBOX_TRY(connection_.run(query::kRemoveEnd, end.row));
        OUTBOX_TRY(
            connection_.run(query::kNotePrunedEnd, end.subscription, end.outcome, wall_us()));
      }
      OUTBOX_TRY(transaction.commit());
      got = static_cast<std::int64_t>(ends.size());
      removed += got;
    }
    return removed;
  }

  Connection connection_;
  BackgroundPace rest_;
  /// The row of `audit` about what this call of remove() has removed; 0 if there is none.
  std::int64_t recorded_{0};
};

}  // namespace

std::unique_ptr<Retention> make_retention(Connection connection) {
  return std::make_unique<SqliteRetention>(std::move(connection));
}

}  // namespace outbox::store::sqlite
