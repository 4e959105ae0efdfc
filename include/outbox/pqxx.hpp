// outbox/pqxx.hpp: enqueueing in a transaction of libpqxx (6 or 7). Link outbox::pqxx.
//
//   pqxx::work tx(connection);
//   tx.exec("UPDATE orders ...");
//   outbox::libpqxx::enqueue(tx, {.aggregate_type = "order", .aggregate_id = "42",
//                                 .event_type = "OrderPlaced", .payload = R"({"total": 12.5})"});
//   tx.commit();                             // the event exists if and only if this succeeds
//
// The event is written at once, by outbox.enqueue(): change (or lock) the aggregate first, then
// enqueue. An event that is enqueued in a pqxx::subtransaction belongs to it. A
// pqxx::nontransaction does not compile.
//
// Threads: One thread at a time, that of the transaction.
// Lifetime: nothing is kept with the connection.
// Errors: exceptions of libpqxx are thrown as outbox::Exception, as in outbox/postgres.hpp. After
//         invalid_argument or too_large of a field nothing was sent and the transaction is still
//         usable. not_in_transaction means that the transaction has ended, or that a statement of
//         it had failed. The payload_limit of the session holds, too.
#pragma once

#include <outbox/error.hpp>
#include <outbox/event.hpp>
#include <outbox/postgres_sql.hpp>
#include <outbox/task.hpp>
#include <pqxx/pqxx>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace outbox::libpqxx {

namespace detail {

/// The statement with its values instead of $1 to $9.
inline std::string quoted(::pqxx::dbtransaction& tx, const postgres::Call& call) {
  std::string text;
  for (std::size_t at = 0; at < call.sql.size(); ++at) {
    if (call.sql[at] != '$') {
      text += call.sql[at];
    } else {
      text += tx.quote(call.values.at(static_cast<std::size_t>(call.sql[++at] - '1')));
    }
  }
  return text;
}

/// The only value of the row that the statement returns. It calls exec(), because with
/// exec_params() libpqxx 6 does not begin a subtransaction, and the event would outlive it.
inline ::pqxx::field run(::pqxx::dbtransaction& tx, std::string_view what,
                         const postgres::Call& call) {
  try {
    const ::pqxx::result rows = tx.exec(quoted(tx, call));
    if (rows.empty()) throw Exception(postgres::wrong_encoding());
    return rows[0][0];
  } catch (const ::pqxx::argument_error&) {
    throw Exception(postgres::wrong_encoding());
  } catch (const ::pqxx::sql_error& error) {
    throw Exception(postgres::to_error(error.sqlstate(), what, error.what()));
  } catch (const ::pqxx::broken_connection& error) {
    throw Exception(postgres::to_error("", what, error.what()));
  } catch (const ::pqxx::usage_error& error) {
    throw Exception({.code = Errc::not_in_transaction,
                     .remedy = Remedy::fix,
                     .effect = Effect::none,
                     .message = std::string(what) + ": " + error.what(),
                     .hint = {},
                     .origin = {}});
  }
}

}  // namespace detail

/// Writes the event in the transaction and returns its id.
inline EventId enqueue(::pqxx::dbtransaction& tx, const Event& event,
                       const postgres::Options& options = {}) {
  const auto [id, call] = postgres::Statements(options).enqueue(event);
  (void)detail::run(tx, "enqueue", call);
  return id;
}

/// Writes all events, each in one round trip; all are checked before the first is written. Returns
/// their ids in the same order.
inline std::vector<EventId> enqueue(::pqxx::dbtransaction& tx, std::span<const Event> events,
                                    const postgres::Options& options = {}) {
  std::vector<EventId> ids;
  for (const auto& [id, call] : postgres::Statements(options).enqueue(events)) {
    (void)detail::run(tx, "enqueue", call);
    ids.push_back(id);
  }
  return ids;
}

/// Writes the task and returns its id. If another task has its unique key already,
/// Task::on_conflict decides; by default the id of that task is returned.
inline EventId enqueue(::pqxx::dbtransaction& tx, Task task,
                       const postgres::Options& options = {}) {
  if (!task.id) task.id = EventId::generate();
  if (!task.unique_key.empty()) {
    const ::pqxx::field holder =
        detail::run(tx, "enqueue", postgres::Statements(options).claim_unique(task));
    if (!holder.is_null()) return postgres::holder_of_key(holder.as<std::string>(), task);
  }
  return enqueue(tx, to_event(std::move(task)), options);
}

/// Called by a consumer in the transaction of its effect. Returns true the first time that the
/// consumer gets this message.
[[nodiscard]] inline bool receive(::pqxx::dbtransaction& tx, std::string_view consumer,
                                  std::string_view message_id,
                                  const postgres::Options& options = {}) {
  return detail::run(tx, "receive", postgres::Statements(options).receive(consumer, message_id))
      .as<bool>();
}

}  // namespace outbox::libpqxx
