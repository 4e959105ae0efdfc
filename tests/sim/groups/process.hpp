// A relay: the threads of src/relay (tenure loop, lease, pump, loop, settler) and the sink's
// client, one of them a step at a time, in any order.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "relay/trust_deadline.hpp"
#include "sim/groups/loop.hpp"
#include "sim/groups/reader.hpp"
#include "sim/groups/shared.hpp"
#include "sim/tasks/run_tracker.hpp"

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
    if (run_tracker_) run_tracker_->lose_connection();
  }
  /// By one of its handlers.
  [[nodiscard]] bool is_killed() const { return sink().runner && sink().runner->killed(); }
  void stop_for(int steps, bool clock_too);
  /// Asked to stop: hands over.
  void leave() {
    leaving_for_good_ = true;
    if (run_tracker_) run_tracker_->claim_no_more();
  }
  [[nodiscard]] bool has_left() const {
    return has_left_ && (!run_tracker_ || run_tracker_->is_over());
  }
  [[nodiscard]] bool at_rest() const;
  /// Keys that it holds back without a row in the store; less than 0: it lets keys go that have
  /// one.
  [[nodiscard]] int keys_too_many() const;
  void heal() { sink().sink.fail_percent = sink().sink.sick_percent = 0; }
  void go_down(bool down) { sink().sink.outages.go_down(down); }
  [[nodiscard]] const EventId& id() const { return id_; }
  [[nodiscard]] std::uint64_t lies() const { return sink().sink.lies; }

 private:
  /// A subscription, in a tenure.
  struct Served {
    Served(GroupShared& world, std::int32_t id_)
        : id(id_), reader(world.random, world.database, world.tables) {}
    const std::int32_t id;
    SimReader reader;
    std::unique_ptr<SimLoop> loop;
    std::deque<SimLoop::Job> jobs;
    std::optional<store::DueEvents> due{};  ///< One of two statements has answered.
    std::int32_t parked_version{0};         ///< That the loop knows.
    bool stopping{false};                   ///< The loop, in order.
  };
  /// From a connection to its loss.
  struct Tenure {
    std::vector<std::unique_ptr<Served>> served;
    std::vector<store::SubscriptionRow> rows;    ///< As they were read last.
    bool retired{false};                         ///< Loops, because of these rows.
    std::optional<store::Holding> begun_type{};  ///< The lanes in which the type has its cursor.
    store::Holding holding;
    bool failed{false};
  };

  [[nodiscard]] relay::TimePoint now() const { return world_.now + offset_; }
  [[nodiscard]] RetainedSink& sink() { return retained_.front(); }
  [[nodiscard]] const RetainedSink& sink() const { return retained_.front(); }
  [[nodiscard]] RetainedSink& retained(std::int32_t subscription) {
    return retained_[static_cast<std::size_t>(subscription - 1)];
  }
  [[nodiscard]] Served& any();
  [[nodiscard]] bool delivers() const;
  void step_tenures();
  void step_lease();
  void step_reader();
  void step_loop();
  void step_settler();
  void read_due(Served& served);
  void check_faults(const Batch& batch);
  void forget_retries(const store::Fleet& fleet);
  void forget_retries();
  void excuse_repeats(store::LaneMask kept);
  void change_lanes(store::LaneMask lanes);
  void begin_tenure();
  void end_tenure();
  void end_relay();
  void look();
  void stop(Served& served);
  [[nodiscard]] bool retire_changed();
  void begin_type();
  void begin_loops();
  void begin_loop(Served& served, store::SubscriptionRow row);
  void keep_in_transit(const Served& served);
  /// False: it is not over yet.
  bool end_loop(Served& served);
  [[nodiscard]] store::LaneMask wanted(const store::Fleet& fleet) const;
  [[nodiscard]] bool lost_lanes(const store::Fleet& fleet) const;

  GroupShared& world_;
  const EventId id_;
  std::vector<InTransit>& in_transit_;
  relay::TimePoint::duration offset_{};  ///< Of the local clock.
  int stopped_{0};
  relay::TrustDeadline trust_;
  relay::TimePoint renew_at_{};
  const bool sets_apart_;                       ///< By its configuration: a type has a limit.
  std::vector<RetainedSink> retained_;          ///< By subscription.
  store::Holding held_before_;                  ///< Of the tenure before.
  std::unique_ptr<SimRunTracker> run_tracker_;  ///< Of a worker.
  std::unique_ptr<Tenure> tenure_;
  bool leaving_for_good_{false};
  bool has_left_{false};
};

}  // namespace outbox::sim
