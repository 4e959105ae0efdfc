// A relay: the threads of src/relay (keeper, lease, pump, loop, settler) and the sink's client, one of them a step at a time, in any order.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>

#include "relay/trust_deadline.hpp"
#include "sim/groups/loop.hpp"
#include "sim/groups/reader.hpp"
#include "sim/groups/shared.hpp"
#include "sim/tasks/run_keeper.hpp"

namespace outbox::sim {

inline constexpr std::chrono::milliseconds kLease{120};

/// Settlements that were sent when their connection broke: the server may still write them.
struct InTransit {
  Batch batch;
  int incarnation{0};
};

class SimProcess {
 public:
  SimProcess(GroupShared& world, std::uint64_t number, std::vector<InTransit>& in_transit);

  void step();
  /// Everything in memory is gone.
  void crash();
  void lose_connection();
  void lose_runs_connection() {
    if (run_keeper_) run_keeper_->lose_connection();
  }
  /// By one of its handlers.
  [[nodiscard]] bool is_killed() const { return retained_.runner && retained_.runner->killed(); }
  void stop_for(int steps, bool clock_too);
  /// Asked to stop: hands over.
  void leave() { leaving_for_good_ = true; }
  [[nodiscard]] bool has_left() const {
    return has_left_ && (!run_keeper_ || run_keeper_->is_over());
  }
  [[nodiscard]] bool at_rest() const;
  /// Rows for which it holds keys back, and that are not there; less than 0: it lets keys go that have rows.
  [[nodiscard]] int rows_too_many() const {
    if (!tenure_ || !tenure_->loop || tenure_->loop->replays()) return 0;
    const auto rows = world_.tables.blocking_rows(tenure_->loop->holding().lanes);
    return static_cast<int>(tenure_->loop->blocked_rows()) - static_cast<int>(rows.size());
  }
  void heal() { retained_.sink.fail_percent = retained_.sink.sick_percent = 0; }
  void go_down(bool down) { retained_.sink.outages.go_down(down); }
  [[nodiscard]] const EventId& id() const { return id_; }
  [[nodiscard]] std::uint64_t lies() const { return retained_.sink.lies; }

 private:
  /// From a connection to its loss.
  struct Tenure {
    explicit Tenure(GroupShared& world) : reader(world.random, world.database, world.tables) {}
    SimReader reader;
    store::Holding holding;
    std::unique_ptr<SimLoop> loop;
    std::deque<SimLoop::Job> jobs;
    bool failed{false};
    bool stopping{false};  ///< The loop, in order.
    relay::TimePoint stop_by{};
  };

  [[nodiscard]] relay::TimePoint now() const { return world_.now + offset_; }
  void step_keeper();
  void step_lease();
  void step_reader();
  void step_loop();
  void step_settler();
  void check_faults(const Batch& batch);
  void forget_retries(const store::Fleet& fleet);
  void change_lanes(store::LaneMask lanes);
  void begin_tenure();
  void end_tenure();
  void end_relay();
  void look();
  void begin_loop();
  /// False: it is not over yet.
  bool end_loop();
  [[nodiscard]] store::LaneMask wanted(const store::Fleet& fleet) const;
  [[nodiscard]] bool lost_lanes(const store::Fleet& fleet) const;

  GroupShared& world_;
  const EventId id_;
  std::vector<InTransit>& in_transit_;
  relay::TimePoint::duration offset_{};  ///< Of the local clock.
  int stopped_{0};
  relay::TrustDeadline trust_;
  relay::TimePoint renew_at_{};
  RetainedSink retained_;
  store::Holding held_before_;                ///< Of the tenure before.
  std::unique_ptr<SimRunKeeper> run_keeper_;  ///< Of a worker.
  std::unique_ptr<Tenure> tenure_;
  bool leaving_for_good_{false};
  bool has_left_{false};
};

}  // namespace outbox::sim
