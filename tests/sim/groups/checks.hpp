// The promises, in a world of groups, each compared when something happens that could break it.
#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "sim/groups/database.hpp"
#include "sim/groups/ledger_checks.hpp"
#include "sim/groups/promises.hpp"
#include "sim/groups/tables.hpp"
#include "sim/groups/type_split.hpp"
#include "sim/sink.hpp"

namespace outbox::sim {

class GroupChecks {
 public:
  GroupChecks(const Database& database, const Topic& topic, const Tables& tables, bool exact,
              bool dead_blocks)
      : database_(database),
        topic_(topic),
        tables_(tables),
        exact_(exact),
        dead_blocks_(dead_blocks) {}

  /// Follows the rows that were appended since.
  void follow(const std::vector<SettlementRow>& rows);
  /// P5: an owner sends nothing that its cursor is past, nothing twice that was acked, and nothing
  /// that another subscription has.
  void sent(std::int32_t subscription, const WrittenEvent& event, std::size_t number,
            std::int64_t generation, const std::set<std::size_t>& acked);
  /// The same for a parked event that is sent again.
  void sent_again(std::int32_t subscription, const WrittenEvent& event, std::size_t number,
                  std::int64_t generation, const std::set<std::size_t>& acked);
  /// A relay knows that it has delivered it for this subscription.
  void remembers(std::int32_t subscription, std::size_t number) {
    split_.remembers(subscription, number);
  }
  /// P6: what a relay sets aside, `bad`: by the dice this event fails; and an attempt that it
  /// counts.
  void parks(const store::ParkedEvent& event, std::size_t number, bool bad);
  /// By its own fault, or because it takes long: the rest of its key waits.
  void set_aside(std::size_t number) { troubled_.insert(database_.event(number).key); }
  /// It is sent no more unless a person says so, so that the order of its key is not affected by
  /// it.
  void died(std::size_t number) { ever_dead_.insert(number); }
  void discarded(std::size_t number) { discarded_.insert(number); }
  /// A replay begins: what live delivery has passed in its range and is not parked must be sent
  /// again.
  void replay_begins(const ReplayRecord& record);
  /// An owner sends only what live delivery has passed, and nothing that is parked.
  void replays(const WrittenEvent& event, std::size_t number, std::int64_t generation);
  /// After its rows were written.
  void follow(const ReplayRecord& record);
  /// What a crash took back is delivered again, not by the replay.
  void forget_unsettled();
  /// After a step: what arrived since. P3, P4.
  void arrivals();
  /// These were visible, and are gone. P3.
  void lost(const std::vector<std::size_t>& numbers);
  /// Begins again with the rows that a crash has left.
  void begin_again(const std::vector<SettlementRow>& rows);
  /// Everything committed has arrived, and is settled.
  [[nodiscard]] bool complete() const;
  /// `outbox verify`'s walk over the same rows and events.
  void verify(const std::vector<SettlementRow>& rows);

  void broke(const std::string& what) { promises_.broke(what); }
  [[nodiscard]] const std::string& broken() const { return promises_.broken(); }
  [[nodiscard]] std::uint64_t void_rows() const {
    return ledgers_[0].void_rows() + ledgers_[1].void_rows();
  }

 private:
  void follow(const SettlementRow& row, bool check);
  void check_replayed(const WrittenEvent& event, std::size_t number);
  void check_order(const WrittenEvent& event, std::size_t number);
  /// It may come after later ones of its key, or never.
  [[nodiscard]] bool is_out_of_order(std::size_t number) const {
    return discarded_.contains(number) || (!dead_blocks_ && ever_dead_.contains(number));
  }
  [[nodiscard]] bool is_parked(const EventView& event) const {
    const auto& rows = tables_.parked().rows();
    const auto row = rows.find(event.seq);
    return row != rows.end() && row->second.event.id == event.id;
  }
  [[nodiscard]] bool is_complete(const WrittenEvent& event, std::size_t number) const;

  const Database& database_;
  const Topic& topic_;
  const Tables& tables_;
  const bool exact_;
  const bool dead_blocks_;
  std::set<std::size_t> ever_dead_;
  std::set<std::size_t> discarded_;
  std::int64_t replay_{0};  ///< The newest; finished: 0.
  std::set<std::size_t> to_replay_;
  std::set<std::size_t> replayed_;
  std::set<unsigned> troubled_;  ///< Keys of which an event was set aside.
  std::int64_t followed_{0};     ///< The id of the newest row.
  std::size_t checked_{0};
  std::vector<bool> arrived_;
  Promises promises_;
  TypeSplit split_{tables_, promises_};
  std::array<LedgerChecks, kSubscriptions> ledgers_{
      LedgerChecks(kSubscription, database_, topic_, tables_, split_, promises_),
      LedgerChecks(kOfType, database_, topic_, tables_, split_, promises_)};
};

}  // namespace outbox::sim
