// The tenure loop registers the relay, and runs one tenure after another until a stop is requested:
// it does with the store, the sinks and the tenure what its core decides. docs/design/groups.md.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <outbox/relay.hpp>
#include <stop_token>
#include <string>
#include <thread>

#include "base/mutex.hpp"
#include "base/outage.hpp"
#include "base/steady.hpp"
#include "relay/configuration.hpp"
#include "relay/lease_renewer.hpp"
#include "relay/retention_job.hpp"
#include "relay/sink_cache.hpp"
#include "relay/tenure.hpp"
#include "relay/tenure_core.hpp"
#include "relay/totals.hpp"
#include "relay/trust_deadline.hpp"
#include "store/store.hpp"

namespace outbox::relay {

class TenureLoop {
 public:
  explicit TenureLoop(RelayOptions options);

  // Calls must not overlap.
  [[nodiscard]] bool is_running() const { return thread_.joinable(); }
  void put_custom(const std::string& subscription, std::unique_ptr<Sink> sink);
  void put_custom(const std::string& group, Relay::MakeSink make);
  /// Returns when this relay delivers, waits for another one that does, or cannot do either for
  /// now.
  [[nodiscard]] Status start(std::stop_token token);
  /// Waits until the thread has ended.
  StopReport join();
  /// The groups that the relay serves (subscription/group.hpp).
  [[nodiscard]] const std::vector<std::string>& groups() const { return identity_.groups; }
  /// Only after start().
  [[nodiscard]] store::Store& store() { return *store_; }

  // Any thread may call these.
  /// `grace` is how long to wait for what is in flight. If it is not set, what was requested before
  /// holds, or 10 s by default.
  void request_stop(std::optional<std::chrono::milliseconds> grace) noexcept;
  /// Whether this relay delivers, or waits for another one that does.
  [[nodiscard]] bool has_role() const;
  /// Waits until the time is over or a stop is requested. Returns whether a stop was requested.
  bool pause(std::chrono::nanoseconds length);
  [[nodiscard]] RelayReport report() const;
  /// What was settled in all runs of this object.
  [[nodiscard]] Totals::Settled settled() const { return totals_.settled(); }

 private:
  enum class Role : std::uint8_t {
    undecided,
    delivering,  ///< It has lanes of at least one group, and the configuration of those is applied.
    waiting,     ///< Other relays have all lanes.
    none,        ///< It can do neither, for now.
  };
  /// The connections of one run.
  struct Parts {
    std::unique_ptr<store::Membership> membership;
    std::unique_ptr<store::LaneOwners> owners;
    std::unique_ptr<store::Catalog> catalog;  ///< Null when the tenure has it.
    std::unique_ptr<store::Maintenance> maintenance;
    /// Set while the relay delivers. Its destructor may wait for a statement.
    std::unique_ptr<RetentionJob> retention;
    std::string outbox;  ///< The identity of the outbox.
  };

  void run();
  [[nodiscard]] Status run_once();
  [[nodiscard]] Result<Parts> open_parts();
  void start_over();
  [[nodiscard]] Status renew_and_follow(Parts& parts, Tenure& tenure);
  /// Does what the core asks for until something fails or a stop is requested.
  [[nodiscard]] Status follow(Parts& parts, Tenure& tenure, const LeaseRenewer& lease);
  /// Tells the core what other threads have found.
  void tell(const Tenure& tenure, const LeaseRenewer& lease);
  [[nodiscard]] Status carry_out(const TenureAction& action, Parts& parts, Tenure& tenure);
  [[nodiscard]] Status look(Parts& parts);
  [[nodiscard]] Status change_lanes(Parts& parts, const TenureAction& action);
  void wait_for_others(Parts& parts, const TenureAction& action);
  [[nodiscard]] Status begin(Parts& parts, Tenure& tenure);
  [[nodiscard]] Status update(Tenure& tenure);
  void log_lanes();
  void maintain(std::unique_ptr<store::Maintenance>& maintenance);
  void back_off(const Error& error);
  void give_back_lanes();
  void note_failure(const Error& error, bool delivers = false);
  void write_failure(const Error& error);

  void publish(Tenure* tenure);
  void note_progress() { progress_.store(now_steady(), std::memory_order_relaxed); }
  void set_role(Role role);
  void ring();
  [[nodiscard]] bool stopping() const;
  [[nodiscard]] std::chrono::milliseconds grace() const;
  /// Returns whether the bell rang.
  [[nodiscard]] bool wait_until(TimePoint until);

  const RelayOptions options_;
  Totals totals_;
  /// When the thread last went round. TimePoint::max() while it does not run.
  std::atomic<TimePoint> progress_{TimePoint::max()};
  store::RelayIdentity identity_;
  std::unique_ptr<store::Store> store_;

  // Only the thread of the tenure loop uses these, while it runs.
  Configuration configuration_{options_.subscriptions};
  SinkCache sinks_;
  TrustDeadline trust_;
  TenureCore core_{identity_, configuration_, trust_};
  bool was_member_{false};
  Holdings logged_;
  StopReport stop_report_{.drained = true, .abandoned = 0};
  bool has_settled_{false};
  Outage outage_;  ///< The outage of the store or the lease.
  OutageLog maintenance_outage_{"maintenance failed, retries", "maintenance works again"};

  mutable Mutex mutex_;
  std::condition_variable_any bell_;
  bool stop_requested_ OUTBOX_GUARDED_BY(mutex_){false};
  bool rung_ OUTBOX_GUARDED_BY(mutex_){false};
  Role role_ OUTBOX_GUARDED_BY(mutex_){Role::undecided};
  std::chrono::milliseconds grace_ OUTBOX_GUARDED_BY(mutex_){0};
  Tenure* tenure_ OUTBOX_GUARDED_BY(mutex_){nullptr};
  bool owner_ OUTBOX_GUARDED_BY(mutex_){false};
  std::int64_t generation_ OUTBOX_GUARDED_BY(mutex_){0};
  std::string last_error_ OUTBOX_GUARDED_BY(mutex_);
  // What a report has of all runs; groups and classes stay.
  std::map<std::string, std::size_t> lanes_ OUTBOX_GUARDED_BY(mutex_);
  std::map<std::string, std::uint64_t> takeovers_ OUTBOX_GUARDED_BY(mutex_);
  std::map<std::string, std::uint64_t> store_errors_ OUTBOX_GUARDED_BY(mutex_);

  std::jthread thread_;
  std::optional<std::stop_callback<std::function<void()>>> on_token_;
};

}  // namespace outbox::relay
