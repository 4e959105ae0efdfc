// What src/task/run_keeper.cpp does, a statement at a time. What it concludes is the worker's own code (src/task/run_watch.cpp).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "sim/groups/shared.hpp"
#include "sim/tasks/runner.hpp"
#include "sim/tasks/shared_rows.hpp"
#include "task/exchange.hpp"
#include "task/run_watch.hpp"

namespace outbox::sim {

inline constexpr std::chrono::milliseconds kHeartbeat{30};

class SimRunKeeper {
 public:
  SimRunKeeper(GroupShared& world, const EventId& worker, const relay::TimePoint::duration& clock,
               const std::shared_ptr<SimRunner>& runner);

  void step();
  void lose_connection() { connected_ = false; }
  void claim_no_more() { claims_ = false; }
  /// The relay has ended. What runs after `grace` is given back.
  void stop(std::chrono::milliseconds grace) {
    if (!stop_by_) stop_by_ = now() + grace;
  }
  /// After stop().
  [[nodiscard]] bool is_over() const { return over_; }
  [[nodiscard]] bool idle() const { return ends_.empty() && finished_.empty() && dead_.empty(); }

 private:
  [[nodiscard]] relay::TimePoint now() const { return world_.now + clock_; }
  void take_ends();
  void connect();
  void watch_stop();
  void compare_after_stop();
  void work();
  void begin_comparison();
  void compare();
  void write();
  void look();
  void share();
  void recover();
  [[nodiscard]] bool end(const std::vector<store::TaskRunEnd>& ends,
                         const std::vector<store::TaskFinish>& finishes);

  GroupShared& world_;
  const EventId worker_;
  const relay::TimePoint::duration& clock_;
  SimRunner& runner_;
  task::OwnRows own_rows_;
  task::Heartbeats others_;
  task::Exchange exchange_;
  std::uint64_t heard_of_ready_{0};
  bool claims_{true};
  bool connected_{false};
  int incarnation_{0};
  std::vector<store::TaskRunEnd> ends_;
  std::vector<task::FinishedRun> finished_;
  std::optional<std::vector<sink::KeptRun>> kept_;  ///< Being compared.
  std::vector<EventId> unkept_;                     ///< The same.
  std::vector<EventId> dead_;                       ///< Being recovered.
  std::vector<store::TaskRunRow> rows_of_dead_;
  std::optional<relay::TimePoint> beat_at_;
  std::optional<relay::TimePoint> look_at_;
  std::optional<relay::TimePoint> stop_by_;
  bool given_up_{false};
  bool compared_{false};  ///< After the stop.
  bool over_{false};
};

}  // namespace outbox::sim
