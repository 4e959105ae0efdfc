// The thread of a run tracker, which executes one statement at a time. What it asks, and when, is
// the worker's own code (src/task/run_tracker_core.cpp).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "sim/groups/shared.hpp"
#include "sim/tasks/runner.hpp"
#include "sim/tasks/task_runs.hpp"
#include "task/run_tracker_core.hpp"

namespace outbox::sim {

inline constexpr std::chrono::milliseconds kHeartbeat{30};

class SimRunTracker {
 public:
  SimRunTracker(GroupShared& world, const EventId& worker, const relay::TimePoint::duration& clock,
                const std::shared_ptr<SimRunner>& runner);

  void step();
  void lose_connection();
  void claim_no_more() {
    core_.claim_no_more();
    rows_.stops = true;
  }
  /// The relay has ended. What runs after `grace` is given back.
  void stop(std::chrono::milliseconds grace) {
    if (!stop_by_) core_.stop(*(stop_by_ = now() + grace));
  }
  /// Only after stop().
  [[nodiscard]] bool is_over() const { return over_; }
  [[nodiscard]] bool idle() const { return !rung_ && core_.unwritten() == 0; }

 private:
  [[nodiscard]] relay::TimePoint now() const { return world_.now + clock_; }
  void begin_round();
  void end_round();
  void follow(const task::RunTrackerNews& news);
  void check_wait();
  void check_comparison(const std::vector<store::TaskRunRow>& own) const;

  GroupShared& world_;
  const EventId worker_;
  const relay::TimePoint::duration& clock_;
  const std::shared_ptr<SimRunner> runner_;
  SimTaskRuns rows_;
  task::RunTrackerCore core_;
  std::uint64_t heard_of_ready_{0};
  bool rung_{false};
  bool connected_{false};
  int incarnation_{0};
  bool in_round_{false};
  std::vector<sink::KeptRun> kept_{};  ///< The runs kept when the last statement had answered.
  relay::TimePoint beat_at_{};         ///< When the last heartbeat was sent.
  std::optional<relay::TimePoint> stop_by_{};
  bool over_{false};
};

}  // namespace outbox::sim
