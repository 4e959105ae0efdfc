#include "store/sqlite/progress.hpp"

#include "base/error.hpp"
#include "store/sqlite/clock.hpp"
#include "store/sqlite/queries.hpp"
#include "store/sqlite/schema.hpp"

namespace outbox::store::sqlite {

Result<std::vector<Strand>> SqliteProgress::load(std::int32_t subscription) {
  auto cursor = connection_.statement(query::kNewestCursor);
  if (!cursor) return pass(cursor);
  cursor->bind(1, std::int64_t{subscription});
  auto row = cursor->step();
  if (!row) return pass(row);
  if (!*row) {
    return fail(Errc::not_found,
                "sqlite: subscription " + std::to_string(subscription) + " has no cursor",
                "create it with: outbox subscription apply");
  }
  const Pair endless = Pair::endless();
  return std::vector<Strand>{Strand{
      .lanes = kAllLanes,
      .cursor = {.s1 = endless.s1, .s2 = endless.s2, .position = cursor->integer(0), .bound = 0},
      .generation = cursor->integer(1)}};
}

Status SqliteProgress::append(const ProgressBatch& batch, Durability durability) {
  if (batch.settlements.empty()) return {};
  if (Status status = set_durability(durability); !status) return status;
  auto transaction = WriteTransaction::begin(connection_);
  if (!transaction) return pass(transaction);
  if (Status status = check_outbox(); !status) return status;
  const std::int64_t at = wall_us();
  for (const Settlement& row : batch.settlements) {
    if (Status status = insert(row, at); !status) return status;
  }
  return transaction->commit();
}

/// In the transaction. Positions of tables that were dropped would skip events of those made anew.
Status SqliteProgress::check_outbox() {
  auto now = identity_of(connection_);
  if (!now) return pass(now);
  if (*now == outbox_) return {};
  return fail(Error{.code = Errc::unavailable,
                    .remedy = Remedy::reconnect,
                    .effect = Effect::none,
                    .message = "sqlite: " + connection_.file() + ": its tables were made anew",
                    .hint = "reading starts again from what is there",
                    .origin = {}});
}

// PRAGMA synchronous counts from the next transaction on.
Status SqliteProgress::set_durability(Durability durability) {
  if (durability == set_) return {};
  const auto setting = durability == Durability::flushed ? query::kSyncFull : query::kSyncNormal;
  if (Status status = connection_.run(setting); !status) return status;
  set_ = durability;
  return {};
}

Status SqliteProgress::insert(const Settlement& row, std::int64_t at) {
  if (!row.position) return fail(Errc::invalid_argument, "sqlite: a settlement without a position");
  auto insert = connection_.statement(query::kAppendSettlement);
  if (!insert) return pass(insert);
  const auto hash = [](const Tally& tally) { return static_cast<std::int64_t>(tally.hash); };
  return insert->bind(1, std::int64_t{row.subscription})
      .bind(2, std::string_view(to_string(row.kind)))
      .bind(3, row.generation)
      .bind(4, std::int64_t{row.config_version})
      .bind(5, row.from_position)
      .bind(6, *row.position)
      .bind(7, row.acked.count)
      .bind(8, hash(row.acked))
      .bind(9, row.filtered.count)
      .bind(10, hash(row.filtered))
      .bind(11, row.parked.count)
      .bind(12, hash(row.parked))
      .bind(13, at)
      .run();
}

}  // namespace outbox::store::sqlite
