// The invariants of tasks (docs/design/tasks.md), each compared when something happens that could
// break it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "sim/groups/checks.hpp"
#include "sim/groups/tables.hpp"
#include "sim/tasks/run.hpp"

namespace outbox::sim {

class RunChecks {
 public:
  /// `exact`: nothing happens that excuses a task which was done and runs again.
  RunChecks(GroupChecks& checks, const Database& database, const Tables& tables, bool exact)
      : checks_(checks), database_(database), tables_(tables), exact_(exact) {}

  // ---- runs

  /// 2: another one of its key and subscription may run only if one of the two does not count any
  /// more.
  void begins(const std::shared_ptr<SimRun>& run);
  void over(const std::shared_ptr<SimRun>& run);
  /// A worker has claimed its row.
  void claimed(std::size_t number);
  void process_is_gone(const EventId& worker);
  /// How often the task has begun.
  [[nodiscard]] int runs(std::size_t number) const;

  // ---- what is written

  /// It was done, and that was reported; or nobody knows that any more.
  void done(std::size_t number);
  void forgotten(std::size_t number) { done_.erase(number); }
  /// 6: a failure that may count as an attempt. `final`: its handler says that it is dead.
  void failed(std::size_t number, bool final);
  /// 4, 6: what a relay has written.
  void wrote(const Batch& batch);
  /// Before ends are written by `by`: 1, 6.
  void writes(const std::vector<store::TaskRunEnd>& ends, const EventId& by);
  void written(const std::vector<bool>& ends);
  /// A person has discarded it while no run of it had a row.
  void decided(std::size_t number);
  /// After that: at once.
  void is_discarded(std::int32_t subscription, std::int64_t seq);

  /// What a worker tells to stop, and goes on with, after it has compared its rows.
  void loses(const sink::KeptRun& run, const EventId& worker);
  void goes_on(const sink::KeptRun& run, const EventId& worker,
               const std::vector<store::TaskRunRow>& compared);

  // ---- who is alive

  void beats(const EventId& worker, relay::TimePoint now) { beats_[worker] = now; }
  /// Only who was silent.
  void taken_for_dead(const EventId& worker, relay::TimePoint now,
                      relay::TimePoint::duration silence);

  /// At the end, when nothing runs: the end of each task that is done, and is noted, was told once.
  void all_ended();

 private:
  struct Announced {
    store::TaskRunEnd end;
    bool valid{false};        ///< The row says that it runs there, under that token.
    bool recovered{false};    ///< By another worker.
    std::size_t attempts{0};  ///< Before it.
  };
  [[nodiscard]] bool counts(const SimRun& run) const;
  /// The row says that it runs there.
  [[nodiscard]] bool is_of(const sink::KeptRun& run, const EventId& worker) const;
  void check_attempts(const EventId& id, std::size_t attempts, bool dead);

  GroupChecks& checks_;
  const Database& database_;
  const Tables& tables_;
  const bool exact_;
  std::vector<std::shared_ptr<SimRun>> running_;
  std::set<std::size_t> done_;
  std::map<std::size_t, int> begun_;
  std::map<std::size_t, std::size_t> failures_;
  std::set<std::size_t> hopeless_;
  std::set<std::size_t> decided_;
  std::vector<Announced> announced_;
  std::set<std::pair<EventId, std::int64_t>> ended_;  ///< Tasks and tokens.
  std::map<EventId, relay::TimePoint> beats_;
};

/// Of each task: the runs that its schedule allows.
inline constexpr std::size_t kMostRuns = 3;
/// By the dice: the end of the task is noted, and an event tells of it.
[[nodiscard]] bool is_noted(std::size_t number);

}  // namespace outbox::sim
