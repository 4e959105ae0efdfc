// Renews the lease on a thread of its own, so that nothing a sink or a subscription does can cost it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "relay/subscription_loop.hpp"
#include "store/store.hpp"

namespace outbox::relay {

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
  LeaseKeeper(const LeaseKeeper&) = delete;
  LeaseKeeper& operator=(const LeaseKeeper&) = delete;
  LeaseKeeper(LeaseKeeper&&) = delete;
  LeaseKeeper& operator=(LeaseKeeper&&) = delete;
  ~LeaseKeeper();

  /// Why it was lost, once it is.
  [[nodiscard]] std::optional<Error> failure() const;

 private:
  void run(const std::stop_token& stop);

  store::Membership& membership_;
  const std::chrono::milliseconds lease_;
  const std::int64_t generation_;
  TrustDeadline& trust_;
  const std::function<void()> lost_;

  mutable std::mutex mutex_;
  std::condition_variable_any stopped_;
  std::optional<Error> failure_;

  std::jthread thread_;
};

}  // namespace outbox::relay
