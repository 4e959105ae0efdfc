// A place in the log, as a settlement leaves it: a cursor that can tell which events are before it.
// Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "store/history.hpp"

namespace outbox::verify {

/// Before the place is all that `s1` sees and, of the pair (s1, s2), the events up to `position`.
/// If `s2` is null, no pair has begun.
struct Place {
  store::VisiblePtr s1{};
  store::VisiblePtr s2{};
  std::int64_t position{0};
  std::int64_t bound{store::kNoSeqBound};  ///< No event of the pair has a greater seq.

  [[nodiscard]] bool begun() const noexcept { return s2 != nullptr; }
  /// The snapshot whose events are all delivered once the pair is, too.
  [[nodiscard]] const store::VisiblePtr& end_of_pair() const noexcept { return begun() ? s2 : s1; }
  [[nodiscard]] bool has(std::uint64_t xid, std::int64_t seq) const noexcept {
    return s1->sees(xid) || (begun() && seq <= position && s2->sees(xid));
  }
};

/// Where a settlement begins and ends.
[[nodiscard]] Place start_place(const store::LedgerRow& row);
[[nodiscard]] Place end_place(const store::LedgerRow& row);

/// Whether both are the same cursor.
[[nodiscard]] bool same(const Place& a, const Place& b);
/// Whether every event before `a` is before `b`.
[[nodiscard]] bool within(const Place& a, const Place& b);
/// The events between the places, of all lanes; `from` must be within `to`.
[[nodiscard]] std::vector<store::EventRange> events_between(const Place& from, const Place& to);
/// The lowest transaction, and the lowest seq, that may not be before the place.
[[nodiscard]] std::uint64_t first_open_xid(const Place& place);
[[nodiscard]] std::int64_t first_open_seq(const Place& place);

}  // namespace outbox::verify
