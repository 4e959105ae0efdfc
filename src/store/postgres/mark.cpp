#include "store/postgres/mark.hpp"

#include "base/error.hpp"

namespace outbox::store::postgres {

tl::unexpected<Error> other_incarnation() {
  return fail(Errc::unavailable, Remedy::reconnect,
              "the database server crashed or was replaced while the relay read from it",
              "reading starts again from the settlements");
}

Result<SequenceReading> sequence_reading(const Rows& rows) {
  if (rows.is_null(0, 1)) return other_incarnation();
  return SequenceReading{.value = rows.int8(0, 0), .incarnation = rows.int8(0, 1)};
}

Result<SequenceReading> read_sequence(Connection& connection) {
  connection.send(&Queries::name_incarnation);
  connection.send(&Queries::sequence);
  OUTBOX_TRY(const auto results, connection.finish());
  return sequence_reading(results.back());
}

Result<std::uint64_t> write_mark(Connection& connection, const SequenceReading& reading) {
  OUTBOX_TRY(const Rows mark,
             connection.exec_with(&Queries::flushed_here, &Queries::mark,
                                  {Param::int8(reading.value), Param::int8(reading.incarnation)}));
  return mark.uint64(0, 0);
}

}  // namespace outbox::store::postgres
