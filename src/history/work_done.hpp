// What a relay or worker has done between two of its reports, for the history
// (docs/design/history.md). Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <outbox/relay.hpp>
#include <string>
#include <vector>

#include "store/work_history.hpp"

namespace outbox::history {

/// The figures of a subscription, or of a type of task under the subscription of its queue. The id
/// and what is pending are not set: the store knows them.
struct WorkDone {
  std::string subscription;
  store::HistoryRow row{};

  [[nodiscard]] bool any() const noexcept {
    return row.delivered + row.failed + row.parked + row.dead > 0 || !row.latency.empty();
  }
};

/// What was done between the reports, of each subscription and type, also where that is nothing.
/// The totals of a subscription that was renamed go on under its new name.
[[nodiscard]] std::vector<WorkDone> work_done(const RelayReport& before, const RelayReport& now);

/// Whether events may wait for the relay of this report. If not, nobody needs to ask the store.
[[nodiscard]] bool may_have_pending(const RelayReport& report);
/// Whether the relay of this report delivers the subscription.
[[nodiscard]] bool serves_subscription(const RelayReport& report, const std::string& subscription);

/// The beginning of the interval to which the time of this length belongs that ends at `now_us`:
/// the one that has its middle. A time that is longer than an interval belongs to the last one.
[[nodiscard]] std::int64_t interval_begin(std::int64_t now_us, std::chrono::microseconds length,
                                          std::chrono::microseconds interval);

}  // namespace outbox::history
