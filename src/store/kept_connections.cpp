#include "store/kept_connections.hpp"

#include <algorithm>
#include <utility>

#include "base/steady.hpp"
#include "base/thread.hpp"

namespace outbox::store {
namespace {

thread_local KeptConnections* used_by_thread = nullptr;

}  // namespace

KeptConnections::Use::Use(KeptConnections& kept) { used_by_thread = &kept; }
KeptConnections::Use::~Use() { used_by_thread = nullptr; }

KeptConnections* KeptConnections::of_thread() { return used_by_thread; }

KeptConnections::KeptConnections(std::chrono::seconds idle, std::chrono::seconds age)
    : idle_(idle),
      age_(age),
      closer_(start_thread("ob-kept", [this](const std::stop_token& stop) { close_idle(stop); })) {}

KeptConnections::Taken KeptConnections::take(const std::string& address) {
  const MutexLock lock(mutex_);
  for (auto at = kept_.rbegin(); at != kept_.rend(); ++at) {
    if (at->address != address) continue;
    Taken taken = std::move(at->taken);
    kept_.erase(std::next(at).base());
    return taken;
  }
  return {};
}

void KeptConnections::give(const std::string& address, Taken taken) {
  const Time now = now_steady();
  if (now - taken.opened > age_) return;
  {
    const MutexLock lock(mutex_);
    if (kept_.size() >= kMost) return;
    kept_.push_back({.address = address, .taken = std::move(taken), .since = now});
  }
  changed_.notify_one();
}

void KeptConnections::close_idle(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    std::vector<Kept> closed;  // Closing takes a while, and nobody waits for it.
    const MutexLock lock(mutex_);
    if (!changed_.wait(mutex_, stop, [this]() OUTBOX_REQUIRES(mutex_) { return !kept_.empty(); }))
      return;
    (void)changed_.wait_until(mutex_, stop, kept_.front().since + idle_,
                              []() OUTBOX_REQUIRES(mutex_) { return false; });
    const auto first_young = std::find_if(
        kept_.begin(), kept_.end(),
        [now = now_steady(), this](const Kept& one) { return now - one.since < idle_; });
    closed.assign(std::make_move_iterator(kept_.begin()), std::make_move_iterator(first_young));
    kept_.erase(kept_.begin(), first_young);
  }
}

}  // namespace outbox::store
