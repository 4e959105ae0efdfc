// Checks the promises in a world of groups, each one when something happens that could break it.
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

  /// Follows the rows that were appended since the last call.
  void follow(const std::vector<SettlementRow>& rows);
  /// Checks P5: an owner sends nothing that its cursor is past, nothing twice that was acked, and
  /// nothing that belongs to another subscription.
  void sent(std::int32_t subscription, const WrittenEvent& event, std::size_t number,
            std::int64_t generation, const std::set<std::size_t>& acked);
  /// Checks the same for a parked event that is sent again.
  void sent_again(std::int32_t subscription, const WrittenEvent& event, std::size_t number,
                  std::int64_t generation, const std::set<std::size_t>& acked);
  /// A relay knows that it has delivered the event for this subscription.
  void remembers(std::int32_t subscription, std::size_t number) {
    split_.remembers(subscription, number);
  }
  /// Checks P6 for an event that a relay parks, and for an attempt that it counts. `bad` says that
  /// the event fails by its own fault.
  void parks(const store::ParkedEvent& event, std::size_t number, bool bad);
  /// The event is parked by its own fault, or because it takes long. The rest of its key waits.
  void set_aside(std::size_t number) { troubled_.insert(database_.event(number).key); }
  /// The event is not sent again unless a person says so, so it no longer counts for the order of
  /// its key.
  void died(std::size_t number) { ever_dead_.insert(number); }
  void discarded(std::size_t number) { discarded_.insert(number); }
  /// A replay begins. What live delivery has passed in its range and is not parked must be sent
  /// again.
  void replay_begins(const ReplayRecord& record);
  /// Checks that a replay sends only what live delivery has passed, and nothing that is parked.
  void replays(const WrittenEvent& event, std::size_t number, std::int64_t generation);
  /// Call it after progress of the replay was written.
  void follow(const ReplayRecord& record);
  /// What a crash took back is delivered again by live delivery, and not by the replay.
  void forget_unsettled();
  /// Checks P3 and P4 for what arrived since the last call, after each step.
  void arrivals();
  /// Checks P3 for events that were visible and are gone.
  void lost(const std::vector<std::size_t>& numbers);
  /// Begins anew with the rows that a crash has left.
  void begin_again(const std::vector<SettlementRow>& rows);
  /// Whether everything committed has arrived and is settled.
  [[nodiscard]] bool complete() const;
  /// Does the walk of `outbox verify` over the same rows and events.
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
  /// Whether the event may arrive after later ones of its key, or never.
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
  std::int64_t replay_{0};  ///< The newest replay; 0 if it is finished.
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
