// What a relay has settled. It is counted when it is written, so that a report says the same as the
// ledger even after a connection was lost.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/mutex.hpp"
#include "store/delivery.hpp"

namespace outbox::relay {

/// Any thread may use it.
class SettledCounts {
 public:
  struct Counts {
    std::uint64_t delivered{0};
    std::uint64_t filtered{0};
    std::uint64_t parked{0};
    std::uint64_t dead{0};

    Counts& operator+=(const Counts& more) {
      delivered += more.delivered;
      filtered += more.filtered;
      parked += more.parked;
      dead += more.dead;
      return *this;
    }
    Counts operator-(const Counts& before) const {
      return {.delivered = delivered - before.delivered,
              .filtered = filtered - before.filtered,
              .parked = parked - before.parked,
              .dead = dead - before.dead};
    }
  };

  /// The subscription has this name now, and is reported although nothing was counted yet.
  void name(std::int32_t subscription, const std::string& name) {
    const MutexLock lock(mutex_);
    subscriptions_[subscription].name = name;
  }
  /// Counts a batch that was written.
  void add(const store::ProgressBatch& batch) {
    const MutexLock lock(mutex_);
    for (const store::Settlement& row : batch.settlements) {
      Counts& counts = subscriptions_[row.subscription].counts;
      counts.delivered += static_cast<std::uint64_t>(row.acked.count);
      counts.filtered += static_cast<std::uint64_t>(row.filtered.count);
      counts.parked += static_cast<std::uint64_t>(row.parked.count);
    }
    for (const store::ReplayProgress& replay : batch.replays)
      subscriptions_[replay.subscription].counts.delivered +=
          static_cast<std::uint64_t>(replay.sent);
    for (const store::ParkedEvent& event : batch.parked) {
      if (event.state == store::ParkedState::dead) ++subscriptions_[event.subscription].counts.dead;
    }
    for (const store::RetryResult& result : batch.results) {
      Counts& counts = subscriptions_[result.subscription].counts;
      if (!result.state) ++counts.delivered;
      if (result.state == store::ParkedState::dead) ++counts.dead;
    }
  }

  /// Returns the sums of all subscriptions.
  [[nodiscard]] Counts now() const {
    const MutexLock lock(mutex_);
    Counts all;
    for (const auto& [id, one] : subscriptions_) all += one.counts;
    return all;
  }
  /// Returns the counts of each subscription that has a name. Subscriptions that had the same name
  /// one after the other are added up.
  [[nodiscard]] std::map<std::string, Counts> by_name() const {
    const MutexLock lock(mutex_);
    std::map<std::string, Counts> all;
    for (const auto& [id, one] : subscriptions_) {
      if (!one.name.empty()) all[one.name] += one.counts;
    }
    return all;
  }

 private:
  struct Named {
    std::string name{};
    Counts counts{};
  };

  mutable Mutex mutex_;
  std::map<std::int32_t, Named> subscriptions_ OUTBOX_GUARDED_BY(mutex_);
};

}  // namespace outbox::relay
