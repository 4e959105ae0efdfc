// The appended rows that record progress (docs/design/settlements.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "store/cursor.hpp"

namespace outbox::store {

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

/// Stored as text; the words are frozen.
enum class SettlementKind : std::uint8_t { settle, claim, mark, retry, reset };
[[nodiscard]] const char* to_string(SettlementKind kind) noexcept;
/// A word that this version does not know counts as a mark, which moves no cursor.
[[nodiscard]] SettlementKind settlement_kind_of(std::string_view word) noexcept;

/// One row. It covers the events of its lanes visible in s2, not in s1, with from_position < seq <= position
/// (no position: to the end of the pair).
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

  /// Where it leaves the cursor of its lanes.
  [[nodiscard]] Cursor end() const {
    if (!position) return {.s1 = s2};
    return {.s1 = s1, .s2 = s2, .position = *position, .bound = bound};
  }
};

}  // namespace outbox::store
