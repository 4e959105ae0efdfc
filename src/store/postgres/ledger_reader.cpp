// What `outbox verify` reads (docs/design/verify.md, "Reading in windows").
#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "store/history.hpp"
#include "store/postgres/parts.hpp"
#include "store/postgres/snapshot.hpp"
#include "store/stored_subscription.hpp"

namespace outbox::store::postgres {
namespace {

constexpr std::int64_t kPage = 10000;
/// The most transactions of one count, so that it does not take so long that the server ends it.
constexpr std::uint64_t kCountedXids = 2'000'000;

/// Keeps recent snapshots, since neighbouring settlements share them.
class Snapshots {
 public:
  [[nodiscard]] Result<VisiblePtr> get(std::string_view text) {
    for (const auto& [known, snapshot] : recent_) {
      if (snapshot != nullptr && known == text) return snapshot;
    }
    OUTBOX_TRY(Snapshot parsed, parse_snapshot(text));
    next_ = (next_ + 1) % recent_.size();
    recent_[next_] = {std::string(text),
                      std::make_shared<const Visible>(
                          Visible{.xmax = parsed.xmax, .running = std::move(parsed.xip)})};
    return recent_[next_].second;
  }

 private:
  std::array<std::pair<std::string, VisiblePtr>, 8> recent_;
  std::size_t next_{0};
};

/// The snapshot as PostgreSQL writes it.
std::string to_text(const Visible& snapshot) {
  std::string text =
      std::to_string(snapshot.first_unseen()) + ":" + std::to_string(snapshot.xmax) + ":";
  for (std::size_t i = 0; i < snapshot.running.size(); ++i)
    text += (i == 0 ? "" : ",") + std::to_string(snapshot.running[i]);
  return text;
}

/// A range of transactions, which is read page by page.
struct XidSpan {
  std::uint64_t from{0};
  std::uint64_t to{0};  ///< The first transaction behind the range.
};

Status add_up(Connection& connection, Connection::Named query, std::int32_t subscription,
              ParkedLedger& ledger, const VisitParked& visit) {
  for (std::int64_t after = 0;;) {
    OUTBOX_TRY(const Rows rows, connection.exec(query, {subscription, after, kPage}));
    // An edited event has several ends, so the last seq of a full page is left to the next page.
    const bool full = rows.size() == kPage;
    const std::int64_t last = full ? rows.int8(rows.size() - 1, 0) : kNoSeqBound;
    for (int row = 0; row < rows.size() && rows.int8(row, 0) != last; ++row) {
      const ParkedEntry entry{.id = rows.uuid(row, 1),
                              .outcome = parse_parked_outcome(rows.bytes(row, 2)),
                              .copied = rows.boolean(row, 3)};
      ledger.add(entry);
      if (visit) visit(entry);
    }
    if (!full) return {};
    after = last - 1;
  }
}

class PostgresLedgerReader final : public LedgerReader {
 public:
  explicit PostgresLedgerReader(Connection connection) : connection_(std::move(connection)) {}

  [[nodiscard]] Result<LedgerMoment> begin(std::int32_t subscription,
                                           const VisitParked& visit) override {
    start(subscription);
    OUTBOX_TRY(connection_.run(&Queries::begin_moment));
    auto moment = read_moment(visit);
    // The transaction wrote nothing, so it may end either way.
    connection_.rollback();
    return moment;
  }

  [[nodiscard]] Status begin_rows(std::int32_t subscription) override {
    start(subscription);
    return read_snapshot();
  }

  void seek(const LedgerRank& after, std::int64_t last) override {
    generation_ = after.generation;
    id_ = after.id;
    last_generation_ = last;
  }

