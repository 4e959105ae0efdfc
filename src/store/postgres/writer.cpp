// Writes events for the command line and the benchmarks. Each call is one transaction and one round
// trip.
#include <memory>
#include <utility>

#include "base/error.hpp"
#include "store/enqueue.hpp"
#include "store/postgres/insert.hpp"
#include "store/postgres/parts.hpp"

namespace outbox::store::postgres {
namespace {

class PostgresWriter final : public Writer {
 public:
  explicit PostgresWriter(Connection connection) : connection_(std::move(connection)) {}

  [[nodiscard]] Result<std::vector<EventId>> write(std::span<const Event> events) override {
    OUTBOX_TRY(validate_all(events, EventLimits{}));
    std::vector<EventId> ids = list_ids(events);
    if (events.empty()) return ids;
    std::vector<Step> steps;
    plan_insert(connection_.queries(), events, ids, steps);
    connection_.send(&Queries::begin);
    for (Step& step : steps) connection_.send(*step.query, std::move(step.params));
    connection_.send(&Queries::commit);
    OUTBOX_TRY(connection_.finish());
    return ids;
  }

 private:
  Connection connection_;
};

}  // namespace

std::unique_ptr<Writer> make_writer(Connection connection) {
  return std::make_unique<PostgresWriter>(std::move(connection));
}

}  // namespace outbox::store::postgres
