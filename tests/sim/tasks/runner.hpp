// The threads of a worker, and the sink of handlers before them: what src/task/queue_sink.cpp, desk.cpp and runner.cpp do, one step at a
// time. Ends become outcomes, and outcomes verdicts, by the worker's own code.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "sim/groups/shared.hpp"
#include "sim/tasks/run.hpp"
#include "sink/run_owner.hpp"
#include "task/runner.hpp"
#include "task/type.hpp"

namespace outbox::sim {

/// A send that has a row for so long.
inline constexpr std::chrono::milliseconds kRowAfter{10};

class SimRunner final : public sink::RunOwner {
 public:
  /// `clock`: the local one of the process.
  SimRunner(GroupShared& world, const EventId& worker, const relay::TimePoint::duration& clock)
      : world_(world), worker_(worker), clock_(clock) {}

  // ---- the sink

  /// Not while something runs that was given up.
  [[nodiscard]] Status open() const;
  /// So many more can begin soon.
  [[nodiscard]] std::size_t room() const;
  void send(Token token, const EventView& event, std::size_t attempt, std::int64_t generation);
  [[nodiscard]] std::vector<Outcome> receive();
  void purge();
  void follow(const sink::RunRules& /*rules*/) override {}
  [[nodiscard]] bool is_slow(std::string_view /*event_type*/) const override { return false; }
  [[nodiscard]] std::chrono::milliseconds row_after() const override { return kRowAfter; }
  [[nodiscard]] EventId worker() const override { return worker_; }
  [[nodiscard]] bool keep(Token token, const sink::KeptRun& run) override;
  [[nodiscard]] bool rows_changed() override { return std::exchange(rows_changed_, false); }

  // ---- the threads

  void step();
  /// Everything is gone.
  void crash() { world_.runs.process_is_gone(worker_); }
  /// A handler has killed the process.
  [[nodiscard]] bool killed() const { return killed_; }
  [[nodiscard]] bool idle() const { return waiting_.empty() && running_.empty() && ends_.empty(); }

  // ---- for the keeper

  void watch();
  void announce_changed_rows() { rows_changed_ = true; }
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
  void begin_next();
  void decide(SimRun& run) const;
  void tell(SimRun& run) const;
  void end(const Run& run);
  void report(const SimRun& run, const TaskEnd& end);

  GroupShared& world_;
  const EventId worker_;
  const relay::TimePoint::duration& clock_;
  std::deque<Run> waiting_;
  std::vector<Run> running_;
  std::vector<Outcome> ready_;
  std::set<Token> awaited_;  ///< Until their ends are noted.
  std::vector<task::KeptEnd> ends_;
  std::vector<task::FinishedRun> finished_;
  bool rows_changed_{false};
  bool killed_{false};
};

}  // namespace outbox::sim
