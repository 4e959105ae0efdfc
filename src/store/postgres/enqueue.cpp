// The class Outbox of outbox/postgres.hpp.
#include "store/enqueue.hpp"

#include <libpq-fe.h>

#include <memory>
#include <outbox/postgres.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "store/postgres/error_map.hpp"
#include "store/postgres/insert.hpp"
#include "store/postgres/outbox_state.hpp"
#include "store/postgres/parts.hpp"
#include "store/postgres/session.hpp"
#include "store/postgres/task_queries.hpp"
#include "store/schema_name.hpp"

namespace outbox::postgres {

using store::only;
using store::value_or_throw;
using store::postgres::check_encoding;
using store::postgres::check_ready;
using store::postgres::Rows;
using store::postgres::Session;
using store::postgres::Step;

namespace {

/// One statement with one row, in the transaction of the connection.
Rows ask(PGconn* connection, const store::postgres::Query& query,
         const store::postgres::Params& params, const char* what) {
  if (Status status = check_ready(connection, what); !status)
    throw Exception(std::move(status.error()));
  if (Status status = check_encoding(connection, what); !status)
    throw Exception(std::move(status.error()));
  const pg::Arguments arguments(params);
  constexpr int kBinary = 1;
  Rows rows(PQexecParams(connection, query.sql.c_str(), arguments.count(), nullptr,
                         arguments.values.data(), arguments.lengths.data(),
                         arguments.formats.data(), kBinary));
  if (PQresultStatus(rows.native()) != PGRES_TUPLES_OK)
    throw Exception(store::postgres::map_result(rows.native(), connection, what));
  return rows;
}

}  // namespace

Outbox::Outbox(const Options& options) {
  if (Status status = store::check_schema(options.schema); !status)
    throw Exception(std::move(status.error()));
  state_ = std::make_shared<const State>(
      State{.queries = store::postgres::EnqueueQueries(options.schema),
            .tasks = store::postgres::TaskQueries(options.schema),
            .limits = options.limits,
            .schema = options.schema});
}

Result<std::vector<EventId>> Outbox::try_enqueue_many(PGconn* connection,
                                                      std::span<const Event> events) const {
  OUTBOX_TRY(check_ready(connection, "enqueue"));
  OUTBOX_TRY(check_encoding(connection, "enqueue"));
  OUTBOX_TRY(store::validate_all(events, state_->limits));
  std::vector<EventId> ids = store::ids_of(events);
  if (events.empty()) return ids;
  std::vector<Step> steps;
  store::postgres::plan_insert(state_->queries, events, ids, steps);
  OUTBOX_TRY(Session* const session, Session::of(connection));
  OUTBOX_TRY(session->run(connection, std::move(steps), Session::Ending::stay, state_->queries));
  return ids;
}

Result<std::vector<EventId>> Outbox::try_enqueue_many(Transaction& tx,
                                                      std::span<const Event> events) const {
  Transaction::State* const state = tx.state_.get();
  if (state == nullptr || !state->open) return store::postgres::not_in_transaction("enqueue");
  OUTBOX_TRY(check_encoding(state->connection, "enqueue"));
  OUTBOX_TRY(store::validate_all(events, state_->limits));
  std::vector<EventId> ids = store::ids_of(events);
  if (events.empty()) return ids;
  if (state->staged.empty() || state->staged.back().outbox != state_) {
    state->staged.push_back({.outbox = state_, .events = {}, .ids = {}});
  }
  if (!state->mark) state->mark = {.schema = state_->schema, .event = ids.front()};
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

bool Outbox::receive(PGconn* connection, std::string_view consumer,
                     std::string_view message_id) const {
  const Rows rows =
      ask(connection, state_->queries.receive,
          {store::postgres::Param(consumer), store::postgres::Param(message_id)}, "receive");
  return rows.boolean(0, 0);
}

bool Outbox::receive(Transaction& tx, std::string_view consumer,
                     std::string_view message_id) const {
  return receive(tx.connection(), consumer, message_id);
}

std::optional<EventId> Outbox::claim_unique(PGconn* connection, const Task& task) const {
  if (Status status = validate(task, state_->limits); !status)
    throw Exception(std::move(status.error()));
  const Rows rows = ask(connection, state_->queries.claim_unique,
                        {store::postgres::Param(task.queue),
                         store::postgres::Param(task.unique_key), store::postgres::Param(*task.id),
                         store::postgres::Param(task.on_conflict == OnConflict::replace)},
                        "enqueue");
  if (rows.is_null(0, 0)) return std::nullopt;
  return store::holder_of_key(rows.uuid(0, 0), task);
}

std::optional<EventId> Outbox::claim_unique(Transaction& tx, const Task& task) const {
  // What was enqueued before it stands before it in the log.
  tx.flush();
  return claim_unique(tx.connection(), task);
}

Result<std::optional<TaskStatus>> Outbox::try_task(PGconn* connection, const EventId& id) const {
  Status status = store::postgres::check_open(connection, "look at a task");
  if (status) status = check_encoding(connection, "look at a task");
  if (!status) return pass(status);
  const auto& queries = state_->tasks;
  std::vector<Step> steps;
  steps.push_back({.query = &queries.quiet});
  steps.push_back({.query = &queries.status, .params = {id}});
  steps.push_back({.query = &queries.loud});
  OUTBOX_TRY(Session* const session, Session::of(connection));
  OUTBOX_TRY(const auto rows, session->read(connection, std::move(steps), state_->queries));
  return store::postgres::task_status_of(rows[1], id);
}

std::optional<TaskStatus> Outbox::task(PGconn* connection, const EventId& id) const {
  return value_or_throw(try_task(connection, id));
}

std::optional<TaskStatus> Outbox::task(Transaction& tx, const EventId& id) const {
  return task(tx.connection(), id);
}

}  // namespace outbox::postgres
