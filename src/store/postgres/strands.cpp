#include "store/postgres/strands.hpp"

#include <utility>

#include "base/error.hpp"

namespace outbox::store::postgres {
namespace {

enum StrandColumn : int { kLanes, kS1, kS2, kPosition, kBound, kGeneration, kStrandRows };

Result<Cursor> read_cursor(const Rows& rows, int row) {
  Cursor cursor{.s1 = rows.text(row, kS1)};
  if (rows.is_null(row, kPosition)) return cursor;
  if (rows.is_null(row, kS2) || rows.is_null(row, kBound)) {
    return fail(Errc::corrupt, "a settlement with a position has no s2 or no l",
                "it was not written by a relay; remove it");
  }
  cursor.s2 = rows.text(row, kS2);
  cursor.position = rows.int8(row, kPosition);
  cursor.bound = rows.int8(row, kBound);
  return cursor;
}

}  // namespace

Result<std::vector<Strand>> to_strands(const Rows& rows) {
  std::vector<Strand> strands;
  for (int row = 0; row < rows.size(); ++row) {
    OUTBOX_TRY(Cursor cursor, read_cursor(rows, row));
    strands.push_back({.lanes = static_cast<LaneMask>(rows.int8(row, kLanes)),
                       .cursor = std::move(cursor),
                       .generation = rows.int8(row, kGeneration),
                       .rows = static_cast<std::size_t>(rows.int8(row, kStrandRows))});
  }
  return strands;
}

Result<std::vector<Strand>> read_strands(Connection& connection, std::int32_t subscription,
                                         LaneMask lanes) {
  OUTBOX_TRY(const Rows rows,
             connection.exec_with(&Queries::plan_settings, &Queries::cursors,
                                  {subscription, static_cast<std::int64_t>(lanes)}));
  return to_strands(rows);
}

}  // namespace outbox::store::postgres
