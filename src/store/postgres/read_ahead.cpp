#include "store/postgres/read_ahead.hpp"

#include <utility>

#include "base/log.hpp"

namespace outbox::store::postgres {
namespace {

/// A range that takes longer per row was not in memory, from where a row takes a quarter of a
/// microsecond.
constexpr double kColdUsPerRow = 1;

}  // namespace

void ReadAhead::follow(std::int64_t position, std::int64_t end) {
  if (end - position < AheadPlan::kStretch) return connection_.reset();
  if (failed_ || (connection_ && !is_free())) return;
  const auto range = plan_.next(position, end);
  if (!range) return;
  if (!connection_ && !open()) return give_up();
  connection_->send(&Queries::read_ahead, {range->from, range->to});
  if (!connection_->sync()) give_up();
}

/// The settings last as long as the session, so that an answer is one result; of several results
/// only the first could be checked without waiting. Through a pooler the settings would reach other
/// clients.
bool ReadAhead::open() {
  auto opened = connect_();
  if (!opened) return false;
  connection_.emplace(std::move(*opened));
  const auto backend = connection_->exec(&Queries::backend);
  return backend && backend->int4(0, 0) == PQbackendPID(connection_->native()) &&
         connection_->run(&Queries::ahead_settings);
}

bool ReadAhead::is_free() {
  if (!connection_->pending()) return true;
  PGconn* const native = connection_->native();
  if (PQconsumeInput(native) == 1 && PQisBusy(native) == 1) return false;
  auto answers = connection_->collect();
  if (!answers) {
    give_up();
    return false;
  }
  const Rows& answer = answers->front();
  const auto rows = static_cast<double>(answer.int8(0, 0));
  plan_.found(static_cast<double>(answer.int8(0, 1)) > rows * kColdUsPerRow);
  return true;
}

/// Stops reading ahead until the relay connects again; this is not worth a second try.
void ReadAhead::give_up() {
  log::debug("the backlog is not read ahead", {});
  connection_.reset();
  failed_ = true;
}

}  // namespace outbox::store::postgres
