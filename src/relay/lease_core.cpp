#include "relay/lease_core.hpp"

#include <utility>

#include "base/error.hpp"

namespace outbox::relay {
namespace {

/// Whether the same connection may yet renew the lease.
bool may_yet_work(const Error& error) {
  return error.remedy != Remedy::reconnect && error.remedy != Remedy::fix;
}

}  // namespace

Error lease_lost(std::string message) {
  return fail(Errc::lease_lost, Remedy::retry_call, std::move(message)).value();
}

TimePoint trusted_until(TimePoint sent, std::chrono::milliseconds lease) {
  return sent + lease - lease / 5;
}

void LeaseCore::answered(const Result<bool>& kept, TimePoint sent, TimePoint now) {
  if (!kept) {
    if (may_yet_work(kept.error()) && trust_.holds(now))
      next_at_ = now + lease_ / 20;
    else
      failure_ = kept.error();
    return;
  }
  if (!*kept) {
    trust_.end();
    failure_ = lease_lost("another relay took this one for dead and has its lanes now");
    return;
  }
  trust_.extend_to(trusted_until(sent, lease_));
  next_at_ = now + lease_ / 3;
}

}  // namespace outbox::relay
