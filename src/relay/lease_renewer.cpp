#include "relay/lease_renewer.hpp"

#include <utility>

#include "base/error.hpp"
#include "base/thread.hpp"

namespace outbox::relay {

Error lease_lost(std::string message) {
  return fail(Errc::lease_lost, Remedy::retry_call, std::move(message)).value();
}

Result<bool> renew(store::Membership& membership, std::chrono::milliseconds lease,
                   TrustDeadline& trust) {
  // The deadline counts from before the heartbeat was sent, less a margin for messages on their way
  // to the sinks.
  const TimePoint before = std::chrono::steady_clock::now();
  auto kept = membership.keep(lease);
  if (kept && *kept) trust.extend_to(before + lease - lease / 5);
  return kept;
}

LeaseRenewer::LeaseRenewer(store::Membership& membership, std::chrono::milliseconds lease,
                           TrustDeadline& trust, std::function<void()> lost)
    : membership_(membership), lease_(lease), trust_(trust), lost_(std::move(lost)) {
  thread_ = start_thread("ob-lease", [this](const std::stop_token& stop) { run(stop); });
}

std::optional<Error> LeaseRenewer::failure() const {
  const MutexLock lock(mutex_);
  return failure_;
}

void LeaseRenewer::run(const std::stop_token& stop) {
  auto pause = lease_ / 3;
  while (true) {
    {
      const MutexLock lock(mutex_);
      stopped_.wait_for(mutex_, stop, pause, [] { return false; });
    }
    if (stop.stop_requested()) return;
    auto kept = renew(membership_, lease_, trust_);
    if (kept && *kept) {
      pause = lease_ / 3;
      continue;
    }
    const bool may_yet_work =
        !kept && kept.error().remedy != Remedy::reconnect && kept.error().remedy != Remedy::fix;
    if (may_yet_work && trust_.holds(std::chrono::steady_clock::now())) {
      pause = lease_ / 20;
      continue;
    }
    if (kept) trust_.end();
    const MutexLock lock(mutex_);
    failure_ = kept ? lease_lost("another relay took this one for dead and has its lanes now")
                    : kept.error();
    break;
  }
  lost_();
}

}  // namespace outbox::relay
