// Checks the ledger of a subscription lane by lane. A row under an old generation is void. A claim
// repeats the cursor. A settlement begins at the cursor and counts exactly what it covers, and all
// of that has arrived.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "sim/groups/promises.hpp"
#include "sim/groups/tables.hpp"
#include "sim/groups/type_split.hpp"
#include "sim/sink.hpp"

namespace outbox::sim {

class LedgerChecks {
 public:
  LedgerChecks(std::int32_t subscription, const Database& database, const Topic& topic,
               const Tables& tables, const TypeSplit& split, Promises& promises)
      : subscription_(subscription),
        database_(database),
        topic_(topic),
        tables_(tables),
        split_(split),
        promises_(promises) {
    begin_again();
  }

  void begin_again();
  /// `discarded` are the events that people have discarded.
  void follow(const SettlementRow& row, bool check, const std::set<std::size_t>& discarded);
  [[nodiscard]] const store::Cursor& cursor(unsigned lane) const { return cursors_[lane]; }
  [[nodiscard]] std::uint64_t void_rows() const { return void_rows_; }
  /// Does the walk of `outbox verify` over the same rows and events.
  void verify(const std::vector<SettlementRow>& rows) const;

 private:
  void compare(const SettlementRow& row, const std::set<std::size_t>& discarded) const;
  [[nodiscard]] bool covers(const SettlementRow& row, const WrittenEvent& event) const;
  [[nodiscard]] bool has_arrived(const WrittenEvent& event, std::size_t number,
                                 const std::set<std::size_t>& discarded) const;

  const std::int32_t subscription_;
  const Database& database_;
  const Topic& topic_;
  const Tables& tables_;
  const TypeSplit& split_;
  Promises& promises_;
  std::array<store::Cursor, 64> cursors_;
  std::array<std::int64_t, 64> generations_{};  ///< The generation of each lane's newest claim.
  std::uint64_t void_rows_{0};
};

}  // namespace outbox::sim
