// Renews the lease on a thread of its own, so that nothing a sink or a subscription does can cost it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "base/mutex.hpp"
#include "relay/trust_deadline.hpp"
#include "store/store.hpp"

namespace outbox::relay {

[[nodiscard]] Error lease_lost(std::string message);

/// Renews the lease, or tries to get it, and says until when it may be trusted.
[[nodiscard]] Result<store::Membership::Standing> renew(store::Membership& membership,
                                                        std::chrono::milliseconds lease,
                                                        TrustDeadline& trust);

class LeaseKeeper {
 public:
  /// Starts. `lost` is called once, from the keeper's thread, when the lease is lost or cannot be renewed. Nobody else may
  /// use the membership meanwhile.
  LeaseKeeper(store::Membership& membership, std::chrono::milliseconds lease,
              std::int64_t generation, TrustDeadline& trust, std::function<void()> lost);

  /// Why it was lost, once it is.
  [[nodiscard]] std::optional<Error> failure() const;

 private:
  void run(const std::stop_token& stop);

  store::Membership& membership_;
  const std::chrono::milliseconds lease_;
  const std::int64_t generation_;
  TrustDeadline& trust_;
  const std::function<void()> lost_;

  mutable Mutex mutex_;
  std::condition_variable_any stopped_;
  std::optional<Error> failure_ OUTBOX_GUARDED_BY(mutex_);

  std::jthread thread_;
};

}  // namespace outbox::relay
