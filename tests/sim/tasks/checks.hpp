// Checks the invariants of tasks (docs/design/tasks.md), each one when something happens that could
// break it. The numbers below are theirs.
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
  /// `exact` says that nothing happens that excuses a task which was done and runs again.
  RunChecks(GroupChecks& checks, const Database& database, const Tables& tables, bool exact)
      : checks_(checks), database_(database), tables_(tables), exact_(exact) {}

  // ---- runs

  /// Checks 2: another task of its key and subscription may run only if one of the two runs does
  /// not count any more.
  void begins(const std::shared_ptr<SimRun>& run);
  void over(const std::shared_ptr<SimRun>& run);
  /// A worker has claimed the row of the task.
  void claimed(std::size_t number);
  void process_is_gone(const EventId& worker);
  /// How often the task has begun.
  [[nodiscard]] int runs(std::size_t number) const;

  // ---- what is written

  /// The task was done and that was reported, or (forgotten()) nobody knows that any more.
  void done(std::size_t number);
  void forgotten(std::size_t number) { done_.erase(number); }
  /// For 6: the task failed, which may count as an attempt. `final` says that its handler declared
  /// it dead.
  void failed(std::size_t number, bool final);
  /// Checks 4 and 6 for what a relay has written.
  void wrote(const Batch& batch);
  /// For 1 and 6: worker `by` is about to write these ends. written() checks them.
  void writes(const std::vector<store::TaskRunEnd>& ends, const EventId& by);
  void written(const std::vector<bool>& ends);
  /// A person has discarded the task while no run of it had a row.
  void decided(std::size_t number);
  /// Checks that such a task was discarded at once.
  void is_discarded(std::int32_t subscription, std::int64_t seq);

  /// After a worker has compared its rows: the run that it tells to stop, or goes on with.
  void loses(const sink::KeptRun& run, const EventId& worker);
  void goes_on(const sink::KeptRun& run, const EventId& worker,
               const std::vector<store::TaskRunRow>& compared);

  // ---- who is alive

  void beats(const EventId& worker, relay::TimePoint now) { beats_[worker] = now; }
  /// Checks that only a worker that was silent is taken for dead.
  void taken_for_dead(const EventId& worker, relay::TimePoint now,
                      relay::TimePoint::duration silence);

  /// Checks at the end, when nothing runs, that the end of each task that is done and noted was
  /// told once.
  void all_ended();

 private:
  struct Announced {
    store::TaskRunEnd end;
    bool valid{false};        ///< The row said that it ran there, under that token.
    bool recovered{false};    ///< Another worker writes the end.
    std::size_t attempts{0};  ///< The attempts before this run.
  };
  [[nodiscard]] bool counts(const SimRun& run) const;
  /// Whether the row says that the run is this worker's.
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
  std::set<std::pair<EventId, std::int64_t>> ended_;  ///< The tasks and tokens.
  std::map<EventId, relay::TimePoint> beats_;
};

/// How many runs the schedule of each task allows.
inline constexpr std::size_t kMostRuns = 3;
/// Whether the end of the task is noted and an event tells of it. The number of the task decides.
[[nodiscard]] bool is_noted(std::size_t number);

}  // namespace outbox::sim
