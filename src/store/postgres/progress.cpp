// Loads cursors and appends settlements (docs/design/settlements.md).
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "store/postgres/parking.hpp"
#include "store/postgres/parts.hpp"
#include "store/postgres/replay_queries.hpp"
#include "store/postgres/strands.hpp"
#include "store/stored_subscription.hpp"
#include "store/text.hpp"

namespace outbox::store::postgres {
namespace {

/// `incarnation` is that of the server that the reader read from.
Params make_params(const Settlement& row, std::optional<std::int64_t> incarnation) {
  Params params{row.subscription, to_string(row.kind), static_cast<std::int64_t>(row.lanes),
                row.generation,   row.config_version,  row.s1,
                row.s2,           row.from_position,   row.position,
                row.bound};
  for (const Tally* tally : {&row.acked, &row.filtered, &row.parked}) {
    params.push_back(static_cast<std::int32_t>(tally->count));
    params.push_back(static_cast<std::int64_t>(tally->hash));
  }
  params.push_back(incarnation);
  return params;
}

Params make_params(const ReplayProgress& progress) {
  ArrayParam seqs(ArrayParam::Element::int8);
  ArrayParam ids(ArrayParam::Element::uuid);
  ArrayParam errors(ArrayParam::Element::text);
  for (const ReplaySkip& skip : progress.skips) {
    seqs.add(skip.seq);
    ids.add({reinterpret_cast<const char*>(skip.id.bytes.data()), skip.id.bytes.size()});
    errors.add(storable_text(skip.error));
  }
  return {progress.replay,     progress.subscription,
          progress.generation, static_cast<std::int64_t>(progress.lanes),
          progress.position,   progress.sent,
          seqs.take(),         ids.take(),
          errors.take(),       kMostSkipped};
}

class PostgresProgress final : public Progress {
 public:
  PostgresProgress(Connection connection, std::shared_ptr<MarkBook> marks)
      : connection_(std::move(connection)), marks_(std::move(marks)) {}

  [[nodiscard]] Result<std::vector<Strand>> load(std::int32_t subscription,
                                                 LaneMask lanes) override {
    OUTBOX_TRY(std::vector<Strand> strands, read_strands(connection_, subscription, lanes));
    for (const Strand& strand : strands) lanes &= ~strand.lanes;
    if (lanes != 0) return no_cursor(std::to_string(subscription));
    return strands;
  }

  [[nodiscard]] Status claim(std::int32_t subscription, LaneMask lanes,
                             std::int64_t generation) override {
    const auto mask = static_cast<std::int64_t>(lanes);
    return connection_.transact([&]() -> Result<Decision> {
      connection_.send(&Queries::flushed);
      connection_.send(&Queries::plan_settings);
      connection_.send(&Queries::lock_fleet);  // what is claimed must not be removed meanwhile
      connection_.send(&Queries::hold_lanes, {subscription, mask, generation});
      connection_.send(&Queries::claim,
                       {Param::null(), subscription, mask, generation, Param::null()});
      OUTBOX_TRY(connection_.finish());
      return Decision::commit;
    });
  }

  [[nodiscard]] Status begin_beside(std::int32_t base, std::int32_t subscription, LaneMask lanes,
                                    std::int64_t generation) override {
    const auto mask = static_cast<std::int64_t>(lanes);
    return connection_.transact([&]() -> Result<Decision> {
      connection_.send(&Queries::flushed);
      connection_.send(&Queries::plan_settings);
      connection_.send(&Queries::lock_fleet);  // what it begins with must not be removed meanwhile
      connection_.send(&Queries::hold_lanes, {base, mask, generation});
      connection_.send(&Queries::begin_beside, {base, subscription, mask, generation});
      OUTBOX_TRY(connection_.finish());
      return Decision::commit;
    });
  }

  [[nodiscard]] Result<ParkedKeys> parked_keys(std::int32_t subscription, LaneMask lanes,
                                               bool dead_block) override {
    return read_parked_keys(connection_, subscription, lanes, dead_block);
  }

  [[nodiscard]] Result<DueEvents> due(std::int32_t subscription, const Holding& holding,
                                      const DueLimits& limits,
                                      std::span<const AskedRow> asked) override {
    return read_due(connection_, subscription, holding, limits, asked);
  }

  [[nodiscard]] Result<std::vector<ReleasedKey>> append(const ProgressBatch& batch,
                                                        Durability durability) override {
    std::vector<ReleasedKey> released;
    if (batch.settlements.empty() && batch.results.empty() && batch.replays.empty())
      return released;
    connection_.send(&Queries::begin);
    connection_.send(&Queries::settle_settings,
                     {durability == Durability::flushed ? "local" : "off"});
    const auto incarnation = marks_->incarnation();
    for (const Settlement& row : batch.settlements)
      connection_.send(&Queries::append, make_params(row, incarnation));
    send_rows(connection_, batch.parked, batch.results);
    for (const ReplayProgress& progress : batch.replays)
      connection_.send(replay_queries_.settle, make_params(progress));
    connection_.send(&Queries::commit);
    OUTBOX_TRY(const auto results, connection_.finish());
    if (!batch.parked.empty() || !batch.results.empty())
      released = released_keys(results[results.size() - batch.replays.size() - 2]);
    if (batch.settlements.empty()) return released;
    // A settlement is a mark: its bound held before the transaction that wrote it began.
    const std::uint64_t w = results[2].uint64(0, 0);
    for (const Settlement& row : batch.settlements) marks_->note(w, row.bound);
    return released;
  }

  [[nodiscard]] std::uint64_t statements() const override { return connection_.statements(); }

 private:
  Connection connection_;
  std::shared_ptr<MarkBook> marks_;
  const ReplayQueries replay_queries_{connection_.queries().schema};
};

}  // namespace

std::unique_ptr<Progress> make_progress(Connection connection, std::shared_ptr<MarkBook> marks) {
  return std::make_unique<PostgresProgress>(std::move(connection), std::move(marks));
}

}  // namespace outbox::store::postgres
