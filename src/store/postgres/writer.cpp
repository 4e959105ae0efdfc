// Writes events for the command line and the benchmarks: each call one transaction and one round trip.
#include <memory>
#include <utility>

#include "base/error.hpp"
#include "store/common/enqueue.hpp"
#include "store/postgres/insert.hpp"
#include "store/postgres/parts.hpp"

namespace outbox::store::postgres {
namespace {

class PostgresWriter final : public Writer {
 public:
  PostgresWriter(Connection connection, std::shared_ptr<const Queries> queries)
      : connection_(std::move(connection)), queries_(std::move(queries)) {}

  [[nodiscard]] Result<std::vector<EventId>> write(std::span<const Event> events) override {
    if (Status status = validate_all(events, EventLimits{}); !status) return pass(status);
    std::vector<EventId> ids = ids_of(events);
    if (events.empty()) return ids;
    std::vector<Step> steps;
    plan_insert(*queries_, events, ids, steps);
    connection_.send(queries_->begin);
    for (Step& step : steps) connection_.send(*step.query, std::move(step.params));
    connection_.send(queries_->commit);
    auto done = connection_.finish();
    if (!done) return pass(done);
    return ids;
  }

 private:
  Connection connection_;
  std::shared_ptr<const Queries> queries_;
};

}  // namespace

std::unique_ptr<Writer> make_writer(Connection connection, std::shared_ptr<const Queries> queries) {
  return std::make_unique<PostgresWriter>(std::move(connection), std::move(queries));
}

}  // namespace outbox::store::postgres
