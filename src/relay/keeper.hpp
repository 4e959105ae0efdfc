// The keeper takes the lanes or waits for them, and runs one tenure after another until a stop is requested.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <outbox/relay.hpp>
#include <stop_token>
#include <string>
#include <thread>

#include "base/mutex.hpp"
#include "base/outage.hpp"
#include "relay/configuration.hpp"
#include "relay/lease_keeper.hpp"
#include "relay/sink_cache.hpp"
#include "relay/tenure.hpp"
#include "relay/trust_deadline.hpp"
#include "store/store.hpp"

namespace outbox::relay {

class Keeper {
 public:
  explicit Keeper(RelayOptions options) : options_(std::move(options)) {}

  // Calls must not overlap.
  [[nodiscard]] bool is_running() const { return thread_.joinable(); }
  void put_custom(const std::string& subscription, std::unique_ptr<Sink> sink);
  /// Returns when this relay delivers, waits for another one that does, or cannot do either for now.
  [[nodiscard]] Status start(std::stop_token token);
  /// Waits until the thread has ended.
  StopReport join();
  /// After start() only.
  [[nodiscard]] store::Store& store() { return *store_; }

  // Any thread.
  /// `grace`: how long to wait for what is in flight; none: as requested before, 10 s by default.
  void request_stop(std::optional<std::chrono::milliseconds> grace) noexcept;
  /// This relay delivers, or waits for another one that does.
  [[nodiscard]] bool has_role() const;
  /// True: a stop was requested.
  bool pause(std::chrono::nanoseconds length);
  [[nodiscard]] RelayReport report() const;

 private:
  enum class Role : std::uint8_t {
    undecided,
    delivering,  ///< The configuration is applied.
    waiting,     ///< Another relay delivers.
    none,        ///< It can do neither, for now.
  };

  void run();
  [[nodiscard]] Status run_once();
  [[nodiscard]] Status join_members();
  [[nodiscard]] Result<store::Membership::Standing> wait_for_lanes();
  /// False: a stop was requested.
  [[nodiscard]] Result<bool> wait_for_vacancy();
  void compare_configuration(std::unique_ptr<store::Catalog>& catalog);
  [[nodiscard]] Status deliver(std::int64_t generation);
  [[nodiscard]] Status configure(std::int64_t generation, store::Catalog& catalog,
                                 const std::string& outbox);
  [[nodiscard]] Status run_tenure(Tenure& tenure, const LeaseKeeper& lease);
  void maintain(std::unique_ptr<store::Maintenance>& maintenance);
  void back_off(const Error& error, int& failures);
  void give_back_lanes();
  void note_failure(const Error& error);
  void write_failure(const Error& error);

  void publish(Tenure* tenure, std::int64_t generation);
  void set_role(Role role);
  void ring();
  [[nodiscard]] bool stopping() const;
  [[nodiscard]] std::chrono::milliseconds grace() const;
  /// True: the bell rang.
  [[nodiscard]] bool wait_until(TimePoint until);

  const RelayOptions options_;
  const EventId id_{EventId::generate()};
  std::unique_ptr<store::Store> store_;

  // The keeper's thread only, while it runs.
  Configuration configuration_{options_.subscriptions};
  SinkCache sinks_;
  TrustDeadline trust_;
  std::unique_ptr<store::Membership> membership_;
  bool was_member_{false};
  StopReport stop_report_{.drained = true, .abandoned = 0};
  std::optional<TimePoint> delivering_since_;
  bool has_settled_{false};
  Outage outage_;  ///< Of the store or the lease.
  Outage maintenance_outage_;
  std::string outbox_;  ///< The identity of the outbox in the store; empty: not read yet.
  /// Our newest generation since the configuration was applied.
  std::optional<std::int64_t> configured_under_;

  mutable Mutex mutex_;
  std::condition_variable_any bell_;
  bool stop_requested_ OUTBOX_GUARDED_BY(mutex_){false};
  bool rung_ OUTBOX_GUARDED_BY(mutex_){false};
  Role role_ OUTBOX_GUARDED_BY(mutex_){Role::undecided};
  std::chrono::milliseconds grace_ OUTBOX_GUARDED_BY(mutex_){0};
  Tenure* tenure_ OUTBOX_GUARDED_BY(mutex_){nullptr};
  std::int64_t generation_ OUTBOX_GUARDED_BY(mutex_){0};
  std::string last_error_ OUTBOX_GUARDED_BY(mutex_);

  std::jthread thread_;
  std::optional<std::stop_callback<std::function<void()>>> on_token_;
};

}  // namespace outbox::relay
