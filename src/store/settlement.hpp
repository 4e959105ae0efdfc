// Cursors, and the appended rows that record progress (docs/design/settlements.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace outbox::store {

// ---- How far a subscription is delivered on some lanes (docs/design/reading.md).

/// A set of the 64 lanes, the hash slices of the keys that relays divide among themselves; one bit
/// each.
using LaneMask = std::uint64_t;
inline constexpr LaneMask kAllLanes = ~LaneMask{0};

/// Two snapshots: the rows visible in `s2` and not in `s1` are delivered together, in seq order.
/// `bound` is the value of the sequence returned with s2: no row of the pair has a greater seq. A
/// store whose seq order is its commit order (SQLite) has one endless pair, `endless()`.
struct Pair {
  std::string s1{};
  std::string s2{};
  std::int64_t bound{0};
  /// The store's transaction counter at s2 (PostgreSQL: its xmax); 0 if the store has no such
  /// counter. A cursor far behind it keeps old partitions in use.
  std::uint64_t horizon{0};

  static Pair endless() { return {.s1 = "-", .s2 = "-"}; }
  bool operator==(const Pair&) const = default;
};

/// A place between two events: it is behind all of `s1` and, of the pair (s1, s2), behind the rows
/// up to `position`. The cursor is drained if s2 is empty: then no pair has begun.
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
  std::int64_t generation{0};  ///< The lowest generation of its lanes.
  std::size_t rows{1};         ///< The number of settlements that it was read from.
};

/// The count of events and the sum (mod 2^64) of the hashes of their ids: the ledger's entry for
/// one outcome.
struct Tally {
  std::int64_t count{0};
  std::uint64_t hash{0};

  void add(std::uint64_t id_hash) {
    ++count;
    hash += id_hash;
  }
  Tally& operator+=(const Tally& other) {
    count += other.count;
    hash += other.hash;
    return *this;
  }
  bool operator==(const Tally&) const = default;
};

/// Stored as text; the words are frozen.
enum class SettlementKind : std::uint8_t { settle, claim, mark, retry, reset };
[[nodiscard]] const char* to_string(SettlementKind kind) noexcept;
/// A word that this version does not know counts as a mark, which moves no cursor.
[[nodiscard]] SettlementKind parse_settlement_kind(std::string_view word) noexcept;

/// One row. It covers the events of its lanes that are visible in s2 and not in s1, with
/// from_position < seq <= position (without a position, to the end of the pair).
struct Settlement {
  std::int32_t subscription{0};
  SettlementKind kind{SettlementKind::settle};
  LaneMask lanes{kAllLanes};
  std::int64_t generation{0};
  std::int32_t config_version{0};
  std::string s1{};
  std::string s2{};
  std::int64_t from_position{0};
  std::optional<std::int64_t> position{};
  std::int64_t bound{0};
  Tally acked{};
  Tally filtered{};
  Tally parked{};

  /// Where the row leaves the cursor of its lanes.
  [[nodiscard]] Cursor end() const {
    if (!position) return {.s1 = s2};
    return {.s1 = s1, .s2 = s2, .position = *position, .bound = bound};
  }
};

}  // namespace outbox::store