  [[nodiscard]] Result<std::vector<LedgerRow>> next_rows(std::size_t limit) override {
    OUTBOX_TRY(const Rows rows,
               connection_.exec_with(&Queries::settings, &Queries::ledger_rows,
                                     {subscription_, generation_, id_, moment_,
                                      static_cast<std::int64_t>(limit), last_generation_}));
    std::vector<LedgerRow> all;
    all.reserve(static_cast<std::size_t>(rows.size()));
    for (int row = 0; row < rows.size(); ++row) {
      OUTBOX_TRY(LedgerRow one, read_row(rows, row));
      all.push_back(std::move(one));
    }
    if (!all.empty()) {
      generation_ = all.back().generation;
      id_ = all.back().id;
    }
    return all;
  }

  [[nodiscard]] Status scan(const EventRange& range, const Visit& visit) override {
    for (const XidSpan& part : split_range(range)) {
      OUTBOX_TRY(scan_part(part, range, visit));
    }
    return {};
  }

  [[nodiscard]] Result<std::int64_t> count(const EventRange& range) override {
    OUTBOX_TRY(const Rows oldest,
               connection_.exec_with(&Queries::settings, &Queries::ledger_oldest));
    if (oldest.empty()) return 0;
    const std::string upto = to_text(*range.upto);
    std::int64_t all = 0;
    for (XidSpan part : split_range(range)) {
      part.from = std::max(part.from, oldest.uint64(0, 0));
      for (; part.from < part.to; part.from += kCountedXids) {
        const std::uint64_t to = std::min(part.to, part.from + kCountedXids);
        OUTBOX_TRY(
            const Rows rows,
            connection_.exec_with(&Queries::settings, &Queries::ledger_count,
                                  {std::to_string(part.from), std::to_string(to), upto, range.above,
                                   range.last, static_cast<std::int64_t>(range.lanes)}));
        all += rows.int8(0, 0);
      }
    }
    return all;
  }

  [[nodiscard]] Result<Pruned> pruned(std::int32_t subscription) override {
    OUTBOX_TRY(const Rows row, connection_.exec(&Queries::ledger_pruned, {subscription}));
    return Pruned{.below_xid = row.uint64(0, 0),
                  .events = row.int8(0, 1),
                  .acked = row.int8(0, 2),
                  .filtered = row.int8(0, 3),
                  .parked = row.int8(0, 4),
                  .discarded = row.int8(0, 7),
                  .newest = {.generation = row.int8(0, 5), .id = row.int8(0, 6)}};
  }

 private:
  void start(std::int32_t subscription) {
    subscription_ = subscription;
    seek({.generation = -1, .id = 0}, kLastGeneration);
  }

  [[nodiscard]] Status read_snapshot() {
    OUTBOX_TRY(const Rows snapshot, connection_.exec(&Queries::moment));
    moment_ = snapshot.text(0, 0);
    return {};
  }

  [[nodiscard]] Result<LedgerMoment> read_moment(const VisitParked& visit) {
    LedgerMoment moment;
    OUTBOX_TRY(read_snapshot());
    OUTBOX_TRY(moment.now, snapshots_.get(moment_));
    OUTBOX_TRY(add_parked(connection_, subscription_, moment.parked, visit));
    return moment;
  }

  [[nodiscard]] Result<LedgerRow> read_row(const Rows& rows, int row) {
    LedgerRow one{.id = rows.int8(row, 0),
                  .at_us = rows.time_us(row, 15),
                  .kind = parse_settlement_kind(rows.bytes(row, 1)),
                  .lanes = rows.uint64(row, 2),
                  .generation = rows.int8(row, 3),
                  .from_position = rows.int8(row, 6)};
    if (!rows.is_null(row, 4)) {
      OUTBOX_TRY(one.s1, snapshots_.get(rows.bytes(row, 4)));
    }
    if (!rows.is_null(row, 5)) {
      OUTBOX_TRY(one.s2, snapshots_.get(rows.bytes(row, 5)));
    }
    if (!rows.is_null(row, 7)) one.position = rows.int8(row, 7);
    if (!rows.is_null(row, 8)) one.bound = rows.int8(row, 8);
    int column = 9;
    for (Tally* const tally : {&one.acked, &one.filtered, &one.parked}) {
      tally->count = rows.int4(row, column++);
      tally->hash = rows.uint64(row, column++);
    }
    return one;
  }

