// The functions of outbox/postgres.hpp that enqueue events, receive messages and look at tasks.
#include "store/enqueue.hpp"

#include <libpq-fe.h>

#include <map>
#include <outbox/postgres.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/mutex.hpp"
#include "event/headers.hpp"
#include "store/postgres/error_map.hpp"
#include "store/postgres/insert.hpp"
#include "store/postgres/outbox_state.hpp"
#include "store/postgres/parts.hpp"
#include "store/postgres/session.hpp"
#include "store/postgres/task_queries.hpp"
#include "store/schema_name.hpp"

namespace outbox::postgres {

using store::throw_if_failed;
using store::value_or_throw;
using store::postgres::check_encoding;
using store::postgres::check_ready;
using store::postgres::Rows;
using store::postgres::Session;
using store::postgres::Step;

namespace {

/// Runs a statement that returns one row, in the transaction of the connection.
Rows ask(PGconn* connection, const store::postgres::Query& query,
         const store::postgres::Params& params, const char* what) {
  throw_if_failed(check_ready(connection, what));
  throw_if_failed(check_encoding(connection, what));
  const pg::Arguments arguments(params);
  constexpr int kBinary = 1;
  Rows rows(PQexecParams(connection, query.sql.c_str(), arguments.count(), nullptr,
                         arguments.values.data(), arguments.lengths.data(),
                         arguments.formats.data(), kBinary));
  if (PQresultStatus(rows.native()) != PGRES_TUPLES_OK)
    throw Exception(store::postgres::map_result(rows.native(), connection, what));
  return rows;
}

/// Claims the unique key for the task, which has an id. Returns the id of the task that holds the
/// key already; nullopt if the claim succeeded.
std::optional<EventId> claim_unique(PGconn* connection, const Task& task, const Target& target,
                                    const EventLimits& limits) {
  throw_if_failed(validate(task, limits));
  const Rows rows = ask(connection, target.queries.claim_unique,
                        {store::postgres::Param(task.queue),
                         store::postgres::Param(task.unique_key), store::postgres::Param(*task.id),
                         store::postgres::Param(task.on_conflict == OnConflict::replace)},
                        "enqueue");
  if (rows.is_null(0, 0)) return std::nullopt;
  return store::holder_of_key(rows.uuid(0, 0), task);
}

bool claim_first(PGconn* connection, std::string_view consumer, std::string_view message_id,
                 const Target& target) {
  const Rows rows =
      ask(connection, target.queries.receive,
          {store::postgres::Param(consumer), store::postgres::Param(message_id)}, "receive");
  return rows.boolean(0, 0);
}

}  // namespace

const Target& find_target(const std::string& schema) {
  static Mutex mutex;
  static std::map<std::string, const Target> made OUTBOX_GUARDED_BY(mutex);
  const MutexLock lock(mutex);
  if (const auto known = made.find(schema); known != made.end()) return known->second;
  throw_if_failed(store::check_schema(schema));
  return made
      .emplace(schema, Target{.queries = store::postgres::EnqueueQueries(schema),
                              .tasks = store::postgres::TaskQueries(schema)})
      .first->second;
}

// ---- in a Transaction

std::vector<EventId> Transaction::enqueue(std::span<const Event> events) & {
  if (!is_open()) throw Exception(store::postgres::not_in_transaction("enqueue").value());
  throw_if_failed(check_encoding(state_->connection, "enqueue"));
  throw_if_failed(store::validate_all(events, state_->limits));
  std::vector<EventId> ids = store::list_ids(events);
  if (events.empty()) return ids;
  if (!state_->mark) state_->mark = {.schema = state_->target.queries.schema, .event = ids.front()};
  std::vector<Event> taken(events.begin(), events.end());
  event::inherit(taken, state_->inherited);
  for (Event& event : taken) state_->events.push_back(std::move(event));
  state_->ids.insert(state_->ids.end(), ids.begin(), ids.end());
  return ids;
}

EventId Transaction::enqueue(const Event& event) & { return enqueue(std::span(&event, 1)).front(); }

EventId Transaction::enqueue(Task task) & {
  if (!task.id) task.id = EventId::generate();
  if (!task.unique_key.empty()) {
    // Events that were enqueued before the task come before it in the log.
    flush();
    if (const auto holder = claim_unique(connection(), task, state_->target, state_->limits))
      return *holder;
  }
  return enqueue(to_event(std::move(task)));
}

void Transaction::inherit(std::vector<Header> headers) & { state_->inherited = std::move(headers); }

bool Transaction::receive(std::string_view consumer, std::string_view message_id) & {
  if (!is_open()) throw Exception(store::postgres::not_in_transaction("receive").value());
  return claim_first(connection(), consumer, message_id, state_->target);
}

// ---- in a transaction of the application

std::vector<EventId> enqueue(PGconn* connection, std::span<const Event> events,
                             const Options& options) {
  const auto& queries = find_target(options.schema).queries;
  throw_if_failed(check_ready(connection, "enqueue"));
  throw_if_failed(check_encoding(connection, "enqueue"));
  throw_if_failed(store::validate_all(events, options.limits));
  std::vector<EventId> ids = store::list_ids(events);
  if (events.empty()) return ids;
  std::vector<Step> steps;
  store::postgres::plan_insert(queries, events, ids, steps);
  Session* const session = value_or_throw(Session::of(connection, "enqueue"));
  throw_if_failed(session->run(connection, std::move(steps), Session::Ending::stay, queries));
  return ids;
}

EventId enqueue(PGconn* connection, const Event& event, const Options& options) {
  return enqueue(connection, std::span(&event, 1), options).front();
}

EventId enqueue(PGconn* connection, Task task, const Options& options) {
  if (!task.id) task.id = EventId::generate();
  if (!task.unique_key.empty()) {
    const Target& target = find_target(options.schema);
    if (const auto holder = claim_unique(connection, task, target, options.limits)) return *holder;
  }
  return enqueue(connection, to_event(std::move(task)), options);
}

bool receive(PGconn* connection, std::string_view consumer, std::string_view message_id,
             const Options& options) {
  return claim_first(connection, consumer, message_id, find_target(options.schema));
}

std::optional<TaskStatus> task_status(PGconn* connection, const EventId& id,
                                      const Options& options) {
  const Target& target = find_target(options.schema);
  throw_if_failed(store::postgres::check_open(connection, "look at a task"));
  throw_if_failed(check_encoding(connection, "look at a task"));
  std::vector<Step> steps;
  steps.push_back({.query = &target.tasks.quiet});
  steps.push_back({.query = &target.tasks.status, .params = {id}});
  steps.push_back({.query = &target.tasks.loud});
  Session* const session = value_or_throw(Session::of(connection, "look at a task"));
  const auto rows = value_or_throw(session->read(connection, std::move(steps), target.queries));
  return store::postgres::read_task_status(rows[1], id);
}

}  // namespace outbox::postgres
