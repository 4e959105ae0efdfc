// The implementation of outbox/postgres_sql.hpp.
#include <array>
#include <outbox/postgres_sql.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "event/time_text.hpp"
#include "pg/errors.hpp"
#include "store/enqueue.hpp"
#include "store/postgres/error_map.hpp"
#include "store/schema_name.hpp"

namespace outbox::postgres {
namespace {

/// The bytes in the text form of bytea.
std::string to_hex(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text = "\\x";
  text.reserve(2 + 2 * bytes.size());
  for (const char one : bytes) {
    const auto byte = static_cast<unsigned char>(one);
    text += kDigits[byte >> 4U];
    text += kDigits[byte & 15U];
  }
  return text;
}

std::string to_text(std::optional<bool> flag) {
  if (!flag) return {};
  return *flag ? "true" : "false";
}

/// Under another encoding the server would convert the texts. The condition is evaluated before the
/// function is called.
constexpr const char* kInUtf8 = " WHERE pg_catalog.pg_client_encoding() IN ('UTF8', 'SQL_ASCII')";

}  // namespace

Statements::Statements(const Options& options) : schema_(options.schema), limits_(options.limits) {
  store::throw_if_failed(store::check_schema(schema_));
}

std::vector<std::pair<EventId, Call>> Statements::enqueue(std::span<const Event> events) const {
  store::throw_if_failed(store::validate_all(events, limits_));
  const std::string sql =
      "SELECT \"" + schema_ +
      "\".enqueue($1::text, $2::text, $3::text, $4::bytea, $5::jsonb, $6::uuid, $7::text,"
      " nullif($8::text, '')::boolean, nullif($9::text, '')::timestamptz)" +
      kInUtf8;
  const std::vector<EventId> ids = store::list_ids(events);
  std::vector<std::pair<EventId, Call>> calls;
  calls.reserve(events.size());
  for (std::size_t i = 0; i < events.size(); ++i) {
    const Event& event = events[i];
    const std::string occurred =
        event.occurred_at ? event::time_text(event.occurred_at->time_since_epoch().count()) : "";
    calls.emplace_back(
        ids[i], Call{.sql = sql,
                     .values = {event.aggregate_type, event.aggregate_id, event.event_type,
                                to_hex(event.payload), store::headers_text(event), ids[i].str(),
                                event.content_type, to_text(event.lock_key), occurred}});
  }
  return calls;
}

std::pair<EventId, Call> Statements::enqueue(const Event& event) const {
  return std::move(enqueue(std::span(&event, 1)).front());
}

Call Statements::receive(std::string_view consumer, std::string_view message_id) const {
  return {.sql = "SELECT \"" + schema_ + "\".receive($1::text, $2::text)" + kInUtf8,
          .values = {std::string(consumer), std::string(message_id)}};
}

Call Statements::claim_unique(const Task& task) const {
  store::throw_if_failed(validate(task, limits_));
  if (!task.id)
    throw Exception(fail(Errc::invalid_argument, "claim a unique key: the task has no id").value());
  return {.sql = "SELECT \"" + schema_ +
                 "\".claim_unique($1::text, $2::text, $3::uuid, $4::boolean)" + kInUtf8,
          .values = {task.queue, task.unique_key, task.id->str(),
                     to_text(task.on_conflict == OnConflict::replace)}};
}

EventId holder_of_key(std::string_view holder, const Task& task) {
  return store::holder_of_key(store::value_or_throw(EventId::parse(holder)), task);
}

Error to_error(std::string_view sqlstate, std::string_view what, std::string_view message) {
  if (!sqlstate.empty()) return store::postgres::map_sqlstate(sqlstate, what, message);
  return {.code = Errc::unavailable,
          .remedy = Remedy::reconnect,
          .effect = Effect::unknown,
          .message = pg::in_words(what, pg::one_line(message)),
          .hint = {},
          .origin = {}};
}

Error wrong_encoding() {
  return fail(
             Errc::invalid_argument,
             "enqueue: the connection's client_encoding is not UTF8, and the texts of events are UTF-8",
             "SET client_encoding = 'UTF8', or PGCLIENTENCODING=UTF8")
      .value();
}

}  // namespace outbox::postgres
