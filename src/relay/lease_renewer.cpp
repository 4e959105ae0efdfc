#include "relay/lease_renewer.hpp"

#include <utility>

#include "base/thread.hpp"

namespace outbox::relay {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

Result<bool> renew(store::Membership& membership, std::chrono::milliseconds lease,
                   TrustDeadline& trust) {
  const TimePoint sent = Clock::now();
  auto kept = membership.keep(lease);
  if (kept && *kept) trust.extend_to(trusted_until(sent, lease));
  return kept;
}

LeaseRenewer::LeaseRenewer(store::Membership& membership, std::chrono::milliseconds lease,
                           TrustDeadline& trust, std::function<void()> lost)
    : membership_(membership),
      lease_(lease),
      lost_(std::move(lost)),
      core_(lease, trust, Clock::now()) {
  thread_ = start_thread("ob-lease", [this](const std::stop_token& stop) { run(stop); });
}

std::optional<Error> LeaseRenewer::failure() const {
  const MutexLock lock(mutex_);
  return core_.failure();
}

void LeaseRenewer::run(const std::stop_token& stop) {
  while (!failure()) {
    {
      const MutexLock lock(mutex_);
      stopped_.wait_until(mutex_, stop, core_.next_at(), [] { return false; });
    }
    if (stop.stop_requested()) return;
    const TimePoint sent = Clock::now();
    const auto kept = membership_.keep(lease_);
    const MutexLock lock(mutex_);
    core_.answered(kept, sent, Clock::now());
  }
  lost_();
}

}  // namespace outbox::relay
