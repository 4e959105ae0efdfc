// What a relay has settled. It is counted when it is written, so that a report says the same as the
// ledger even after a connection was lost.
#pragma once

#include <algorithm>
#include <cstdint>

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

    Counts operator-(const Counts& before) const {
      return {.delivered = delivered - before.delivered,
              .filtered = filtered - before.filtered,
              .parked = parked - before.parked,
              .dead = dead - before.dead};
    }
  };

  /// Counts a batch that was written.
  void add(const store::ProgressBatch& batch) {
    const auto is_dead = [](const auto& row) { return row.state == store::ParkedState::dead; };
    const auto is_delivered = [](const store::RetryResult& result) { return !result.state; };
    const MutexLock lock(mutex_);
    for (const store::Settlement& row : batch.settlements) {
      counts_.delivered += static_cast<std::uint64_t>(row.acked.count);
      counts_.filtered += static_cast<std::uint64_t>(row.filtered.count);
      counts_.parked += static_cast<std::uint64_t>(row.parked.count);
    }
    for (const store::ReplayProgress& replay : batch.replays)
      counts_.delivered += static_cast<std::uint64_t>(replay.sent);
    counts_.delivered += number_of(batch.results, is_delivered);
    counts_.dead += number_of(batch.parked, is_dead) + number_of(batch.results, is_dead);
  }

  [[nodiscard]] Counts now() const {
    const MutexLock lock(mutex_);
    return counts_;
  }

 private:
  template <class Rows, class Is>
  static std::uint64_t number_of(const Rows& rows, Is is) {
    return static_cast<std::uint64_t>(std::count_if(rows.begin(), rows.end(), is));
  }

  mutable Mutex mutex_;
  Counts counts_ OUTBOX_GUARDED_BY(mutex_);
};

}  // namespace outbox::relay
