// One tenure: the time in which this relay owns the lanes and the store holds. It has the reader, the settler and one
// loop per active subscription. When the store or the lanes are lost the tenure ends whole, and the next one starts from
// the persisted cursors: nothing read before may be trusted after a reconnect (facts of the store: a restarted server may
// issue a transaction id again).
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <outbox/relay.hpp>
#include <string>
#include <vector>

#include "relay/configuration.hpp"
#include "relay/log_pump.hpp"
#include "relay/settler.hpp"
#include "relay/subscription_loop.hpp"
#include "store/store.hpp"

namespace outbox::relay {

/// Sinks live longer than a tenure: they are kept by subscription name, with what they acked in vain. So are the loops
/// that are still in a call of their sink, until it returns.
class SinkShelf {
 public:
  SinkShelf() = default;
  SinkShelf(const SinkShelf&) = delete;
  SinkShelf& operator=(const SinkShelf&) = delete;
  SinkShelf(SinkShelf&&) = delete;
  SinkShelf& operator=(SinkShelf&&) = delete;
  /// Leaves those behind that are still in a call.
  ~SinkShelf();

  /// The application's own sinks, for subscriptions with sink = "custom".
  void put_custom(const std::string& name, std::unique_ptr<Sink> sink);
  [[nodiscard]] Result<Remains> take(const store::SubscriptionRow& row);
  void put_back(const store::SubscriptionRow& row, Remains remains);
  /// Another outbox: what the sinks acked, and the settings they were made with, mean nothing there.
  void forget();
  /// Takes over a loop that stop() could not end.
  void leave(std::unique_ptr<SubscriptionLoop> loop);
  /// Releases what the sinks hold at their destinations: another relay may be about to use it. They are opened again.
  void rest();
  void rest(const std::string& name);

 private:
  struct Version {
    std::int32_t id{0};
    std::int32_t config_version{0};
    bool operator==(const Version&) const = default;
  };
  struct Shelved {
    Remains remains;
    std::optional<Version> of;  ///< None: never used, the application's own.
  };
  struct Stuck {
    std::unique_ptr<SubscriptionLoop> loop;
    bool of_former_outbox{false};
  };
  [[nodiscard]] static Version version_of(const store::SubscriptionRow& row);
  static void forget(Shelved& shelved);
  void reap();

  std::map<std::string, Shelved> shelf_;
  std::vector<Stuck> stuck_;
};

class Tenure {
 public:
  Tenure(store::Store& store, const RelayOptions& options, Configuration& configuration,
         SinkShelf& shelf, const TrustDeadline& trust, std::function<void()> bell);
  Tenure(const Tenure&) = delete;
  Tenure& operator=(const Tenure&) = delete;
  Tenure(Tenure&&) = delete;
  Tenure& operator=(Tenure&&) = delete;
  ~Tenure();

  /// Loads the cursors and starts everything. `outbox`: its identity, by this catalog.
  [[nodiscard]] Status begin(std::int64_t generation, std::unique_ptr<store::Catalog> catalog,
                             std::string outbox);
  /// Looks for changed subscriptions and for what the loops reported; the keeper calls it about once a second.
  [[nodiscard]] Status tend();
  /// It delivered something, and the store took the settlement.
  [[nodiscard]] bool has_settled() const;
  /// Any thread: what ended it, if something did.
  [[nodiscard]] std::optional<Error> failure() const;
  /// Ends it. `settle`: write what is done (the store and the lanes are still ours).
  StopReport end(std::chrono::nanoseconds grace, bool settle);
  void report(RelayReport& into) const;

 private:
  struct Running {
    std::unique_ptr<SubscriptionLoop> loop;
    std::optional<Rejection> rejection;  ///< Reported by the loop, not yet written.
    bool filter_judged{false};           ///< It matches something, or has been warned of.
  };

  void broke(const Error& error);
  [[nodiscard]] Result<std::unique_ptr<SubscriptionLoop>> make_loop(
      const store::SubscriptionRow& row);
  [[nodiscard]] Status write_rejections();
  [[nodiscard]] Status follow(const std::vector<store::SubscriptionRow>& rows);
  [[nodiscard]] Status tell_troubles(const std::vector<store::SubscriptionRow>& rows);
  [[nodiscard]] Status warn_of_idle_filters(const std::vector<store::SubscriptionRow>& rows);
  [[nodiscard]] std::string trouble_of(const std::string& name) const;
  [[nodiscard]] Status check_outbox();
  void warn_of_nothing(const std::vector<store::SubscriptionRow>& rows);
  void retire(const std::string& name);
  void shelve(std::unique_ptr<SubscriptionLoop> loop, SubscriptionLoop::Stopped stopped);
  void complain(const std::string& name, const Error& error);

  store::Store& store_;
  const RelayOptions& options_;
  Configuration& configuration_;
  SinkShelf& shelf_;
  const TrustDeadline& trust_;
  const std::function<void()> bell_;
  std::int64_t generation_{0};
  std::string outbox_;
  int nothing_warned_{0};  ///< So many times that nothing is subscribed.
  TimePoint warn_again_at_{};

  std::unique_ptr<store::Progress> loader_;
  std::unique_ptr<store::Catalog> catalog_;
  std::unique_ptr<LogPump> pump_;
  std::map<std::string, std::string> complaints_;

  mutable std::mutex mutex_;
  std::optional<Error> failure_;
  std::map<std::string, Running> running_;
  std::map<std::string, SubscriptionReport> at_rest_;

  std::unique_ptr<Settler> settler_;
};

}  // namespace outbox::relay
