// What relays record of their runs (docs/design/trials.md).
#include <algorithm>
#include <utility>

#include "store/ownership.hpp"
#include "store/sql/parts.hpp"

namespace outbox::store::sql {
namespace {

std::int64_t bits(LaneMask lanes) { return static_cast<std::int64_t>(lanes); }

class SqlTrials final : public store::Trials {
 public:
  explicit SqlTrials(std::unique_ptr<Connection> connection) : db_(std::move(connection)) {}

  [[nodiscard]] Result<std::vector<FormerRun>> former(std::int32_t subscription, LaneMask lanes,
                                                      const EventId& relay) override {
    const std::string me = relay.str();
    OUTBOX_TRY(const Rows rows,
               db_->exec(&Statements::former_runs, {subscription, bits(lanes), me}));
    return rows.list([](Row row) {
      FormerRun run;
      row.read(run.generation, run.lanes, run.place, run.range, run.seq, run.parked, run.alive,
               run.counted);
      return run;
    });
  }

  [[nodiscard]] Status begin(std::int32_t subscription, const Holding& holding,
                             const EventId& relay, const std::string& place, std::size_t range,
                             const std::vector<std::int64_t>& keep) override {
    const std::string me = relay.str();
    return db_->run(&Statements::begin_run,
                    {subscription, bits(holding.lanes), holding.generation, me, place,
                     static_cast<std::int64_t>(range), std::span(keep)});
  }

  [[nodiscard]] Result<std::vector<std::int64_t>> open(std::int32_t subscription,
                                                       const Holding& holding,
                                                       const Range& range) override {
    OUTBOX_TRY(const Rows rows,
               db_->exec(&Statements::open_range,
                         {subscription, bits(holding.lanes), holding.generation, bits(range.lanes),
                          static_cast<std::int64_t>(range.events), range.seq}));
    auto generations = rows.list([](Row row) { return row.next<std::int64_t>(); });
    // The run's own generation is among them if the run was recorded.
    if (std::erase(generations, holding.generation) > 0) return generations;
    return fail(Errc::lease_lost, Remedy::reconnect,
                "the lanes of these events have another owner");
  }

  [[nodiscard]] Status close(std::int32_t subscription, const Holding& holding,
                             const std::vector<std::int64_t>& keep) override {
    return db_->run(&Statements::close_trial,
                    {subscription, bits(holding.lanes), holding.generation, std::span(keep)});
  }

  [[nodiscard]] Status end(std::int32_t subscription, const Holding& holding) override {
    return db_->run(&Statements::end_run, {subscription, holding.generation});
  }

 private:
  std::unique_ptr<Connection> db_;
};

}  // namespace

std::unique_ptr<store::Trials> make_trials(std::unique_ptr<Connection> connection) {
  return std::make_unique<SqlTrials>(std::move(connection));
}

}  // namespace outbox::store::sql
