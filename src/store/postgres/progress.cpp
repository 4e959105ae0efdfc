#include "store/postgres/progress.hpp"

#include <string>
#include <utility>

#include "base/error.hpp"
#include "store/common/subscription.hpp"
#include "store/postgres/strands.hpp"

namespace outbox::store::postgres {
namespace {

/// `incarnation`: of the server that the reader read from.
Params params_of(const Settlement& row, std::optional<std::int64_t> incarnation) {
  Params params;
  params.push_back(Param::int4(row.subscription));
  params.push_back(Param::text(to_string(row.kind)));
  params.push_back(Param::int8(static_cast<std::int64_t>(row.lanes)));
  params.push_back(Param::int8(row.generation));
  params.push_back(Param::int4(row.config_version));
  params.push_back(Param::text(row.s1));
  params.push_back(Param::text(row.s2));
  params.push_back(Param::int8(row.from_position));
  params.push_back(Param::int8(row.position));
  params.push_back(Param::int8(row.bound));
  for (const Tally* tally : {&row.acked, &row.filtered, &row.parked}) {
    params.push_back(Param::int4(static_cast<std::int32_t>(tally->count)));
    params.push_back(Param::int8(static_cast<std::int64_t>(tally->hash)));
  }
  params.push_back(Param::int8(incarnation));
  return params;
}

}  // namespace

Result<std::vector<Strand>> PostgresProgress::load(std::int32_t subscription) {
  Params params;
  params.push_back(Param::int4(subscription));
  auto rows = connection_.exec(queries_->cursors, std::move(params));
  if (!rows) return pass(rows);
  auto strands = strands_of(*rows);
  if (!strands) return pass(strands);
  LaneMask missing = kAllLanes;
  for (const Strand& strand : *strands) missing &= ~strand.lanes;
  if (missing != 0) return no_cursor(std::to_string(subscription));
  return strands;
}

Status PostgresProgress::append(const ProgressBatch& batch, Durability durability) {
  if (batch.settlements.empty()) return {};
  connection_.send(queries_->begin);
  connection_.send(queries_->settle_settings,
                   {Param::text(durability == Durability::flushed ? "local" : "off")});
  const auto incarnation = marks_->incarnation();
  for (const Settlement& row : batch.settlements)
    connection_.send(queries_->append, params_of(row, incarnation));
  connection_.send(queries_->commit);
  auto results = connection_.finish();
  if (!results) return pass(results);
  // Progress is a mark: its bound was held before the transaction that wrote it began.
  const std::uint64_t w = (*results)[2].uint64(0, 0);
  for (const Settlement& row : batch.settlements) marks_->note(w, row.bound);
  return {};
}

}  // namespace outbox::store::postgres
