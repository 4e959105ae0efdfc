#include "verify/ledger_place.hpp"

#include <algorithm>

namespace outbox::verify {
namespace {

using store::VisiblePtr;

bool same(const VisiblePtr& a, const VisiblePtr& b) {
  return a == b || (a != nullptr && b != nullptr && *a == *b);
}

/// Whether `b` sees all that `a` sees.
bool within(const VisiblePtr& a, const VisiblePtr& b) {
  return a == b || (a->xmax <= b->xmax &&
                    std::all_of(b->running.begin(), b->running.end(), [&](std::uint64_t xid) {
                      return xid >= a->xmax || !a->sees(xid);
                    }));
}

/// A pair whose position is 0 has not begun.
Place place_in_pair(const store::LedgerRow& row, std::int64_t position) {
  if (position == 0 || row.s2 == nullptr) return {.s1 = row.s1};
  return {.s1 = row.s1,
          .s2 = row.s2,
          .position = position,
          .bound = row.bound > 0 ? row.bound : store::kNoSeqBound};
}

}  // namespace

Place start_place(const store::LedgerRow& row) { return place_in_pair(row, row.from_position); }

Place end_place(const store::LedgerRow& row) {
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

std::vector<store::EventRange> events_between(const Place& from, const Place& to) {
  std::vector<store::EventRange> ranges;
  const bool in_one_pair = from.begun() && to.begun() && *from.s1 == *to.s1 && *from.s2 == *to.s2;
  if (from.begun()) {
    ranges.push_back({.after = from.s1,
                      .upto = from.s2,
                      .above = from.position,
                      .last = in_one_pair ? to.position : from.bound});
  }
  if (in_one_pair) return ranges;
  if (!(*from.end_of_pair() == *to.s1))
    ranges.push_back({.after = from.end_of_pair(), .upto = to.s1});
  if (to.begun()) ranges.push_back({.after = to.s1, .upto = to.s2, .last = to.position});
  return ranges;
}

std::uint64_t first_open_xid(const Place& place) { return place.s1->first_unseen(); }

std::int64_t first_open_seq(const Place& place) { return place.begun() ? place.position + 1 : 1; }

}  // namespace outbox::verify
