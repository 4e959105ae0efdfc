// The outbox's own tables, by the rules of the statements in store/postgres/queries.hpp that each
// function names. All that is kept for each subscription is asked for with its id (catalog.hpp).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "outbox/event.hpp"
#include "relay/progress_work.hpp"
#include "relay/trust_deadline.hpp"
#include "sim/groups/catalog.hpp"
#include "sim/groups/database.hpp"
#include "sim/groups/members.hpp"
#include "sim/parked_table.hpp"
#include "store/delivery.hpp"
#include "store/history.hpp"
#include "store/replay.hpp"
#include "store/settlement.hpp"
#include "store/tasks.hpp"

namespace outbox::sim {

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
using Batch = relay::ProgressWork;

/// The newest replay, and how far it is by lane.
struct ReplayRecord {
  store::Replay replay{};  ///< Id 0: there was none.
  std::array<std::int64_t, 64> positions{};
  std::vector<store::ReplaySkip> skips{};

  void settle(const store::ReplayProgress& progress);
};

class Tables {
 public:
  Tables(Database& database, bool tasks, bool dead_blocks);

  [[nodiscard]] const Catalog& catalog() const { return catalog_; }
  /// By a person, or by the configuration of a worker.
  void set_apart(bool paused);
  void set_active(bool active);
  /// Members and lanes; for changes of lanes: change().
  [[nodiscard]] Members& members() { return members_; }
  [[nodiscard]] const Members& members() const { return members_; }

  // ---- settlements

  /// `cursors`: the newest row of each lane, lanes at one cursor together. Lanes without one are in
  /// none.
  [[nodiscard]] std::vector<store::Strand> strands(std::int32_t subscription,
                                                   store::LaneMask lanes) const;
  /// `append`, as one transaction; the rows as they are now. `incarnation`: that was read from;
  /// another one refuses. Parked events and results are refused, with everything else, under a
  /// generation that does not own their lanes.
  [[nodiscard]] std::optional<std::uint64_t> append(const Batch& batch, int incarnation,
                                                    bool durably, relay::TimePoint now);
  /// `claim`.
  void claim(std::int32_t subscription, store::LaneMask lanes, std::int64_t generation);
  /// `begin_beside`: those of these lanes in which the type has no cursor yet begin where that of
  /// the queue stands. False: refused.
  [[nodiscard]] bool begin_beside(store::LaneMask lanes, std::int64_t generation);
  /// LaneOwners::change(), with the claims. None: this relay is not registered any more.
  [[nodiscard]] std::optional<store::Holding> change(const EventId& relay, store::LaneMask wanted,
                                                     relay::TimePoint now,
                                                     std::chrono::milliseconds lease);
  /// `mark`: written in a transaction that began before.
  void mark(std::uint64_t xid, std::int64_t l);
  /// `marks`: (w, l).
  [[nodiscard]] std::vector<std::pair<std::uint64_t, std::int64_t>> marks() const;
  [[nodiscard]] const std::vector<SettlementRow>& rows() const { return rows_; }
  /// The newest row of the lane by (generation, id); null: none.
  [[nodiscard]] const SettlementRow* newest(std::int32_t subscription, unsigned lane) const;
  /// Before the cursor of its lane.
  [[nodiscard]] bool is_settled(std::int32_t subscription, const WrittenEvent& event) const;
  /// Before this one.
  [[nodiscard]] bool is_before(const WrittenEvent& event, const SettlementRow& cursor) const;

  // ---- parked events

  [[nodiscard]] const ParkedTable& parked(std::int32_t subscription = kSubscription) const {
    return kept(subscription).parked;
  }
  /// `due_parked`: none of lanes that another generation owns.
  void due(std::int32_t subscription, const store::Holding& holding, relay::TimePoint now,
           store::DueEvents& into) const;
  /// The keys of a batch that have nothing to do any more, of one subscription.
  [[nodiscard]] std::vector<std::uint64_t> released(std::int32_t subscription,
                                                    const Batch& batch) const;
  /// A person's command, of which relays hear through parked_version.
  void decide(bool discard, std::int32_t subscription, std::int64_t seq, relay::TimePoint now);

  // ---- runs of tasks: store/postgres/task_runs.cpp. All of it is flushed.

  /// The count begins with a number that was not there before.
  void beat(const EventId& worker, relay::TimePoint now);
  void forget_worker(const EventId& worker) { workers_.erase(worker); }
  [[nodiscard]] std::vector<store::TaskRunRow> runs_of(const EventId& worker) const;
  [[nodiscard]] std::vector<store::OtherWorker> others(const EventId& me) const;
  /// Returns which of the ends were written.
  std::vector<bool> end_runs(const std::vector<store::TaskRunEnd>& ends,
                             const std::vector<store::TaskFinish>& finishes, relay::TimePoint now);
  /// Of the ends that are noted: how often an event told of each.
  [[nodiscard]] const std::map<EventId, int>& told() const { return told_; }

  // ---- tasks for any worker

  void announce_free_threads(const EventId& worker, std::size_t free);
  [[nodiscard]] store::OtherThreads other_threads(const EventId& me, relay::TimePoint now,
                                                  std::chrono::milliseconds alive) const;
  /// `claim_ready`: of these types.
  struct Claimed {
    std::int32_t subscription{0};
    ParkedTable::Row row;
  };
  [[nodiscard]] std::vector<Claimed> claim_ready(const EventId& worker,
                                                 std::span<const std::string> types,
                                                 std::size_t limit);
  /// How often a row has become `ready`: `tell_of_ready_tasks()`.
  [[nodiscard]] std::uint64_t told_of_ready() const { return told_of_ready_; }

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

  /// What was not flushed is gone.
  void crash();

 private:
  struct Worker {
    std::int64_t beat{0};
    relay::TimePoint beat_at{};
    std::size_t idle{0};  ///< Threads, as it has announced.
  };
  using Change = std::function<void(ParkedTable&)>;
  using ReplayChange = std::function<void(ReplayRecord&)>;
  /// Of one subscription.
  struct Kept {
    std::array<std::optional<std::size_t>, 64> newest{};  ///< In rows_, by lane.
    ParkedTable parked;
    std::vector<std::pair<std::uint64_t, Change>> changes{};  ///< With their place in the log.
  };

  [[nodiscard]] Kept& kept(std::int32_t subscription) {
    return kept_[static_cast<std::size_t>(subscription - 1)];
  }
  [[nodiscard]] const Kept& kept(std::int32_t subscription) const {
    return kept_[static_cast<std::size_t>(subscription - 1)];
  }
  void add(SettlementRow row);
  void note_newest(std::size_t row);
  void add_cursors(store::Settlement like, const std::vector<store::Strand>& strands);
  void change_parked(std::int32_t subscription, const Change& change);
  void change_record(const ReplayChange& change);
  [[nodiscard]] bool owns(const Batch& batch) const;
  [[nodiscard]] const WrittenEvent* find(std::int64_t seq, const EventId& id) const;
  void finish(const store::TaskFinish& finish);

  Database& database_;
  const bool dead_blocks_;
  Catalog catalog_;
  Members members_;
  std::array<Kept, kSubscriptions> kept_;
  std::map<EventId, Worker> workers_;
  std::uint64_t told_of_ready_{0};
  std::set<EventId> task_ends_;
  std::map<EventId, int> told_;
  ReplayRecord replay_;
  std::vector<std::pair<std::uint64_t, ReplayChange>> replay_changes_;
  std::vector<SettlementRow> rows_;
  std::int64_t next_id_{1};
};

}  // namespace outbox::sim
