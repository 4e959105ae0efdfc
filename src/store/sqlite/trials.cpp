// The trials of events that may kill the relay.
#include "store/trials.hpp"

#include <utility>

#include "store/sqlite/parking.hpp"
#include "store/sqlite/parts.hpp"
#include "store/sqlite/queries.hpp"

namespace outbox::store::sqlite {
namespace {

class SqliteTrials final : public Trials {
 public:
  explicit SqliteTrials(Connection connection) : connection_(std::move(connection)) {}

  [[nodiscard]] Result<Trial> begin(std::int32_t subscription, const Holding& holding,
                                    const EventId& relay, const std::string& place) override {
    OUTBOX_TRY(WriteTransaction transaction, begin_as_owner(subscription, holding));
    Trial trial;
    std::int64_t fatal = 0;
    {
      OUTBOX_TRY(const Statement run, connection_.query(query::kRun, subscription));
      if (run.has_row() && run.text(1) == relay.str()) {
        trial.deaths = static_cast<std::size_t>(run.integer(3));
      } else if (run.has_row()) {
        fatal = run.integer(0);
        trial.deaths = run.text(2) == place ? static_cast<std::size_t>(run.integer(3)) + 1 : 0;
      }
    }
    if (Status dropped = connection_.run(query::kDropTrials, subscription, fatal); !dropped)
      return pass(dropped);
    OUTBOX_TRY(trial.events, tried(subscription, fatal));
    Status status = connection_.run(query::kCountDeath, subscription, fatal);
    if (status) {
      status = connection_.run(query::kBeginRun, subscription, holding.generation, relay.str(),
                               place, static_cast<std::int64_t>(trial.deaths));
    }
    if (status) status = transaction.commit();
    if (!status) return pass(status);
    return trial;
  }

  [[nodiscard]] Status open(std::int32_t subscription, const Holding& holding,
                            std::int64_t seq) override {
    OUTBOX_TRY(WriteTransaction transaction, begin_as_owner(subscription, holding));
    Status status = close(subscription, holding);
    if (status) status = connection_.run(query::kOpenTrial, subscription, seq, holding.generation);
    return status ? transaction.commit() : status;
  }

  [[nodiscard]] Status end(std::int32_t subscription, const Holding& holding) override {
    OUTBOX_TRY(WriteTransaction transaction, WriteTransaction::begin(connection_));
    Status status = close(subscription, holding);
    if (status) status = connection_.run(query::kEndRun, subscription, holding.generation);
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

  /// The event on trial has survived.
  [[nodiscard]] Status close(std::int32_t subscription, const Holding& holding) {
    Status status = connection_.run(query::kDropSurvivor, subscription, holding.generation);
    return status ? connection_.run(query::kCloseTrial, subscription, holding.generation) : status;
  }

  /// `fatal`: the generation that ended by a death.
  [[nodiscard]] Result<std::vector<TriedEvent>> tried(std::int32_t subscription,
                                                      std::int64_t fatal) {
    std::vector<TriedEvent> events;
    OUTBOX_TRY(Statement row, connection_.query(query::kTrials, subscription));
    while (row.has_row()) {
      const bool newest = fatal != 0 && row.integer(1) == fatal;
      const auto deaths = static_cast<std::size_t>(row.integer(2)) + (newest ? 1 : 0);
      if (deaths > 0) events.push_back({.seq = row.integer(0), .deaths = deaths, .newest = newest});
      if (Status status = row.next(); !status) return pass(status);
    }
    return events;
  }

  Connection connection_;
};

}  // namespace

std::unique_ptr<Trials> make_trials(Connection connection) {
  return std::make_unique<SqliteTrials>(std::move(connection));
}

}  // namespace outbox::store::sqlite
