// The trials of events that may kill the relay; the functions are in 0004_parking.sql.
#include "store/trials.hpp"

#include <utility>

#include "store/postgres/parts.hpp"

namespace outbox::store::postgres {
namespace {

class PostgresTrials final : public Trials {
 public:
  explicit PostgresTrials(Connection connection) : connection_(std::move(connection)) {}

  [[nodiscard]] Result<Trial> begin(std::int32_t subscription, const Holding& holding,
                                    const EventId& relay, const std::string& place) override {
    OUTBOX_TRY(const Rows rows,
               connection_.exec_with(&Queries::flushed, &Queries::begin_run,
                                     {subscription, static_cast<std::int64_t>(holding.lanes),
                                      holding.generation, relay, place}));
    Trial trial;
    for (int row = 0; row < rows.size(); ++row) {
      const auto deaths = static_cast<std::size_t>(rows.int4(row, 1));
      if (rows.is_null(row, 0)) {
        trial.deaths = deaths;
      } else {
        trial.events.push_back(
            {.seq = rows.int8(row, 0), .deaths = deaths, .newest = rows.boolean(row, 2)});
      }
    }
    return trial;
  }

  [[nodiscard]] Status open(std::int32_t subscription, const Holding& holding,
                            std::int64_t seq) override {
    auto opened = connection_.exec_with(&Queries::flushed, &Queries::open_trial,
                                        {subscription, holding.generation, seq});
    return opened ? Status{} : Status(pass(opened));
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
