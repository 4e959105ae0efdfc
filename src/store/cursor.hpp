// How far a subscription is delivered on some lanes, and the rows that say so (docs/design/reading.md, settlements.md).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace outbox::store {

/// Bit mask over the 64 lanes.
using LaneMask = std::uint64_t;
inline constexpr LaneMask kAllLanes = ~LaneMask{0};

/// Two snapshots: the rows visible in `s2` and not in `s1` are delivered together, in seq order. `bound` is the value
/// of the sequence returned with s2: no row of the pair has a greater seq.
/// A store whose seq order is its commit order (SQLite) has one endless pair, `endless()`.
struct Pair {
  std::string s1{};
  std::string s2{};
  std::int64_t bound{0};
  /// How far the store's count of transactions had come (PostgreSQL: xmax of s2). A cursor that stays far behind it keeps
  /// old partitions alive. 0: of no interest.
  std::uint64_t horizon{0};

  static Pair endless() { return {.s1 = "-", .s2 = "-"}; }
  bool operator==(const Pair&) const = default;
};

/// A place between two events: all of `s1`, and of the pair (s1, s2) the rows up to `position`.
/// Drained: s2 is empty, there is no begun pair.
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
  std::int64_t generation{0};
};

/// Count of events and the sum (mod 2^64) of the hashes of their ids: the ledger's entry for one outcome.
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

/// Stored as text; do not change the words.
enum class SettlementKind : std::uint8_t { settle, claim, mark, retry, reset };
[[nodiscard]] const char* to_string(SettlementKind kind) noexcept;

/// One appended row of progress. It covers the events of its lanes visible in s2, not in s1, with
/// from_position < seq <= position (no position: to the end of the pair).
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
};

}  // namespace outbox::store
