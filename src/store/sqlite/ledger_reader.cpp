// What `outbox verify` reads (docs/design/verify.md).
#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "store/history.hpp"
#include "store/sqlite/parts.hpp"
#include "store/sqlite/queries.hpp"
#include "store/stored_subscription.hpp"
#include "store/text.hpp"

namespace outbox::store::sqlite {
namespace {

constexpr std::int64_t kPage = 10000;

class SqliteLedgerReader final : public LedgerReader {
 public:
  explicit SqliteLedgerReader(Connection connection) : connection_(std::move(connection)) {}

  [[nodiscard]] Result<LedgerMoment> begin(std::int32_t subscription,
                                           const VisitParked& visit) override {
    start(subscription);
    OUTBOX_TRY(connection_.run(query::kBeginRead));
    auto moment = read_moment(visit);
    Status ended = connection_.run(query::kRollback);
    if (moment && !ended) return pass(ended);
    return moment;
  }

  [[nodiscard]] Status begin_rows(std::int32_t subscription) override {
    start(subscription);
    OUTBOX_TRY(newest_, connection_.integer(query::kNewestSettlement));
    return {};
  }

  void seek(const LedgerRank& after, std::int64_t last) override {
    generation_ = after.generation;
    id_ = after.id;
    last_generation_ = last;
  }

  [[nodiscard]] Result<std::vector<LedgerRow>> next_rows(std::size_t limit) override {
    OUTBOX_TRY(Statement row,
               connection_.query(query::kLedgerRows, std::int64_t{subscription_}, generation_, id_,
                                 newest_, static_cast<std::int64_t>(limit), last_generation_));
    std::vector<LedgerRow> all;
    while (row.has_row()) {
      all.push_back(read_row(row));
      OUTBOX_TRY(row.next());
    }
    if (!all.empty()) {
      generation_ = all.back().generation;
      id_ = all.back().id;
    }
    return all;
  }

  [[nodiscard]] Status scan(const EventRange& range, const Visit& visit) override {
    std::vector<LedgerEvent> page;
    std::int64_t above = range.above;
    do {
      page.clear();
      // Each page is a read transaction of its own: a long one would keep the WAL from being reset.
      OUTBOX_TRY(Statement row, connection_.query(query::kLedgerEvents, above, range.last, kPage));
      while (row.has_row()) {
        page.push_back({.xid = Visible::kOnlyTransaction,
                        .seq = row.integer(0),
                        .lane = 0,
                        .id = to_id(row.bytes(1)),
                        .created_at_us = row.integer(2)});
        OUTBOX_TRY(row.next());
      }
      if (page.empty()) return {};
      above = page.back().seq;
      visit(page);
    } while (std::ssize(page) == kPage);
    return {};
  }

  [[nodiscard]] Result<std::int64_t> count(const EventRange& range) override {
    OUTBOX_TRY(const Statement row,
               connection_.query(query::kLedgerCount, range.above, range.last));
    return row.integer(0);
  }

  [[nodiscard]] Result<Pruned> pruned(std::int32_t subscription) override {
    OUTBOX_TRY(const Statement row, connection_.query(query::kPruned, std::int64_t{subscription}));
    if (!row.has_row()) return Pruned{};
    return Pruned{.through_seq = row.integer(0),
                  .events = row.integer(1),
                  .acked = row.integer(2),
                  .filtered = row.integer(3),
                  .parked = row.integer(4),
                  .discarded = row.integer(7),
                  .newest = {.generation = row.integer(5), .id = row.integer(6)}};
  }

 private:
  void start(std::int32_t subscription) {
    subscription_ = subscription;
    seek({.generation = -1, .id = 0}, kLastGeneration);
  }

  [[nodiscard]] Result<LedgerMoment> read_moment(const VisitParked& visit) {
    LedgerMoment moment{.now = everything_};
    OUTBOX_TRY(newest_, connection_.integer(query::kNewestSettlement));
    OUTBOX_TRY(moment.last_seq, connection_.integer(query::kNewestSeq));
    OUTBOX_TRY(add_parked(connection_, subscription_, moment.parked, visit));
    return moment;
  }

  [[nodiscard]] LedgerRow read_row(const Statement& row) const {
    LedgerRow one{.id = row.integer(0),
                  .at_us = row.integer(11),
                  .kind = parse_settlement_kind(row.bytes(1)),
                  .generation = row.integer(2),
                  .s1 = nothing_,
                  .s2 = everything_,
                  .from_position = row.integer(3),
                  .position = row.integer(4)};
    if (one.kind == SettlementKind::retry || one.kind == SettlementKind::mark) one.lanes = 0;
    int column = 5;
    for (Tally* const tally : {&one.acked, &one.filtered, &one.parked}) {
      tally->count = row.integer(column++);
      tally->hash = static_cast<std::uint64_t>(row.integer(column++));
    }
    return one;
  }

  Connection connection_;
  const VisiblePtr nothing_{Visible::nothing()};
  const VisiblePtr everything_{Visible::everything()};
  std::int32_t subscription_{0};
  std::int64_t newest_{0};       ///< The newest settlement of the moment.
  std::int64_t generation_{-1};  ///< The generation of the last row that was read.
  std::int64_t id_{0};
  std::int64_t last_generation_{kLastGeneration};
};

}  // namespace

Status add_parked(Connection& connection, std::int64_t subscription, ParkedLedger& ledger,
                  const VisitParked& visit) {
  for (const std::string_view sql : {query::kLedgerParked, query::kLedgerEnds}) {
    OUTBOX_TRY(Statement row, connection.query(sql, subscription));
    while (row.has_row()) {
      const ParkedEntry entry{.id = to_id(row.bytes(0)),
                              .outcome = parse_parked_outcome(row.bytes(1)),
                              .copied = row.integer(2) != 0};
      ledger.add(entry);
      if (visit) visit(entry);
      OUTBOX_TRY(row.next());
    }
  }
  return {};
}

std::unique_ptr<LedgerReader> make_ledger_reader(Connection connection) {
  return std::make_unique<SqliteLedgerReader>(std::move(connection));
}

}  // namespace outbox::store::sqlite
