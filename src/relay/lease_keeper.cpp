#include "relay/lease_keeper.hpp"

#include <utility>

#include "base/error.hpp"
#include "base/thread.hpp"

namespace outbox::relay {

Error lease_lost(std::string message) {
  return fail(Errc::lease_lost, Remedy::retry_call, std::move(message)).value();
}

Result<store::Membership::Standing> renew(store::Membership& membership,
                                          std::chrono::milliseconds lease, TrustDeadline& trust) {
  using Clock = std::chrono::steady_clock;
  for (bool again = false;; again = true) {
    const TimePoint before = Clock::now();
    auto standing = membership.keep(lease);
    if (!standing || !standing->owns()) return standing;
    // Counted from before the heartbeat was sent, less a margin for messages on their way to the sinks.
    trust.extend_to(before + lease - lease / 5);
    // A takeover may wait for locks after its heartbeat: then little of the lease is left, and it is renewed again.
    if (again || Clock::now() - before < lease / 3) return standing;
  }
}

LeaseKeeper::LeaseKeeper(store::Membership& membership, std::chrono::milliseconds lease,
                         std::int64_t generation, TrustDeadline& trust, std::function<void()> lost)
    : membership_(membership),
      lease_(lease),
      generation_(generation),
      trust_(trust),
      lost_(std::move(lost)) {
  thread_ = start_thread("ob-lease", [this](const std::stop_token& stop) { run(stop); });
}

std::optional<Error> LeaseKeeper::failure() const {
  const MutexLock lock(mutex_);
  return failure_;
}

void LeaseKeeper::run(const std::stop_token& stop) {
  auto pause = lease_ / 3;
  while (true) {
    {
      const MutexLock lock(mutex_);
      stopped_.wait_for(mutex_, stop, pause, [] { return false; });
    }
    if (stop.stop_requested()) return;
    auto standing = renew(membership_, lease_, trust_);
    if (standing && standing->owns() && standing->generation == generation_) {
      pause = lease_ / 3;
      continue;
    }
    const bool may_yet_work = !standing && standing.error().remedy != Remedy::reconnect &&
                              standing.error().remedy != Remedy::fix;
    if (may_yet_work && trust_.holds(std::chrono::steady_clock::now())) {
      pause = lease_ / 20;
      continue;
    }
    if (standing) trust_.end();
    const MutexLock lock(mutex_);
    failure_ =
        standing ? lease_lost("the lanes were taken over by " + standing->other) : standing.error();
    break;
  }
  lost_();
}

}  // namespace outbox::relay
