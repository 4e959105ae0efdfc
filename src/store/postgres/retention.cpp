// Removes partitions whose events every subscription has passed (docs/design/retention.md).
#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "event/key.hpp"
#include "event/time_text.hpp"
#include "store/archive.hpp"
#include "store/background_pace.hpp"
#include "store/history.hpp"
#include "store/postgres/error_map.hpp"
#include "store/postgres/event_row.hpp"
#include "store/postgres/parts.hpp"
#include "store/postgres/retention_queries.hpp"
#include "store/postgres/snapshot.hpp"
#include "store/settlement.hpp"
#include "store/sql/audit.hpp"

namespace outbox::store::postgres {
namespace {

constexpr int kXid = kFirstExtra;
constexpr int kLane = kFirstExtra + 1;
/// The rows per statement. Whole events are read in smaller numbers, since each may have a payload
/// of a megabyte.
constexpr std::int64_t kIdsAtOnce = 1000;
constexpr std::int64_t kEventsAtOnce = 100;
constexpr std::int32_t kRowsAtOnce = 2000;

/// How far a subscription is done on some lanes; without a snapshot these lanes have no cursor.
/// Subscription 0 stands for the present: all transactions that are over.
struct Done {
  std::int32_t subscription{0};
  std::optional<Snapshot> snapshot;

  /// Whether every transaction of the piece is over, and visible.
  [[nodiscard]] bool has_passed(const LogPiece& piece) const {
    if (!snapshot || piece.end > snapshot->xmax) return false;
    const auto first = std::lower_bound(snapshot->xip.begin(), snapshot->xip.end(), piece.first);
    return first == snapshot->xip.end() || *first >= piece.end;
  }
};

/// What a subscription has to count on some lanes, and its ledger's entry.
struct Account {
  std::int32_t subscription{0};
  LaneMask lanes{kAllLanes};
  Snapshot before;  ///< Events that are visible in it do not count.
  Snapshot begun;   ///< Nor do events that are visible in this one, up to `position`.
  std::int64_t position{0};
  Tally tally;

  /// Whether all events of transactions from `xid` on count.
  [[nodiscard]] bool has_all_from(std::uint64_t xid) const {
    return lanes == kAllLanes && position == 0 && before.xip.empty() && before.xmax <= xid;
  }
  static bool sees(const Snapshot& snapshot, std::uint64_t xid) {
    return xid < snapshot.xmax &&
           !std::binary_search(snapshot.xip.begin(), snapshot.xip.end(), xid);
  }
  void add(std::uint64_t xid, std::int64_t seq, std::int16_t lane, std::uint64_t hash) {
    if ((lanes >> static_cast<unsigned>(lane) & 1U) == 0) return;
    if (!sees(before, xid) && !(seq <= position && sees(begun, xid))) tally.add(hash);
  }
};

/// What was read of a piece before it is removed.
struct Contents {
  std::vector<std::int32_t> whole;  ///< Subscriptions for which every event counts, as for most.
  Tally all;                        ///< The tally of each of those.
  std::vector<Account> accounts;    ///< The accounts of the other subscriptions.
  std::int64_t events{0};
  std::int64_t first_seq{0};
  std::int64_t last_seq{0};
};

bool is_default(const LogPiece& piece) { return piece.end == 0; }

/// Such as "events-2026-01-05T08-09-12.123456Z-event_x3". No two pieces have the same name, even if
/// the outbox was recreated.
std::string archive_name(const LogPiece& piece) {
  std::string time = event::time_text(piece.newest_us);
  std::replace(time.begin(), time.end(), ':', '-');
  return "events-" + time + "-" + piece.name;
}

class PostgresRetention final : public Retention {
 public:
  explicit PostgresRetention(Connection connection)
      : connection_(std::move(connection)), queries_(connection_.queries().schema) {
    // A relay that stops waits for the statement that is under way here.
    connection_.set_deadline(std::chrono::seconds(10));
  }

  [[nodiscard]] Result<bool> hold(const EventId& who, Duration lease) override {
    const auto held = connection_.exec(queries_.hold, {who, lease.count()});
    if (!held && is_locked(held.error())) return false;
    if (!held) return fail(held.error());
    return held->boolean(0, 0);
  }

  [[nodiscard]] Status release(const EventId& who) override {
    OUTBOX_TRY(const Rows done, connection_.exec(queries_.release, {who}));
    return {};
  }

