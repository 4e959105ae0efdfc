// What relays record of their runs.
#include "store/trials.hpp"

#include <algorithm>
#include <utility>

#include "store/sqlite/parking.hpp"
#include "store/sqlite/parts.hpp"
#include "store/sqlite/queries.hpp"

namespace outbox::store::sqlite {
namespace {

class SqliteTrials final : public Trials {
 public:
  explicit SqliteTrials(Connection connection) : connection_(std::move(connection)) {}

  [[nodiscard]] Result<std::vector<FormerRun>> former(std::int32_t subscription, LaneMask lanes,
                                                      const EventId& relay) override {
    std::vector<FormerRun> runs;
    const std::string me = relay.str();
    OUTBOX_TRY(Statement row, connection_.query(query::kFormerRuns, subscription, me));
    while (row.has_row()) {
      runs.push_back({.generation = row.integer(0),
                      .lanes = lanes,
                      .place = row.text(1),
                      .range = static_cast<std::size_t>(row.integer(2)),
                      .seq = row.integer(3),
                      .parked = row.integer(4) != 0,
                      .alive = row.integer(5) != 0,
                      .counted = row.integer(6) != 0});
      if (Status status = row.next(); !status) return pass(status);
    }
    return runs;
  }

  [[nodiscard]] Status begin(std::int32_t subscription, const Holding& holding,
                             const EventId& relay, const std::string& place, std::size_t range,
                             const std::vector<std::int64_t>& keep) override {
    OUTBOX_TRY(WriteTransaction transaction, begin_as_owner(subscription, holding));
    Status status = forget(subscription, keep);
    if (status) status = connection_.run(query::kCountRuns, subscription);
    if (status) {
      status = connection_.run(query::kBeginRun, subscription, holding.generation, relay.str(),
                               place, static_cast<std::int64_t>(range));
    }
    return status ? transaction.commit() : status;
  }

  [[nodiscard]] Result<std::vector<std::int64_t>> open(std::int32_t subscription,
                                                       const Holding& holding,
                                                       const Range& range) override {
    OUTBOX_TRY(WriteTransaction transaction, begin_as_owner(subscription, holding));
    Status status = connection_.run(query::kOpenRange, subscription, holding.generation,
                                    static_cast<std::int64_t>(range.events), range.seq);
    if (!status) return pass(status);
    OUTBOX_TRY(auto dead, dead_runs(subscription, holding));
    if (status = transaction.commit(); !status) return pass(status);
    return dead;
  }

  [[nodiscard]] Status close(std::int32_t subscription, const Holding& holding,
                             const std::vector<std::int64_t>& keep) override {
    OUTBOX_TRY(WriteTransaction transaction, begin_as_owner(subscription, holding));
    std::vector<std::int64_t> with_mine = keep;
    with_mine.push_back(holding.generation);
    Status status = forget(subscription, with_mine);
    if (status) {
      status = connection_.run(query::kOpenRange, subscription, holding.generation, std::int64_t{0},
                               std::int64_t{0});
    }
    return status ? transaction.commit() : status;
  }

  [[nodiscard]] Status end(std::int32_t subscription, const Holding& holding) override {
    OUTBOX_TRY(WriteTransaction transaction, WriteTransaction::begin(connection_));
    Status status = connection_.run(query::kEndRun, subscription, holding.generation);
    if (status) status = connection_.run(query::kLeaveTrial, subscription, holding.generation);
    return status ? transaction.commit() : status;
  }

 private:
  [[nodiscard]] Result<WriteTransaction> begin_as_owner(std::int32_t subscription,
                                                        const Holding& holding) {
    OUTBOX_TRY(WriteTransaction transaction, WriteTransaction::begin(connection_));
    if (Status status = check_owner(connection_, subscription, holding.generation); !status)
      return pass(status);
    return transaction;
  }

  [[nodiscard]] Result<std::vector<std::int64_t>> dead_runs(std::int32_t subscription,
                                                            const Holding& holding) {
    std::vector<std::int64_t> dead;
    OUTBOX_TRY(Statement row,
               connection_.query(query::kDeadRuns, subscription, holding.generation));
    while (row.has_row()) {
      dead.push_back(row.integer(0));
      if (Status status = row.next(); !status) return pass(status);
    }
    return dead;
  }

  [[nodiscard]] Status forget(std::int32_t subscription, const std::vector<std::int64_t>& keep) {
    OUTBOX_TRY(const auto runs, former(subscription, kAllLanes, EventId{}));
    for (const FormerRun& run : runs) {
      if (std::find(keep.begin(), keep.end(), run.generation) != keep.end()) continue;
      Status status = connection_.run(query::kForgetRun, subscription, run.generation);
      if (!status) return status;
    }
    return {};
  }

  Connection connection_;
};

}  // namespace

std::unique_ptr<Trials> make_trials(Connection connection) {
  return std::make_unique<SqliteTrials>(std::move(connection));
}

}  // namespace outbox::store::sqlite
