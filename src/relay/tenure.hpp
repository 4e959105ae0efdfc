// One tenure: the time in which this relay is a member and its connections work. It has the pump,
// the settler and one loop per active subscription of the groups whose lanes it owns. When the
// store or the lease is lost the whole tenure ends, and the next one starts from the persisted
// cursors: nothing read before may be trusted after a reconnect (a server that crashed issues
// transaction ids again).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <outbox/relay.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "feed/pump.hpp"
#include "relay/assignment.hpp"
#include "relay/configuration.hpp"
#include "relay/settler.hpp"
#include "relay/sink_cache.hpp"
#include "relay/subscription_loop.hpp"
#include "relay/totals.hpp"
#include "relay/trust_deadline.hpp"
#include "store/store.hpp"

namespace outbox::relay {

/// Used by the thread of the tenure loop, except where "Any thread" is stated.
class Tenure {
 public:
  /// `bell` is called, on any thread, when update() or failure() has something new.
  Tenure(store::Store& store, const RelayOptions& options, Configuration& configuration,
         SinkCache& sinks, Totals& totals, const TrustDeadline& trust, std::function<void()> bell);
  Tenure(const Tenure&) = delete;
  Tenure& operator=(const Tenure&) = delete;
  ~Tenure();

  /// Opens the connections and starts reading. `relay` is the id of this relay.
  [[nodiscard]] Status begin(const EventId& relay, std::unique_ptr<store::Catalog> catalog);
  [[nodiscard]] bool has_begun() const { return pump_ != nullptr; }
  /// Writes the configuration of a group to the store.
  [[nodiscard]] Status apply_configuration(const std::string& group) {
    return configuration_.apply(*catalog_, group);
  }
  /// Retires the loops of a group whose lanes will change hands: nothing of it is delivered or
  /// settled until update() is called with the new holding.
  [[nodiscard]] Status leave(const std::string& group);
  /// Applies what changed in the store to the loops, and writes what the loops reported to the
  /// store. The tenure loop calls it about once a second.
  [[nodiscard]] Status update(const Holdings& holdings);
  /// Whether something was delivered and settled.
  [[nodiscard]] bool has_settled() const { return settler_ && settler_->has_written(); }
  /// Any thread: the error that ends this tenure, if there is one.
  [[nodiscard]] std::optional<Error> failure() const;
  /// Ends the tenure. With `settle` the settlements that are left are written, because the store
  /// and the lanes are not lost.
  StopReport end(std::chrono::nanoseconds grace, bool settle);
  /// Any thread, between begin() and end().
  void report(RelayReport& into) const;

 private:
  using Rows = std::vector<store::SubscriptionRow>;

  void fail_with(const Error& error);
  [[nodiscard]] Status stop_rejected();
  [[nodiscard]] Status retire_changed(const Rows& rows);
  [[nodiscard]] Status begin_types(const Rows& rows);
  [[nodiscard]] Status start_new(const Rows& rows);
  [[nodiscard]] Status start(const store::SubscriptionRow& row);
  [[nodiscard]] Result<std::unique_ptr<SubscriptionLoop>> make_loop(
      const store::SubscriptionRow& row);
  struct Beginning {
    store::SubscriptionRow row;  ///< The row, without a replay that has ended.
    LoopOptions options{};
    std::vector<store::Strand> strands{};
    store::ParkedKeys parked{};
  };
  [[nodiscard]] Result<Beginning> begin_loop(const store::SubscriptionRow& row);
  [[nodiscard]] Result<std::vector<store::Strand>> load_strands(const store::SubscriptionRow& row,
                                                                const store::Holding& holding);
  [[nodiscard]] const store::Holding* find_holding(const store::SubscriptionRow& row) const;
  /// Records that runs begin on these strands. Returns what former relays left behind there.
  [[nodiscard]] Result<TrialGate> begin_runs(const store::SubscriptionRow& row,
                                             const store::Holding& holding,
                                             const std::vector<store::Strand>& strands);
  /// Records that the run of a loop has ended in order.
  [[nodiscard]] Status end_run(const SubscriptionLoop& loop);
  /// The listener of a loop.
  [[nodiscard]] SubscriptionLoop::Listener listen(std::int32_t subscription,
                                                  const store::Holding& holding);
  [[nodiscard]] Status retire(const std::vector<SubscriptionLoop*>& loops);
  [[nodiscard]] Status write_troubles(const Rows& rows);
  [[nodiscard]] std::string describe_trouble(const std::string& name) const;
  [[nodiscard]] Status warn_of_idle_filters(const Rows& rows);
  void warn_of_no_subscriptions(const Rows& rows);
  [[nodiscard]] SubscriptionLoop* running(const std::string& name) const;
  [[nodiscard]] std::vector<SubscriptionLoop*> running() const;

  store::Store& store_;
  const RelayOptions& options_;
  Configuration& configuration_;
  SinkCache& sinks_;
  Totals& totals_;
  const TrustDeadline& trust_;
  const std::function<void()> bell_;
  EventId relay_{};
  Holdings holdings_;
  int empty_warnings_{0};
  TimePoint warn_again_at_{};
  /// The subscriptions of task types that have cursors, with what was held when these were written.
  std::map<std::int32_t, store::Holding> begun_types_;
  /// The `parked_version` that the loop of each subscription knows.
  std::map<std::int32_t, std::int32_t> told_of_parked_;
  /// The subscriptions whose filter has matched something or was warned of.
  std::set<std::string> judged_filters_;
  /// Why a subscription cannot start, by its name.
  std::map<std::string, std::string> broken_;

  std::unique_ptr<store::Progress> loader_;
  Mutex trials_mutex_;
  std::unique_ptr<store::Trials> trials_ OUTBOX_GUARDED_BY(trials_mutex_);
  std::unique_ptr<store::Catalog> catalog_;
  std::unique_ptr<feed::Pump> pump_;
  std::unique_ptr<Settler> settler_;

  mutable Mutex mutex_;
  std::optional<Error> failure_ OUTBOX_GUARDED_BY(mutex_);
  // Changed by the thread of the tenure loop only.
  std::map<std::string, std::unique_ptr<SubscriptionLoop>> running_ OUTBOX_GUARDED_BY(mutex_);
  std::vector<SubscriptionReport> inactive_ OUTBOX_GUARDED_BY(mutex_);
};

}  // namespace outbox::relay
