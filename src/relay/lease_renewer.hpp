// Renews the lease on its own thread, so that no sink and no subscription can delay it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <optional>
#include <thread>

#include "base/mutex.hpp"
#include "relay/lease_core.hpp"
#include "store/store.hpp"

namespace outbox::relay {

/// Registers the relay or renews its lease, and extends the trust deadline. Returns false if
/// another relay took this one for dead.
[[nodiscard]] Result<bool> renew(store::Membership& membership, std::chrono::milliseconds lease,
                                 TrustDeadline& trust);

class LeaseRenewer {
 public:
  /// Starts the thread, which alone uses the membership from then on. `lost` is called once, from
  /// that thread, when the lease is lost or cannot be renewed.
  LeaseRenewer(store::Membership& membership, std::chrono::milliseconds lease, TrustDeadline& trust,
               std::function<void()> lost);

  /// Why the lease was lost or could not be renewed; nullopt if neither happened.
  [[nodiscard]] std::optional<Error> failure() const;

 private:
  void run(const std::stop_token& stop);

  store::Membership& membership_;
  const std::chrono::milliseconds lease_;
  const std::function<void()> lost_;

  mutable Mutex mutex_;
  std::condition_variable_any stopped_;
  LeaseCore core_ OUTBOX_GUARDED_BY(mutex_);

  std::jthread thread_;
};

}  // namespace outbox::relay
