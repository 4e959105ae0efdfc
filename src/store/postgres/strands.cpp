#include "store/postgres/strands.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"

namespace outbox::store::postgres {
namespace {

enum Column : int { kLanes, kS1, kS2, kPosition, kBound, kGeneration };

Result<Cursor> cursor_of(const Rows& rows, int row) {
  Cursor cursor;
  if (rows.is_null(row, kPosition)) {
    cursor.s1 = rows.text(row, rows.is_null(row, kS2) ? kS1 : kS2);
    return cursor;
  }
  if (rows.is_null(row, kS2) || rows.is_null(row, kBound)) {
    return fail(Errc::corrupt, "a settlement with a position has no s2 or no l",
                "it was not written by a relay; remove it");
  }
  cursor.s1 = rows.text(row, kS1);
  cursor.s2 = rows.text(row, kS2);
  cursor.position = rows.int8(row, kPosition);
  cursor.bound = rows.int8(row, kBound);
  return cursor;
}

}  // namespace

Result<std::vector<Strand>> strands_of(const Rows& rows) {
  std::vector<Strand> strands;
  LaneMask missing = kAllLanes;
  for (int row = 0; row < rows.size() && missing != 0; ++row) {
    const auto lanes = static_cast<LaneMask>(rows.int8(row, kLanes)) & missing;
    if (lanes == 0) continue;
    missing &= ~lanes;
    OUTBOX_TRY(Cursor cursor, cursor_of(rows, row));
    if (!strands.empty() && strands.back().cursor == cursor) {
      strands.back().lanes |= lanes;
    } else {
      strands.push_back(
          {.lanes = lanes, .cursor = std::move(cursor), .generation = rows.int8(row, kGeneration)});
    }
  }
  return strands;
}

}  // namespace outbox::store::postgres
