// The outbox's own tables, by the rules of the statements in store/postgres/queries.hpp that each function names.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "outbox/event.hpp"
#include "relay/trust_deadline.hpp"
#include "sim/groups/database.hpp"
#include "sim/parked_table.hpp"
#include "store/lane_owners.hpp"
#include "store/ledger_reader.hpp"
#include "store/progress.hpp"
#include "store/replay.hpp"
#include "store/settlement.hpp"
#include "store/task_runs.hpp"

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

/// What is written in one transaction: store::ProgressBatch.
struct Batch {
  std::vector<store::Settlement> rows;
  std::vector<store::ParkedEvent> parked{};
  std::vector<store::RetryResult> results{};
  std::vector<store::ReplayProgress> replays{};

  void add(const Batch& other);
};

/// The newest replay, and how far it is by lane.
struct ReplayRecord {
  store::Replay replay{};  ///< Id 0: there was none.
  std::array<std::int64_t, 64> positions{};
  std::vector<store::ReplaySkip> skips{};

  void settle(const store::ReplayProgress& progress);
};

class Tables {
 public:
  Tables(Database& database, bool dead_blocks);

  // ---- settlements

  /// `cursors`: the newest row of each lane, lanes at one cursor together.
  [[nodiscard]] std::vector<store::Strand> strands(store::LaneMask lanes) const;
  /// `append`, as one transaction; the rows as they are now. `incarnation`: that was read from; another one refuses.
  /// Parked events and results are refused, with everything else, under a generation that does not own their lanes.
  [[nodiscard]] std::optional<std::uint64_t> append(const Batch& batch, int incarnation,
                                                    bool durably, relay::TimePoint now);
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

  // ---- parked events

  [[nodiscard]] const ParkedTable& parked() const { return parked_; }
  /// `due_parked`: none of lanes that another generation owns. `runs`: and `running_parked`.
  [[nodiscard]] store::DueEvents due(const store::Holding& holding, relay::TimePoint now,
                                     const std::vector<std::int64_t>* runs = nullptr) const;
  /// The rows of these lanes that block their keys: `blocked_keys`.
  [[nodiscard]] std::vector<ParkedTable::Row> blocking_rows(store::LaneMask lanes) const;
  /// A person's command, of which relays hear through parked_version.
  void decide(bool discard, std::int64_t seq, relay::TimePoint now);
  [[nodiscard]] int parked_version() const { return parked_version_; }

  // ---- runs of tasks: store/postgres/task_runs.cpp. All of it is flushed.

  /// The count begins with a number that was not there before.
  void beat(const EventId& worker) {
    const std::uint64_t xid = database_.begin();
    database_.commit(xid, true);
    const auto [beat, is_new] = beats_.try_emplace(worker, static_cast<std::int64_t>(xid) * 1000);
    if (!is_new) ++beat->second;
  }
  void forget_worker(const EventId& worker) { beats_.erase(worker); }
  [[nodiscard]] std::vector<store::TaskRunRow> runs_of(const EventId& worker) const;
  [[nodiscard]] std::vector<store::OtherWorker> others(const EventId& me) const;
  /// Returns which of the ends were written.
  std::vector<bool> end_runs(const std::vector<store::TaskRunEnd>& ends,
                             const std::vector<store::TaskFinish>& finishes, relay::TimePoint now);
  /// Of the ends that are noted: how often an event told of each.
  [[nodiscard]] const std::map<EventId, int>& told() const { return told_; }

  // ---- replays

  [[nodiscard]] const ReplayRecord& replay() const { return replay_; }
  /// `subscription.replay`
  [[nodiscard]] std::int64_t running_replay() const {
    return replay_.replay.state == store::ReplayState::running ? replay_.replay.id : 0;
  }
  void start_replay(std::int64_t first, std::int64_t last);
  /// Stopped by a person, or resumed.
  void change_replay(store::ReplayState state);
  /// What live delivery had passed.
  [[nodiscard]] store::ReplayPage page(const store::ReplayRequest& request) const;

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
  using Change = std::function<void(ParkedTable&)>;
  using ReplayChange = std::function<void(ReplayRecord&)>;

  void add(SettlementRow row);
  void change_parked(const Change& change);
  void change_record(const ReplayChange& change);
  [[nodiscard]] bool owns(const Batch& batch) const;
  [[nodiscard]] const WrittenEvent* find(std::int64_t seq, const EventId& id) const;
  void finish(const store::TaskFinish& finish);
  void give(std::optional<EventId> owner, store::LaneMask lanes, std::int64_t generation);

  Database& database_;
  const bool dead_blocks_;
  ParkedTable parked_{dead_blocks_};
  std::vector<std::pair<std::uint64_t, Change>> parked_changes_;  ///< With their place in the log.
  int parked_version_{0};
  std::map<EventId, std::int64_t> beats_;  ///< Of workers.
  std::set<EventId> task_ends_;
  std::map<EventId, int> told_;
  ReplayRecord replay_;
  std::vector<std::pair<std::uint64_t, ReplayChange>> replay_changes_;
  std::vector<SettlementRow> rows_;
  std::int64_t next_id_{1};
  std::array<std::size_t, 64> newest_{};  ///< In rows_, by lane.
  std::vector<Member> members_;
  std::array<Lane, 64> lanes_;
  std::int64_t generation_{0};
};

}  // namespace outbox::sim
