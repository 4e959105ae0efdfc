// How far a subscription is delivered on some lanes (docs/design/reading.md).
#pragma once

#include <cstdint>
#include <string>

namespace outbox::store {

/// Of the 64 lanes, the hash slices of the keys that relays divide among themselves; one bit each.
using LaneMask = std::uint64_t;
inline constexpr LaneMask kAllLanes = ~LaneMask{0};

/// Two snapshots: the rows visible in `s2` and not in `s1` are delivered together, in seq order. `bound` is the value
/// of the sequence returned with s2: no row of the pair has a greater seq.
/// A store whose seq order is its commit order (SQLite) has one endless pair, `endless()`.
struct Pair {
  std::string s1{};
  std::string s2{};
  std::int64_t bound{0};
  /// The store's transaction counter at s2 (PostgreSQL: its xmax). A cursor far behind it keeps old partitions in use.
  /// 0: the store has no such counter.
  std::uint64_t horizon{0};

  static Pair endless() { return {.s1 = "-", .s2 = "-"}; }
  bool operator==(const Pair&) const = default;
};

/// A place between two events: all of `s1`, and of the pair (s1, s2) the rows up to `position`.
/// Drained: s2 is empty, no pair has begun.
struct Cursor {
  std::string s1{};
  std::string s2{};
  std::int64_t position{0};
  std::int64_t bound{0};

  [[nodiscard]] bool drained() const { return s2.empty(); }
  bool operator==(const Cursor&) const = default;
};

/// Lanes that stand at the same cursor.
struct Strand {
  LaneMask lanes{kAllLanes};
  Cursor cursor{};
  std::int64_t generation{0};  ///< The lowest of its lanes.
  std::size_t rows{1};         ///< From so many settlements.
};

}  // namespace outbox::store
