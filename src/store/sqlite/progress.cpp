// Appends settlements and reads the newest cursor.
#include <utility>

#include "base/error.hpp"
#include "store/sqlite/clock.hpp"
#include "store/sqlite/parking.hpp"
#include "store/sqlite/parts.hpp"
#include "store/sqlite/queries.hpp"
#include "store/sqlite/schema.hpp"
#include "store/stored_subscription.hpp"

namespace outbox::store::sqlite {
namespace {

class SqliteProgress final : public Progress {
 public:
  SqliteProgress(Connection connection, std::string outbox)
      : connection_(std::move(connection)), outbox_(std::move(outbox)) {}

  [[nodiscard]] Result<std::vector<Strand>> load(std::int32_t subscription,
                                                 LaneMask /*lanes*/) override {
    OUTBOX_TRY(const Statement row, connection_.query(query::kNewestCursor, subscription));
    if (!row.has_row()) return no_cursor(std::to_string(subscription));
    const Pair endless = Pair::endless();
    return std::vector<Strand>{Strand{
        .lanes = kAllLanes,
        .cursor = {.s1 = endless.s1, .s2 = endless.s2, .position = row.integer(0), .bound = 0},
        .generation = row.integer(1)}};
  }

  [[nodiscard]] Status claim(std::int32_t subscription, LaneMask /*lanes*/,
                             std::int64_t generation) override {
    OUTBOX_TRY(set_durability(Durability::flushed));
    OUTBOX_TRY(WriteTransaction transaction, WriteTransaction::begin(connection_));
    OUTBOX_TRY(check_owner(connection_, subscription, generation));
    Status status = connection_.run(query::kClaimOne, generation, wall_us(), subscription);
    return status ? transaction.commit() : status;
  }

  [[nodiscard]] Status begin_beside(std::int32_t base, std::int32_t subscription,
                                    LaneMask /*lanes*/, std::int64_t generation) override {
    OUTBOX_TRY(set_durability(Durability::flushed));
    OUTBOX_TRY(WriteTransaction transaction, WriteTransaction::begin(connection_));
    OUTBOX_TRY(check_owner(connection_, base, generation));
    Status status = connection_.run(query::kBeginBeside, generation, wall_us(), base, subscription);
    return status ? transaction.commit() : status;
  }

  [[nodiscard]] Result<ParkedKeys> parked_keys(std::int32_t subscription, LaneMask /*lanes*/,
                                               bool dead_block) override {
    OUTBOX_TRY(dead_block ? Status{} : unblock_keys(connection_, subscription));
    return read_parked_keys(connection_, subscription);
  }

  [[nodiscard]] Result<DueEvents> due(std::int32_t subscription, const Holding& holding,
                                      const DueLimits& limits,
                                      std::span<const AskedRow> asked) override {
    return read_due(connection_, subscription, holding.generation, limits, asked);
  }

  [[nodiscard]] Result<std::vector<ReleasedKey>> append(const ProgressBatch& batch,
                                                        Durability durability) override {
    if (batch.settlements.empty() && batch.results.empty() && batch.replays.empty())
      return std::vector<ReleasedKey>{};
    OUTBOX_TRY(set_durability(durability));
    OUTBOX_TRY(WriteTransaction transaction, WriteTransaction::begin(connection_));
    OUTBOX_TRY(write(batch));
    OUTBOX_TRY(auto released, released_keys(connection_, batch.parked, batch.results));
    OUTBOX_TRY(transaction.commit());
    return released;
  }

  [[nodiscard]] std::uint64_t statements() const override { return connection_.statements(); }

 private:
  /// Must be called in the transaction. Positions in tables that were dropped would skip events in
  /// the tables that replaced them.
  [[nodiscard]] Status check_outbox() {
    OUTBOX_TRY(const std::string now, read_identity(connection_));
    if (now == outbox_) return {};
    return fail(Errc::unavailable, Remedy::reconnect,
                "sqlite: " + connection_.file() + ": its tables were recreated",
                "reading starts again from what is there");
  }

  [[nodiscard]] Status write(const ProgressBatch& batch) {
    OUTBOX_TRY(check_outbox());
    const std::int64_t at = wall_us();
    for (const Settlement& row : batch.settlements) {
      OUTBOX_TRY(insert(row, at));
    }
    Status status = park_events(connection_, batch.parked);
    if (status) status = settle_parked(connection_, batch.results);
    return status ? settle_replays(connection_, batch.replays) : status;
  }

  // PRAGMA synchronous takes effect from the next transaction on.
  [[nodiscard]] Status set_durability(Durability durability) {
    if (durability == set_) return {};
    const auto setting = durability == Durability::flushed ? query::kSyncFull : query::kSyncNormal;
    OUTBOX_TRY(connection_.run(setting));
    set_ = durability;
    return {};
  }

  [[nodiscard]] Status insert(const Settlement& row, std::int64_t at) {
    if (!row.position)
      return fail(Errc::invalid_argument, "sqlite: a settlement without a position");
    const auto hash = [](const Tally& tally) { return static_cast<std::int64_t>(tally.hash); };
    return connection_.run(query::kAppendSettlement, row.subscription, to_string(row.kind),
                           row.generation, row.config_version, row.from_position, *row.position,
                           row.acked.count, hash(row.acked), row.filtered.count, hash(row.filtered),
                           row.parked.count, hash(row.parked), at);
  }

  Connection connection_;
  const std::string outbox_;
  Durability set_{Durability::eventual};
};

}  // namespace

std::unique_ptr<Progress> make_progress(Connection connection, std::string outbox) {
  return std::make_unique<SqliteProgress>(std::move(connection), std::move(outbox));
}

}  // namespace outbox::store::sqlite