  [[nodiscard]] Result<std::vector<LogPiece>> survey(Duration keep) override {
    OUTBOX_TRY(const Rows partitions, connection_.exec(queries_.partitions));
    OUTBOX_TRY(const std::vector<Done> cursors, read_cursors());
    std::vector<LogPiece> pieces;
    for (int row = 0; row < partitions.size(); ++row) {
      LogPiece piece{.name = partitions.text(row, 0), .bytes = partitions.int8(row, 3)};
      if (!partitions.is_null(row, 1)) {
        piece.first = partitions.uint64(row, 1);
        piece.end = partitions.uint64(row, 2);
      }
      OUTBOX_TRY(look(piece, cursors, keep));
      // The default partition is always there, and almost always empty.
      if (!is_default(piece) || piece.state != LogPiece::State::empty)
        pieces.push_back(std::move(piece));
    }
    return pieces;
  }

  [[nodiscard]] Result<Removal> remove(const LogPiece& piece, const std::string& archive,
                                       const std::stop_token& stop) override {
    std::optional<ArchiveFile> file;
    if (!archive.empty()) {
      auto created = ArchiveFile::create(archive, archive_name(piece));
      if (!created) return pass(created);
      file.emplace(std::move(*created));
    }
    OUTBOX_TRY(const Contents contents, read(piece, file, stop));
    if (stop.stop_requested()) return Removal{};
    Removal removal{.events = contents.events};
    if (file) {
      OUTBOX_TRY(file->close());
      removal.archived = file->path();
    }
    OUTBOX_TRY(removal.removed, remove(piece, contents));
    return removal;
  }

  [[nodiscard]] Result<std::int64_t> tidy(Duration keep, const std::stop_token& stop) override {
    OUTBOX_TRY(const Rows dropped, limited(queries_.drop_emptied));
    OUTBOX_TRY(const Rows oldest, planned(queries_.oldest));
    const Param least = oldest.empty() ? Param::null() : Param(std::to_string(oldest.uint64(0, 0)));
    OUTBOX_TRY(const Rows subscriptions, connection_.exec(queries_.subscriptions));
    std::int64_t removed = 0;
    Status status;
    status = prune(queries_.prune_dropped, {}, stop, removed);
    for (int row = 0; status && row < subscriptions.size(); ++row)
      status = prune_settlements(subscriptions.int4(row, 0), keep, least, stop, removed);
    if (status) status = prune_ends(keep, stop, removed);
    if (status) status = prune(queries_.prune_replayed, {}, stop, removed);
    if (status)
      status = prune(queries_.prune_task_ends, std::max<Duration>(keep, kLeastKept), stop, removed);
    // The next pass removes the rest.
    if (!status && !is_locked(status.error())) return pass(status);
    return removed;
  }

  [[nodiscard]] Status tidy_inbox(Duration keep, const std::stop_token& stop) override {
    std::int64_t removed = 0;
    Status status = prune(queries_.prune_inbox, keep, stop, removed);
    if (status) status = prune(queries_.prune_inbox_keys, keep, stop, removed);
    return !status && is_locked(status.error()) ? Status{} : status;
  }

  [[nodiscard]] Status tidy_audit(Duration keep, const std::stop_token& stop) override {
    std::int64_t removed = 0;
    Status status = prune(queries_.prune_audit, keep, stop, removed);
    return !status && is_locked(status.error()) ? Status{} : status;
  }

 private:
  [[nodiscard]] Result<Rows> planned(const Query& query, Params params = {}) {
    return connection_.exec_with(&Queries::plan_settings, query, std::move(params));
  }
  [[nodiscard]] Result<Rows> limited(const Query& query, Params params = {}) {
    return connection_.exec_with(&Queries::limits, query, std::move(params));
  }

  [[nodiscard]] Result<std::vector<Done>> read_cursors() {
    OUTBOX_TRY(const Rows rows, planned(queries_.cursors));
    std::vector<Done> cursors;
    for (int row = 0; row < rows.size(); ++row) {
      Done done{.subscription = rows.int4(row, 0), .snapshot = std::nullopt};
      if (!rows.is_null(row, 1)) {
        OUTBOX_TRY(done.snapshot, parse_snapshot(rows.bytes(row, 1)));
      }
      cursors.push_back(std::move(done));
    }
    return cursors;
  }

