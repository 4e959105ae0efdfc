#include "store/postgres/mark.hpp"

#include "base/error.hpp"
#include "store/postgres/transact.hpp"

namespace outbox::store::postgres {

Error other_incarnation() {
  return Error{
      .code = Errc::unavailable,
      .remedy = Remedy::reconnect,
      .effect = Effect::none,
      .message = "the database server crashed or was replaced while the relay read from it",
      .hint = "reading starts again from the settlements",
      .origin = {}};
}

Result<SequenceReading> sequence_reading(const Rows& rows) {
  if (rows.is_null(0, 1)) return fail(other_incarnation());
  return SequenceReading{.value = rows.int8(0, 0), .incarnation = rows.int8(0, 1)};
}

Result<SequenceReading> read_sequence(Connection& connection, const Queries& queries) {
  connection.send(queries.name_incarnation);
  connection.send(queries.sequence);
  auto results = connection.finish();
  if (!results) return pass(results);
  return sequence_reading(results->back());
}

Result<std::uint64_t> write_mark(Connection& connection, const Queries& queries,
                                 const SequenceReading& reading) {
  auto mark = exec_with(connection, queries, queries.flushed_here, queries.mark,
                        {Param::int8(reading.value), Param::int8(reading.incarnation)});
  if (!mark) return pass(mark);
  return mark->uint64(0, 0);
}

}  // namespace outbox::store::postgres
