// A relay. The threads of src/relay (tenure loop, lease, pump, loop, settler) and the sink's client
// take their steps one at a time, in any order. What the tenure loop, the lease and the loops
// decide is decided by the relay's own cores (src/relay/*_core.cpp).
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "relay/lease_core.hpp"
#include "relay/tenure_core.hpp"
#include "sim/groups/loop.hpp"
#include "sim/groups/reader.hpp"
#include "sim/groups/shared.hpp"
#include "sim/tasks/run_tracker.hpp"

namespace outbox::sim {

/// Settlements that were sent when their connection broke. The server may still write them.
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
    if (run_tracker_) run_tracker_->lose_connection();
  }
  /// Whether one of its handlers has killed the process.
  [[nodiscard]] bool is_killed() const { return sink().runner && sink().runner->killed(); }
  void stop_for(int steps, bool clock_too);
  /// Asks the relay to stop and to hand over its lanes.
  void leave() {
    leaving_for_good_ = true;
    if (run_tracker_) run_tracker_->claim_no_more();
  }
  [[nodiscard]] bool has_left() const {
    return has_left_ && (!run_tracker_ || run_tracker_->is_over());
  }
  [[nodiscard]] bool at_rest() const;
  /// How many keys it holds back that have no row in the store; less than 0 if it does not hold
  /// back a key that has one.
  [[nodiscard]] int keys_too_many() const;
  void heal() { sink().sink.fail_percent = sink().sink.sick_percent = 0; }
  void go_down(bool down) { sink().sink.outages.go_down(down); }
  [[nodiscard]] const EventId& id() const { return identity_.id; }
  [[nodiscard]] std::uint64_t lies() const { return sink().sink.lies; }

 private:
  /// A subscription in a tenure.
  struct Served {
    Served(GroupShared& world, std::int32_t id_)
        : id(id_), reader(world.random, world.database, world.tables) {}
    const std::int32_t id;
    SimReader reader;
    std::unique_ptr<SimLoop> loop;
    std::deque<SimLoop::Job> jobs;
    std::optional<store::DueEvents> due{};  ///< Set once the first of two statements has answered.
    std::int32_t parked_version{0};         ///< The version that the loop knows.
    bool stopping{false};                   ///< Whether the loop is ending in order.
  };
  /// A heartbeat, or its answer, that is on its way.
  struct Heartbeat {
    relay::TimePoint sent{};
    relay::TimePoint arrives{};
    std::optional<Result<bool>> answer{};
  };
  /// The time from a connection to its loss.
  struct Tenure {
    relay::LeaseCore lease;
    std::optional<Heartbeat> heartbeat{};
    std::vector<std::unique_ptr<Served>> served{};
    std::vector<store::SubscriptionRow> rows{};  ///< The rows as they were read last.
    bool retired{false};  ///< Whether loops were ended because of these rows.
    /// The lanes in which the type has its cursor.
    std::optional<store::Holding> begun_type{};
    std::optional<relay::TenureAction> doing{};  ///< What the core has asked for.
    std::optional<Error> failure{};              ///< What other threads have found.
    bool rung{false};
    bool must_update{false};  ///< The core was told that the bell has rung.
    bool must_end{false};     ///< The core was told of a failure, of a stop, or of lost lanes.
  };

  [[nodiscard]] relay::TimePoint now() const { return world_.now + offset_; }
  [[nodiscard]] RetainedSink& sink() { return retained_.front(); }
  [[nodiscard]] const RetainedSink& sink() const { return retained_.front(); }
  [[nodiscard]] RetainedSink& retained(std::int32_t subscription) {
    return retained_[static_cast<std::size_t>(subscription - 1)];
  }
  [[nodiscard]] Served& any();
  [[nodiscard]] bool delivers() const;
  [[nodiscard]] store::Holding held() const;
  [[nodiscard]] bool is_troubled(unsigned percent);
  void step_tenures();
  void step_lease();
  void step_reader();
  void step_loop();
  void step_settler();
  void read_due(Served& served);
  void check_faults(const Batch& batch);
  void forget_retries();
  void excuse_repeats(store::LaneMask kept);
  void begin_tenure();
  void tell();
  void check(const relay::TenureAction& action);
  /// Returns false if that takes longer.
  bool carry_out(const relay::TenureAction& action);
  void look();
  void change_lanes(store::LaneMask lanes);
  [[nodiscard]] bool wakes(relay::TimePoint until);
  [[nodiscard]] bool end(const std::optional<Error>& error);
  void end_tenure();
  void end_relay();
  void stop(Served& served);
  [[nodiscard]] bool update();
  [[nodiscard]] bool retire_changed();
  void begin_type();
  void begin_loops();
  void begin_loop(Served& served, store::SubscriptionRow row);
  void keep_in_transit(const Served& served);
  /// Both return false if a loop is not over yet.
  [[nodiscard]] bool end_loops();
  [[nodiscard]] bool end_loop(Served& served);

  GroupShared& world_;
  const store::RelayIdentity identity_;
  std::vector<InTransit>& in_transit_;
  relay::TimePoint::duration offset_{};  ///< The offset of the local clock.
  int stopped_{0};
  /// Whether a type has a limit in its configuration.
  const bool sets_apart_;
  /// The sink of each subscription.
  std::vector<RetainedSink> retained_;
  /// Only in a worker.
  std::unique_ptr<SimRunTracker> run_tracker_;
  const std::vector<SubscriptionSpec> no_subscriptions_{};
  relay::Configuration configuration_{no_subscriptions_};
  relay::TrustDeadline trust_;
  relay::TenureCore core_;
  std::unique_ptr<Tenure> tenure_;
  relay::TimePoint begin_at_{};  ///< When the next tenure begins.
  bool was_member_{false};
  bool leaving_for_good_{false};
  bool has_left_{false};
};

}  // namespace outbox::sim
