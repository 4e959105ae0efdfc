#include "store/postgres/mark.hpp"

#include "base/error.hpp"

namespace outbox::store::postgres {

Error other_incarnation() {
  return Error{.code = Errc::unavailable,
               .remedy = Remedy::reconnect,
               .effect = Effect::none,
               .message = "the database server crashed or was replaced while it was read from",
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
  connection.send(queries.begin);
  connection.send(queries.flushed_here);
  connection.send(queries.mark, {Param::int8(reading.value), Param::int8(reading.incarnation)});
  connection.send(queries.commit);
  auto results = connection.finish();
  if (!results) return pass(results);
  return (*results)[2].uint64(0, 0);
}

}  // namespace outbox::store::postgres
