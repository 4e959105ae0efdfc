// The class Outbox of outbox/postgres.hpp.
#include "store/common/enqueue.hpp"

#include <utility>

#include "base/error.hpp"
#include "store/common/schema_name.hpp"
#include "store/postgres/insert.hpp"
#include "store/postgres/ready.hpp"
#include "store/postgres/session.hpp"
#include "store/postgres/transaction.hpp"

namespace outbox::postgres {
namespace {

using store::only;
using store::value_or_throw;
using store::postgres::Session;
using store::postgres::Step;

}  // namespace

Outbox::Outbox(const Options& options) {
  if (Status status = store::check_schema_name(options.schema); !status) {
    status.error().message = "the schema " + status.error().message;
    throw Exception(std::move(status.error()));
  }
  state_ = std::make_shared<const State>(
      State{.queries = store::postgres::Queries(options.schema), .limits = options.limits});
}

Result<std::vector<EventId>> Outbox::try_enqueue_many(PGconn* connection,
                                                      std::span<const Event> events) const {
  if (connection == nullptr) return fail(Errc::invalid_argument, "enqueue: the connection is null");
  if (Status status = store::postgres::check_ready(connection, "enqueue"); !status)
    return pass(status);
  if (Status status = store::postgres::check_encoding(connection, "enqueue"); !status)
    return pass(status);
  if (Status status = store::validate_all(events, state_->limits); !status) return pass(status);
  std::vector<EventId> ids = store::ids_of(events);
  if (events.empty()) return ids;
  std::vector<Step> steps;
  store::postgres::plan_insert(state_->queries, events, ids, steps);
  auto session = Session::of(connection);
  if (!session) return pass(session);
  if (Status status =
          (*session)->run(connection, std::move(steps), Session::Ending::stay, state_->queries);
      !status) {
    return pass(status);
  }
  return ids;
}

Result<std::vector<EventId>> Outbox::try_enqueue_many(Transaction& tx,
                                                      std::span<const Event> events) const {
  Transaction::State* const state = tx.state_.get();
  if (state == nullptr || !state->open) return store::postgres::not_in_transaction("enqueue");
  if (Status status = store::postgres::check_encoding(state->connection, "enqueue"); !status)
    return pass(status);
  if (Status status = store::validate_all(events, state_->limits); !status) return pass(status);
  std::vector<EventId> ids = store::ids_of(events);
  if (events.empty()) return ids;
  if (state->staged.empty() || state->staged.back().outbox != state_) {
    state->staged.push_back({.outbox = state_, .events = {}, .ids = {}});
  }
  auto& group = state->staged.back();
  group.events.insert(group.events.end(), events.begin(), events.end());
  group.ids.insert(group.ids.end(), ids.begin(), ids.end());
  return ids;
}

Result<EventId> Outbox::try_enqueue(PGconn* connection, const Event& event) const {
  return only(try_enqueue_many(connection, std::span(&event, 1)));
}

Result<EventId> Outbox::try_enqueue(Transaction& tx, const Event& event) const {
  return only(try_enqueue_many(tx, std::span(&event, 1)));
}

EventId Outbox::enqueue(PGconn* connection, const Event& event) const {
  return value_or_throw(try_enqueue(connection, event));
}

EventId Outbox::enqueue(Transaction& tx, const Event& event) const {
  return value_or_throw(try_enqueue(tx, event));
}

std::vector<EventId> Outbox::enqueue_many(PGconn* connection, std::span<const Event> events) const {
  return value_or_throw(try_enqueue_many(connection, events));
}

std::vector<EventId> Outbox::enqueue_many(Transaction& tx, std::span<const Event> events) const {
  return value_or_throw(try_enqueue_many(tx, events));
}

}  // namespace outbox::postgres
