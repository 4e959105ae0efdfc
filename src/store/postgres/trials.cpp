// What relays record of their runs; the functions are in 0004_parking.sql.
#include "store/trials.hpp"

#include <utility>

#include "base/error.hpp"
#include "store/postgres/parts.hpp"

namespace outbox::store::postgres {
namespace {

Param array_of(const std::vector<std::int64_t>& numbers) {
  ArrayParam array(ArrayParam::Element::int8);
  for (const std::int64_t number : numbers) array.add(number);
  return array.take();
}

Param bits(LaneMask lanes) { return static_cast<std::int64_t>(lanes); }

class PostgresTrials final : public Trials {
 public:
  explicit PostgresTrials(Connection connection) : connection_(std::move(connection)) {}

  [[nodiscard]] Result<std::vector<FormerRun>> former(std::int32_t subscription, LaneMask lanes,
                                                      const EventId& relay) override {
    OUTBOX_TRY(const Rows rows,
               connection_.exec(&Queries::former_runs, {subscription, bits(lanes), relay}));
    std::vector<FormerRun> runs;
    for (int row = 0; row < rows.size(); ++row) {
      runs.push_back({.generation = rows.int8(row, 0),
                      .lanes = static_cast<LaneMask>(rows.int8(row, 1)),
                      .place = rows.text(row, 2),
                      .range = static_cast<std::size_t>(rows.int8(row, 3)),
                      .seq = rows.int8(row, 4),
                      .parked = rows.boolean(row, 5),
                      .alive = rows.boolean(row, 6),
                      .counted = rows.boolean(row, 7)});
    }
    return runs;
  }

  [[nodiscard]] Status begin(std::int32_t subscription, const Holding& holding,
                             const EventId& relay, const std::string& place, std::size_t range,
                             const std::vector<std::int64_t>& keep) override {
    auto begun =
        connection_.exec_with(&Queries::flushed, &Queries::begin_run,
                              {subscription, bits(holding.lanes), holding.generation, relay, place,
                               static_cast<std::int64_t>(range), array_of(keep)});
    return begun ? Status{} : Status(pass(begun));
  }

  [[nodiscard]] Result<std::vector<std::int64_t>> open(std::int32_t subscription,
                                                       const Holding& holding,
                                                       const Range& range) override {
    OUTBOX_TRY(const Rows rows,
               connection_.exec_with(
                   &Queries::flushed, &Queries::open_range,
                   {subscription, bits(holding.lanes), holding.generation, bits(range.lanes),
                    static_cast<std::int64_t>(range.events), range.seq}));
    std::vector<std::int64_t> dead;
    bool recorded = false;
    for (int row = 0; row < rows.size(); ++row) {
      const std::int64_t generation = rows.int8(row, 0);
      if (generation == holding.generation) {
        recorded = true;
      } else {
        dead.push_back(generation);
      }
    }
    if (recorded) return dead;
    return fail(Errc::lease_lost, Remedy::reconnect,
                "the lanes of these events have another owner");
  }

  [[nodiscard]] Status close(std::int32_t subscription, const Holding& holding,
                             const std::vector<std::int64_t>& keep) override {
    auto closed = connection_.exec_with(
        &Queries::flushed, &Queries::close_trial,
        {subscription, bits(holding.lanes), holding.generation, array_of(keep)});
    return closed ? Status{} : Status(pass(closed));
  }

  [[nodiscard]] Status end(std::int32_t subscription, const Holding& holding) override {
    auto ended = connection_.exec_with(&Queries::flushed, &Queries::end_run,
                                       {subscription, holding.generation});
    return ended ? Status{} : Status(pass(ended));
  }

 private:
  Connection connection_;
};

}  // namespace

std::unique_ptr<Trials> make_trials(Connection connection) {
  return std::make_unique<PostgresTrials>(std::move(connection));
}

}  // namespace outbox::store::postgres
