// outbox/postgres_sql.hpp: the statements of outbox/postgres.hpp as text, for client libraries that
// do not give away their PGconn. outbox/pqxx.hpp is made of them.
//
//   const outbox::postgres::Statements statements;
//   const auto [id, call] = statements.enqueue(event);  // throws if the event is not valid
//   ... run call.sql with call.values in the transaction that is open ...
//   ... if it returns no row: throw outbox::postgres::wrong_encoding() ...
//   ... if it fails: throw outbox::Exception(outbox::postgres::to_error(sqlstate, "enqueue", text))
//
// Threads: Const methods from any thread.
// Lifetime: values.
// Errors: throws outbox::Exception.
#pragma once

#include <outbox/error.hpp>
#include <outbox/event.hpp>
#include <outbox/postgres.hpp>
#include <outbox/task.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace outbox::postgres {

/// One statement with text parameters, none of them null.
struct Call {
  std::string sql;
  std::vector<std::string> values;
};

class Statements {
 public:
  /// Throws when the schema's name is not valid.
  explicit Statements(const Options& options = {});

  /// Checks all events, then returns one call for each, with 9 values. A call writes its event and
  /// returns one row. If it returns no row, the reason is wrong_encoding().
  [[nodiscard]] std::vector<std::pair<EventId, Call>> enqueue(std::span<const Event> events) const;
  [[nodiscard]] std::pair<EventId, Call> enqueue(const Event& event) const;
  /// A call with 2 values; the row that it returns is a boolean.
  [[nodiscard]] Call receive(std::string_view consumer, std::string_view message_id) const;
  /// A call with 4 values for a task that has an id. The row that it returns is the id of the task
  /// that has the unique key, or null.
  [[nodiscard]] Call claim_unique(const Task& task) const;

 private:
  std::string schema_;
  EventLimits limits_;
};

/// The id to return for a task that was not enqueued because `holder` has its unique key. Throws if
/// its Task::on_conflict is OnConflict::error.
[[nodiscard]] EventId holder_of_key(std::string_view holder, const Task& task);

/// What an error of PostgreSQL means. An empty `sqlstate` means that the connection was lost.
[[nodiscard]] Error to_error(std::string_view sqlstate, std::string_view what,
                             std::string_view message);

/// The error of a session whose client_encoding is not UTF-8, as the texts of events are.
[[nodiscard]] Error wrong_encoding();

}  // namespace outbox::postgres
