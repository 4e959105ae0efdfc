// The outbox's own tables, by the rules of the statements in store/postgres/queries.hpp that each function names.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "outbox/event.hpp"
#include "relay/trust_deadline.hpp"
#include "sim/groups/database.hpp"
#include "store/lane_owners.hpp"
#include "store/ledger_reader.hpp"
#include "store/settlement.hpp"

namespace outbox::sim {

inline constexpr std::int32_t kSubscription = 1;

/// Snapshots as the settlements contain them.
[[nodiscard]] std::string text_of(const store::Visible& snapshot);
[[nodiscard]] store::VisiblePtr snapshot_of(const std::string& text);

struct SettlementRow {
  std::int64_t id{0};
  store::Settlement row{};
  store::VisiblePtr s1{}, s2{};
  std::uint64_t w{0};
  bool has_mark{false};         ///< Its l may become a floor.
  std::uint64_t written_at{0};  ///< In the database's log.
};

class Tables {
 public:
  explicit Tables(Database& database);

  // ---- settlements

  /// `cursors`: the newest row of each lane, lanes at one cursor together.
  [[nodiscard]] std::vector<store::Strand> strands(store::LaneMask lanes) const;
  /// `append`, as one transaction; the rows as they are now. `incarnation`: that was read from; another one refuses.
  [[nodiscard]] std::optional<std::uint64_t> append(const std::vector<store::Settlement>& rows,
                                                    int incarnation, bool durably);
  /// `claim`.
  void claim(store::LaneMask lanes, std::int64_t generation);
  /// `mark`: written in a transaction that began before.
  void mark(std::uint64_t xid, std::int64_t l);
  /// `marks`: (w, l).
  [[nodiscard]] std::vector<std::pair<std::uint64_t, std::int64_t>> marks() const;
  [[nodiscard]] const std::vector<SettlementRow>& rows() const { return rows_; }
  /// The newest row of the lane by (generation, id).
  [[nodiscard]] const SettlementRow& newest(unsigned lane) const;
  /// Before the cursor of its lane.
  [[nodiscard]] bool is_settled(const WrittenEvent& event) const;

  // ---- members and lanes; the clock is the server's

  [[nodiscard]] store::Fleet look(const EventId& asking, relay::TimePoint now,
                                  std::chrono::milliseconds lease) const;
  /// Registers, or renews the lease. False: it had been removed.
  bool keep(const EventId& relay, relay::TimePoint now);
  void leave(const EventId& relay);
  /// A process of this machine that is gone is seen at once.
  void process_ended(const EventId& relay);
  /// LaneOwners::change(). None: this relay is not registered any more.
  [[nodiscard]] std::optional<store::Holding> change(const EventId& relay, store::LaneMask wanted,
                                                     relay::TimePoint now,
                                                     std::chrono::milliseconds lease);
  [[nodiscard]] std::int64_t generation_of(unsigned lane) const { return lanes_[lane].generation; }

  /// What was not flushed is gone.
  void crash();

 private:
  struct Member {
    EventId id{};
    relay::TimePoint heartbeat{};
    bool gone{false};  ///< The process.
  };
  struct Lane {
    std::optional<EventId> owner;
    std::int64_t generation{0};
  };

  [[nodiscard]] static bool is_alive(const Member& member, relay::TimePoint now,
                                     std::chrono::milliseconds lease) {
    return !member.gone && now - member.heartbeat <= lease;
  }
  void add(SettlementRow row);
  void find_newest();
  void give(std::optional<EventId> owner, store::LaneMask lanes, std::int64_t generation);

  Database& database_;
  std::vector<SettlementRow> rows_;
  std::int64_t next_id_{1};
  std::array<std::size_t, 64> newest_{};  ///< In rows_, by lane.
  std::vector<Member> members_;
  std::array<Lane, 64> lanes_;
  std::int64_t generation_{0};
};

}  // namespace outbox::sim
