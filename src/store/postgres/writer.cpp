#include "store/postgres/writer.hpp"

#include <utility>

#include "base/error.hpp"
#include "store/common/enqueue.hpp"
#include "store/postgres/insert.hpp"

namespace outbox::store::postgres {

Result<std::vector<EventId>> PostgresWriter::write(std::span<const Event> events) {
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

}  // namespace outbox::store::postgres
