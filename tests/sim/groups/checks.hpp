// The promises, in a world of groups, each compared when something happens that could break it.
#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "sim/groups/database.hpp"
#include "sim/groups/tables.hpp"
#include "sim/sink.hpp"

namespace outbox::sim {

class GroupChecks {
 public:
  GroupChecks(const Database& database, const Topic& topic, bool exact)
      : database_(database), topic_(topic), exact_(exact) {
    cursors_.fill({.s1 = "3:3:"});
  }

  /// Follows the rows that were appended since, lane by lane: void under an old generation, a claim repeats the cursor, a settlement
  /// begins there, counts what it covers, and all that has arrived.
  void follow(const std::vector<SettlementRow>& rows);
  /// P5: an owner sends nothing that its cursor is past, and nothing twice that was acked.
  void sent(const WrittenEvent& event, std::size_t number, std::int64_t generation,
            const Tables& tables, const std::set<std::size_t>& acked);
  /// After a step: what arrived since. P3, P4.
  void arrivals();
  /// These were visible, and are gone. P3.
  void lost(const std::vector<std::size_t>& numbers);
  /// Begins again with the rows that a crash has left.
  void begin_again(const std::vector<SettlementRow>& rows);
  /// Everything committed has arrived, and is settled.
  [[nodiscard]] bool complete(const Tables& tables) const;
  /// `outbox verify`'s walk over the same rows and events.
  void verify(const std::vector<SettlementRow>& rows);

  void broke(const std::string& what) {
    if (broken_.empty()) broken_ = what;
  }
  [[nodiscard]] const std::string& broken() const { return broken_; }
  [[nodiscard]] std::uint64_t void_rows() const { return void_rows_; }

 private:
  void follow(const SettlementRow& row, bool check);
  void compare(const SettlementRow& row);
  [[nodiscard]] bool covers(const SettlementRow& row, const WrittenEvent& event) const;

  const Database& database_;
  const Topic& topic_;
  const bool exact_;
  std::int64_t followed_{0};  ///< The id of the newest row.
  std::array<store::Cursor, 64> cursors_;
  std::array<std::int64_t, 64> generations_{};  ///< Of the newest claim.
  std::size_t checked_{0};
  std::vector<std::size_t> arrived_of_key_;
  std::vector<bool> arrived_;
  std::uint64_t void_rows_{0};
  std::string broken_;
};

}  // namespace outbox::sim
