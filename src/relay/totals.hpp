// What a relay has done to its subscriptions. What is settled is counted when it is written, so
// that a report says the same as the ledger even after a connection was lost.
#pragma once

#include <cstdint>
#include <map>
#include <outbox/relay.hpp>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "feed/pump.hpp"
#include "store/delivery.hpp"

namespace outbox::relay {

/// Any thread may use it.
class Totals {
 public:
  /// The subscription has this name and sink now, and is reported although nothing was counted yet.
  void name(std::int32_t subscription, const std::string& name, const std::string& sink) {
    const MutexLock lock(mutex_);
    SubscriptionTotals& totals = subscriptions_[subscription];
    totals.name = name;
    totals.sink = sink;
  }
  /// Counts a batch that was written.
  void add(const store::ProgressBatch& batch);
  void add(std::int32_t subscription, const SendTotals& sends) {
    const MutexLock lock(mutex_);
    subscriptions_[subscription].sends += sends;
  }

  [[nodiscard]] feed::Wakeups& wakeups() { return wakeups_; }
  [[nodiscard]] const feed::Wakeups& wakeups() const { return wakeups_; }

  /// What was settled of all subscriptions together, and what was parked and is dead.
  struct Settled {
    std::uint64_t delivered{0};
    std::uint64_t filtered{0};
    std::uint64_t parked{0};
    std::uint64_t dead{0};

    Settled operator-(const Settled& before) const {
      return {.delivered = delivered - before.delivered,
              .filtered = filtered - before.filtered,
              .parked = parked - before.parked,
              .dead = dead - before.dead};
    }
  };
  [[nodiscard]] Settled settled() const;
  /// The totals of each subscription that has a name. Subscriptions that had the same name one
  /// after the other are added up.
  [[nodiscard]] std::vector<SubscriptionTotals> by_name() const;

 private:
  feed::Wakeups wakeups_;
  mutable Mutex mutex_;
  std::map<std::int32_t, SubscriptionTotals> subscriptions_ OUTBOX_GUARDED_BY(mutex_);
};

}  // namespace outbox::relay
