// The threads of a worker, and the sink of handlers before them: what src/task/queue_sink.cpp, desk.cpp and runner.cpp do, one step at a
// time. Ends become outcomes, and outcomes verdicts, by the worker's own code.
#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/groups/shared.hpp"
#include "sim/tasks/run.hpp"
#include "sink/run_owner.hpp"
#include "task/runner.hpp"
#include "task/shared_queue.hpp"
#include "task/type.hpp"
#include "task/type_limit.hpp"

namespace outbox::sim {

/// A send that has a row for so long.
inline constexpr std::chrono::milliseconds kRowAfter{10};

class SimRunner final : public task::SharedQueue {
 public:
  /// `clock`: the local one of the process. `most`: so many tasks of the type that has a limit may run at once; 0: it has none.
  SimRunner(GroupShared& world, const EventId& worker, const relay::TimePoint::duration& clock,
            std::size_t most);

  // ---- the sinks; a source is one of their subscriptions

  /// Not while something runs that was given up.
  [[nodiscard]] Status open(task::Source source) const;
  /// Takes it: a thread can begin it soon, or another worker has one. False: it stays where it is.
  [[nodiscard]] bool take(task::Source source, Token token, const EventView& event,
                          std::size_t attempt, std::int64_t generation);
  /// After tasks were offered: whether all were taken.
  void offered(task::Source source, bool all_taken);
  [[nodiscard]] std::vector<Outcome> receive(task::Source source);
  void purge(task::Source source);
  /// Of the queue's: of these types it has rows that must not run.
  void follow(const std::vector<std::string>& paused_types) { paused_types_ = paused_types; }
  [[nodiscard]] const EventId& worker() const { return worker_; }
  [[nodiscard]] bool keep(task::Source source, Token token, const sink::KeptRun& run);
  [[nodiscard]] bool rows_changed(task::Source source) {
    return std::exchange(desks_[source].rows_changed, false);
  }

  // ---- tasks for any worker

  [[nodiscard]] const std::string& queue() const override { return queue_; }
  [[nodiscard]] std::vector<std::string> subscriptions() const override { return {}; }
  [[nodiscard]] std::vector<std::string> types_to_claim() const override;
  [[nodiscard]] std::size_t free_threads() const override;
  [[nodiscard]] bool is_starved(relay::TimePoint now) const override;
  void set_elsewhere(std::size_t threads) override { elsewhere_ = threads; }
  void add_claimed(const store::ClaimedTasks& claimed) override;

  // ---- the threads

  void step();
  /// Everything is gone.
  void crash() { world_.runs.process_is_gone(worker_); }
  /// A handler has killed the process.
  [[nodiscard]] bool killed() const { return killed_; }
  [[nodiscard]] bool idle() const {
    return waiting_.empty() && claimed_.empty() && running_.empty() && ends_.empty();
  }

  // ---- for the keeper

  void watch();
  void announce_changed_rows() {
    for (Desk& desk : desks_) desk.rows_changed = true;
  }
  [[nodiscard]] std::vector<sink::KeptRun> kept() const;
  [[nodiscard]] std::vector<EventId> unkept() const;
  [[nodiscard]] std::vector<task::KeptEnd> kept_ends() { return std::exchange(ends_, {}); }
  [[nodiscard]] std::vector<task::FinishedRun> finished() { return std::exchange(finished_, {}); }
  void noted(const task::FinishedRun& run);
  void lose(const sink::KeptRun& run);
  void cancel(const sink::KeptRun& run);
  void give_up_kept();
  [[nodiscard]] static const task::RetrySchedule& retries();

 private:
  using Run = std::shared_ptr<SimRun>;

  [[nodiscard]] relay::TimePoint now() const { return world_.now + clock_; }
  [[nodiscard]] std::size_t busy() const;
  [[nodiscard]] bool has_room() const;
  [[nodiscard]] bool has_limit(const EventView& event) const;
  [[nodiscard]] bool is_paused(const EventView& event) const;
  [[nodiscard]] bool give_away(task::Source source, Token token);
  void postpone(task::Source source, Token token, Duration pause, const char* why);
  [[nodiscard]] Run run_of(const EventView& event, std::size_t attempt) const;
  void begin_next();
  void decide(SimRun& run) const;
  void tell(SimRun& run) const;
  void end(const Run& run);
  void report(const SimRun& run, const TaskEnd& end);

  GroupShared& world_;
  const EventId worker_;
  const relay::TimePoint::duration& clock_;
  /// What one of the sinks and the threads hand each other.
  struct Desk {
    std::vector<Outcome> ready;
    std::map<Token, std::size_t> awaited;  ///< Until their ends are noted; with their numbers.
    bool rows_changed{false};
    bool took{false};  ///< Of the tasks that are being offered.
    std::optional<relay::TimePoint> refuses_since;
    relay::TimePoint wants_until;
  };

  const std::string queue_{Catalog::kQueue};
  const std::shared_ptr<task::TypeLimit> limit_;
  std::array<Desk, kSubscriptions> desks_;
  std::vector<std::string> paused_types_;
  std::deque<Run> waiting_;
  std::deque<Run> claimed_;
  std::vector<Run> running_;
  std::vector<task::KeptEnd> ends_;
  std::vector<task::FinishedRun> finished_;
  bool killed_{false};
  std::size_t elsewhere_{0};  ///< Threads of other workers for which no task was given up yet.
};

}  // namespace outbox::sim
