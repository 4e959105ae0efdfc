#include "store/sqlite/seq_at.hpp"

#include "store/sqlite/queries.hpp"

namespace outbox::store::sqlite {

Result<std::int64_t> seq_at(Connection& connection, std::int64_t time_us) {
  OUTBOX_TRY(std::int64_t low, connection.integer(query::kOldestSeq));
  OUTBOX_TRY(std::int64_t high, connection.integer(query::kNewestSeq));
  ++high;
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    OUTBOX_TRY(const Statement row, connection.query(query::kCreatedFrom, middle, high));
    if (row.has_row() && row.integer(1) < time_us) {
      low = row.integer(0) + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

}  // namespace outbox::store::sqlite