  /// Sets the state of the piece.
  [[nodiscard]] Status look(LogPiece& piece, const std::vector<Done>& cursors, Duration keep) {
    using State = LogPiece::State;
    const bool any = is_default(piece);
    piece.state = State::in_use;
    if (!any && !cursors.front().has_passed(piece)) return {};
    OUTBOX_TRY(const Rows newest,
               any ? planned(queries_.newest_default, {keep.count()})
                   : planned(queries_.newest, {std::to_string(piece.first),
                                               std::to_string(piece.end), keep.count()}));
    piece.state = State::empty;
    if (newest.empty()) return {};
    piece.last_seq = newest.int8(0, 0);
    piece.newest_us = newest.time_us(0, 1);
    piece.state = State::young;
    if (newest.boolean(0, 2)) return {};
    bool over = true;  // whether all transactions of the piece are over
    for (const Done& done : cursors) {
      OUTBOX_TRY(const bool passed, has_passed(done, piece));
      if (passed) continue;
      if (done.subscription == 0) {
        over = false;
      } else if (std::find(piece.held_by.begin(), piece.held_by.end(), done.subscription) ==
                 piece.held_by.end()) {
        piece.held_by.push_back(done.subscription);
      }
    }
    OUTBOX_TRY(add_replays(piece));
    const bool nobody = cursors.size() == 1;
    piece.state = !over                              ? State::in_use
                  : nobody || !piece.held_by.empty() ? State::held
                                                     : State::removable;
    return {};
  }

  [[nodiscard]] Status add_replays(LogPiece& piece) {
    const auto bound = [&](std::uint64_t xid) {
      return is_default(piece) ? Param::null() : Param(std::to_string(xid));
    };
    OUTBOX_TRY(const Rows rows, planned(queries_.replays, {bound(piece.first), bound(piece.end)}));
    for (int row = 0; row < rows.size(); ++row) {
      const std::int32_t subscription = rows.int4(row, 0);
      if (std::find(piece.held_by.begin(), piece.held_by.end(), subscription) ==
          piece.held_by.end())
        piece.held_by.push_back(subscription);
    }
    return {};
  }

  [[nodiscard]] Result<bool> has_passed(const Done& done, const LogPiece& piece) {
    if (!is_default(piece) || !done.snapshot) return done.has_passed(piece);
    OUTBOX_TRY(const Rows holds,
               planned(queries_.holds_default, {std::to_string(done.snapshot->xmax),
                                                Param::xid8_array(done.snapshot->xip)}));
    return !holds.boolean(0, 0);
  }

  [[nodiscard]] Result<Contents> accounts(const LogPiece& piece) {
    OUTBOX_TRY(const Rows rows, planned(queries_.baselines));
    Contents contents;
    for (int row = 0; row < rows.size(); ++row) {
      Account account{.subscription = rows.int4(row, 0),
                      .lanes = static_cast<LaneMask>(rows.int8(row, 4)),
                      .before = {},
                      .begun = {},
                      .position = rows.int8(row, 3),
                      .tally = {}};
      if (!rows.is_null(row, 1)) {
        OUTBOX_TRY(account.before, parse_snapshot(rows.bytes(row, 1)));
      }
      if (!rows.is_null(row, 2)) {
        OUTBOX_TRY(account.begun, parse_snapshot(rows.bytes(row, 2)));
      }
      if (account.has_all_from(piece.first)) {
        contents.whole.push_back(account.subscription);
      } else {
        contents.accounts.push_back(std::move(account));
      }
    }
    return contents;
  }

  /// Reads the whole piece. Its transactions are over, so that no rows can appear between two of
  /// these statements.
  [[nodiscard]] Result<Contents> read(const LogPiece& piece, std::optional<ArchiveFile>& file,
                                      const std::stop_token& stop) {
    OUTBOX_TRY(Contents contents, accounts(piece));
    const std::int64_t most = file ? kEventsAtOnce : kIdsAtOnce;
    const Query& query = is_default(piece) ? queries_.default_events : queries_.events;
    for (std::int64_t got = most; got == most && !stop.stop_requested();) {
      const auto began = BackgroundPace::Clock::now();
      OUTBOX_TRY(const Rows rows,
                 planned(query, {std::to_string(piece.first), std::to_string(piece.end),
                                 contents.last_seq, most, file.has_value()}));
      got = rows.size();
      for (int row = 0; row < rows.size(); ++row) {
        OUTBOX_TRY(take(rows, row, contents, file));
      }
      rest_.after(began, stop);
    }
    return contents;
  }