  /// The transactions that ran in the first snapshot, one by one, and the range of all those
  /// between the snapshots.
  [[nodiscard]] static std::vector<XidSpan> split_range(const EventRange& range) {
    std::vector<XidSpan> parts;
    for (const std::uint64_t xid : range.after->running) {
      if (range.upto->sees(xid)) parts.push_back({.from = xid, .to = xid + 1});
    }
    if (range.after->xmax < range.upto->xmax)
      parts.push_back({.from = range.after->xmax, .to = range.upto->xmax});
    return parts;
  }

  /// Visits the pages of a range, and requests the next page before it visits one.
  [[nodiscard]] Status scan_part(const XidSpan& part, const EventRange& range, const Visit& visit) {
    // In the middle of a pair the log is read by seq, since by xid all of it would be read.
    const bool by_seq = range.above > 0 && range.last != kNoSeqBound;
    std::vector<LedgerEvent> page;
    LedgerEvent last{.xid = part.from, .seq = by_seq ? range.above : 0};
    OUTBOX_TRY(send(part, range, by_seq, last));
    while (true) {
      OUTBOX_TRY(const auto results, connection_.collect());
      const Rows& rows = results[2];
      if (rows.empty()) return {};
      last = read_event(rows, rows.size() - 1);
      const bool more = rows.size() == kPage;
      if (more) {
        OUTBOX_TRY(send(part, range, by_seq, last));
      }
      page.clear();
      for (int row = 0; row < rows.size(); ++row) {
        const LedgerEvent event = read_event(rows, row);
        if (range.has(event)) page.push_back(event);
      }
      visit(page);
      if (!more) return {};
    }
  }

  [[nodiscard]] Status send(const XidSpan& part, const EventRange& range, bool by_seq,
                            const LedgerEvent& last) {
    Params params{std::to_string(part.from), std::to_string(part.to)};
    if (!by_seq) params.emplace_back(std::to_string(last.xid));
    params.emplace_back(last.seq);
    if (by_seq) params.emplace_back(range.last);
    params.emplace_back(static_cast<std::int64_t>(range.lanes));
    params.emplace_back(kPage);
    connection_.send(&Queries::begin);
    connection_.send(&Queries::settings);
    connection_.send(by_seq ? &Queries::ledger_by_seq : &Queries::ledger_by_xid, std::move(params));
    connection_.send(&Queries::commit);
    return connection_.sync();
  }

  [[nodiscard]] static LedgerEvent read_event(const Rows& rows, int row) {
    return {.xid = rows.uint64(row, 0),
            .seq = rows.int8(row, 1),
            .lane = static_cast<std::uint8_t>(rows.int2(row, 2)),
            .id = rows.uuid(row, 3),
            .created_at_us = rows.time_us(row, 4)};
  }

  Connection connection_;
  Snapshots snapshots_;
  std::int32_t subscription_{0};
  std::string moment_;
  std::int64_t generation_{-1};  ///< The generation of the last row that was read.
  std::int64_t id_{0};
  std::int64_t last_generation_{kLastGeneration};
};

}  // namespace

Status add_parked(Connection& connection, std::int32_t subscription, ParkedLedger& ledger,
                  const VisitParked& visit) {
  Status status = add_up(connection, &Queries::ledger_parked, subscription, ledger, visit);
  return status ? add_up(connection, &Queries::ledger_ends, subscription, ledger, visit) : status;
}

std::unique_ptr<LedgerReader> make_ledger_reader(Connection connection) {
  return std::make_unique<PostgresLedgerReader>(std::move(connection));
}

}  // namespace outbox::store::postgres
