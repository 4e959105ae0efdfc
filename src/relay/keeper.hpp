// The keeper: owns the lanes or waits for them, and runs one tenure after another until it is asked to stop.
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

  // One call after another; the caller sees to that.
  [[nodiscard]] bool is_running() const { return thread_.joinable(); }
  void put_custom(const std::string& subscription, std::unique_ptr<Sink> sink);
  /// Returns when it is known whether this relay delivers, waits for another, or can do neither for now.
  [[nodiscard]] Status start(std::stop_token token);
  /// Waits until the thread has ended.
  StopReport join();
  /// After start(): the store that it delivers from.
  [[nodiscard]] store::Store& store() { return *store_; }

  // Any thread.
  /// `grace`: how long to wait for what is in flight; none: as said before, or by default.
  void ask_to_stop(std::optional<std::chrono::milliseconds> grace) noexcept;
  /// It delivers, or waits for another relay that does.
  [[nodiscard]] bool is_in_place() const;
  /// True: asked to stop.
  bool pause(std::chrono::nanoseconds length);
  [[nodiscard]] RelayReport report() const;

 private:
  enum class Place : std::uint8_t {
    unknown,
    delivering,  ///< Its configuration is applied.
    waiting,     ///< Another relay delivers.
    nowhere,     ///< Cannot do either, for now.
  };

  void run();
  [[nodiscard]] Status run_once();
  [[nodiscard]] Status join_members();
  [[nodiscard]] Result<store::Membership::Standing> wait_for_lanes();
  /// False: asked to stop.
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
  void note_place(Place place);
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
  Outage outage_;  ///< Of the store, or of the hold on the lanes.
  Outage maintenance_outage_;
  std::string outbox_;  ///< The identity of the one in the store; empty before it was seen.
  /// The newest generation of ours since the configuration was applied.
  std::optional<std::int64_t> configured_under_;

  mutable Mutex mutex_;
  std::condition_variable_any bell_;
  bool stop_asked_ OUTBOX_GUARDED_BY(mutex_){false};
  bool rung_ OUTBOX_GUARDED_BY(mutex_){false};
  Place place_ OUTBOX_GUARDED_BY(mutex_){Place::unknown};
  std::chrono::milliseconds grace_ OUTBOX_GUARDED_BY(mutex_){0};
  Tenure* tenure_ OUTBOX_GUARDED_BY(mutex_){nullptr};
  std::int64_t generation_ OUTBOX_GUARDED_BY(mutex_){0};
  std::string last_error_ OUTBOX_GUARDED_BY(mutex_);

  std::jthread thread_;
  std::optional<std::stop_callback<std::function<void()>>> on_token_;
};

}  // namespace outbox::relay