  [[nodiscard]] static Status take(const Rows& rows, int row, Contents& contents,
                                   std::optional<ArchiveFile>& file) {
    contents.last_seq = rows.int8(row, kSeq);
    if (contents.events++ == 0) contents.first_seq = contents.last_seq;
    const std::uint64_t hash = event::id_hash(rows.uuid(row, kId));
    contents.all.add(hash);
    for (Account& account : contents.accounts)
      account.add(rows.uint64(row, kXid), contents.last_seq, rows.int2(row, kLane), hash);
    if (!file) return {};
    EventView event = read_view(rows, row);
    add_parts(event, rows.bytes(row, kPayload), rows.bytes(row, kHeaders));
    return file->add(event);
  }

  /// Returns false if something holds the piece after all, or if it is locked.
  [[nodiscard]] Result<bool> remove(const LogPiece& piece, const Contents& contents) {
    std::vector<std::int64_t> subscriptions;
    std::vector<std::int64_t> counts;
    std::vector<std::int64_t> hashes;
    const auto note = [&](std::int32_t subscription, const Tally& tally) {
      if (tally.count == 0) return;
      subscriptions.push_back(subscription);
      counts.push_back(tally.count);
      hashes.push_back(static_cast<std::int64_t>(tally.hash));
    };
    for (const std::int32_t subscription : contents.whole) note(subscription, contents.all);
    for (const Account& account : contents.accounts) note(account.subscription, account.tally);
    Params params = is_default(piece)
                        ? Params{contents.events}
                        : Params{std::to_string(piece.first), std::to_string(piece.end)};
    for (const auto* array : {&subscriptions, &counts, &hashes})
      params.push_back(Param::int8_array(*array));
    params.push_back(contents.first_seq);
    params.push_back(contents.last_seq);
    const Query& query = is_default(piece) ? queries_.remove_default : queries_.remove;
    bool removed = false;
    Status status = sql::change_recorded(connection_, {}, [&]() -> Result<std::int64_t> {
      OUTBOX_TRY(const Rows done, limited(query, params));
      removed = done.boolean(0, 0);
      return removed ? contents.events : 0;
    });
    if (!status && is_locked(status.error())) return false;
    if (!status) return pass(status);
    return removed;
  }

  [[nodiscard]] Status prune_settlements(std::int32_t subscription, Duration keep,
                                         const Param& least, const std::stop_token& stop,
                                         std::int64_t& removed) {
    std::int64_t generation = std::numeric_limits<std::int64_t>::min();
    std::int64_t id = 0;
    bool blocked = false;
    while (!stop.stop_requested()) {
      const auto began = BackgroundPace::Clock::now();
      OUTBOX_TRY(const Rows done,
                 limited(queries_.prune_settlements, {subscription, keep.count(), least, generation,
                                                      id, kRowsAtOnce, blocked}));
      const std::int64_t gone = done.int8(0, 0);
      removed += gone;
      if (done.is_null(0, 1)) break;
      generation = done.int8(0, 1);
      id = done.int8(0, 2);
      blocked = done.boolean(0, 3);
      // Most of thousands of subscriptions have little or nothing to remove; that costs others
      // nothing, and needs no pause.
      if (gone > kRowsAtOnce / 10) rest_.after(began, stop);
    }
    return {};
  }

  [[nodiscard]] Status prune_ends(Duration keep, const std::stop_token& stop,
                                  std::int64_t& removed) {
    for (std::int64_t more = kRowsAtOnce; more == kRowsAtOnce && !stop.stop_requested();) {
      const auto began = BackgroundPace::Clock::now();
      OUTBOX_TRY(const Rows ends, limited(queries_.prune_ends, {keep.count(), kRowsAtOnce}));
      more = ends.int8(0, 0);
      removed += more;
      rest_.after(began, stop);
    }
    return {};
  }

  /// Removes rows of a table beside the log. If `age` is given, only rows that are older are
  /// removed.
  [[nodiscard]] Status prune(const Query& query, std::optional<Duration> age,
                             const std::stop_token& stop, std::int64_t& removed) {
    for (std::int64_t more = kRowsAtOnce; more == kRowsAtOnce && !stop.stop_requested();) {
      Params params;
      if (age) params.emplace_back(std::int64_t{age->count()});
      params.emplace_back(kRowsAtOnce);
      OUTBOX_TRY(const Rows gone, limited(query, std::move(params)));
      more = gone.size();
      removed += more;
    }
    return {};
  }

  Connection connection_;
  const RetentionQueries queries_;
  BackgroundPace rest_;
};

}  // namespace

std::unique_ptr<Retention> make_retention(Connection connection) {
  return std::make_unique<PostgresRetention>(std::move(connection));
}

}  // namespace outbox::store::postgres
