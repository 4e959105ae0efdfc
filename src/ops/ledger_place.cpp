#include "ops/ledger_place.hpp"

#include <algorithm>

namespace outbox::ops {
namespace {

using store::VisiblePtr;

bool same(const VisiblePtr& a, const VisiblePtr& b) {
  return a == b || (a != nullptr && b != nullptr && *a == *b);
}

/// What `a` sees, `b` does.
bool within(const VisiblePtr& a, const VisiblePtr& b) {
  return a == b || (a->xmax <= b->xmax &&
                    std::all_of(b->running.begin(), b->running.end(), [&](std::uint64_t xid) {
                      return xid >= a->xmax || !a->sees(xid);
                    }));
}

/// A pair of which nothing is done has not begun.
Place place_in_pair(const store::LedgerRow& row, std::int64_t position) {
  if (position == 0 || row.s2 == nullptr) return {.s1 = row.s1};
  return {.s1 = row.s1,
          .s2 = row.s2,
          .position = position,
          .bound = row.bound > 0 ? row.bound : store::kNoSeqBound};
}

}  // namespace

Place start_of(const store::LedgerRow& row) { return place_in_pair(row, row.from_position); }

Place end_of(const store::LedgerRow& row) {
  if (row.position) return place_in_pair(row, *row.position);
  return {.s1 = row.s2 != nullptr ? row.s2 : row.s1};
}

bool same(const Place& a, const Place& b) {
  return a.position == b.position && same(a.s1, b.s1) && same(a.s2, b.s2);
}

bool within(const Place& a, const Place& b) {
  if (!a.begun()) return within(a.s1, b.s1);
  if (same(a.s1, b.s1) && same(a.s2, b.s2)) return a.position <= b.position;
  return within(a.s2, b.s1);
}

std::uint64_t first_open_xid(const Place& place) { return place.s1->first_unseen(); }

std::int64_t first_open_seq(const Place& place) { return place.begun() ? place.position + 1 : 1; }

}  // namespace outbox::ops
