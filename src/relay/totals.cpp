#include "relay/totals.hpp"

namespace outbox {

const char* to_string(ParkReason reason) noexcept {
  switch (reason) {
    case ParkReason::rejected: return "rejected";
    case ParkReason::failing: return "failing";
    case ParkReason::slow: return "slow";
    case ParkReason::culprit: return "culprit";
    case ParkReason::behind: return "behind";
    case ParkReason::postponed: return "postponed";
  }
  return "?";
}

SubscriptionTotals& SubscriptionTotals::operator+=(const SubscriptionTotals& more) {
  name = more.name;
  sink = more.sink;
  delivered += more.delivered;
  filtered += more.filtered;
  parked += more.parked;
  dead += more.dead;
  for (std::size_t i = 0; i < parked_for.size(); ++i) parked_for[i] += more.parked_for[i];
  sends += more.sends;
  return *this;
}

namespace relay {

void Totals::add(const store::ProgressBatch& batch) {
  const MutexLock lock(mutex_);
  for (const store::Settlement& row : batch.settlements) {
    SubscriptionTotals& totals = subscriptions_[row.subscription];
    totals.delivered += static_cast<std::uint64_t>(row.acked.count);
    totals.filtered += static_cast<std::uint64_t>(row.filtered.count);
    totals.parked += static_cast<std::uint64_t>(row.parked.count);
  }
  for (const store::ReplayProgress& replay : batch.replays)
    subscriptions_[replay.subscription].delivered += static_cast<std::uint64_t>(replay.sent);
  for (const store::ParkedEvent& event : batch.parked) {
    SubscriptionTotals& totals = subscriptions_[event.subscription];
    ++totals.parked_for[static_cast<std::size_t>(event.reason)];
    if (event.state == store::ParkedState::dead) ++totals.dead;
  }
  for (const store::RetryResult& result : batch.results) {
    SubscriptionTotals& totals = subscriptions_[result.subscription];
    if (!result.state) ++totals.delivered;
    if (result.state == store::ParkedState::dead) ++totals.dead;
  }
}

Totals::Settled Totals::settled() const {
  const MutexLock lock(mutex_);
  Settled all;
  for (const auto& [id, one] : subscriptions_) {
    all.delivered += one.delivered;
    all.filtered += one.filtered;
    all.parked += one.parked;
    all.dead += one.dead;
  }
  return all;
}

std::vector<SubscriptionTotals> Totals::by_name() const {
  std::map<std::string, SubscriptionTotals> all;
  {
    const MutexLock lock(mutex_);
    for (const auto& [id, one] : subscriptions_) {
      if (!one.name.empty()) all[one.name] += one;
    }
  }
  std::vector<SubscriptionTotals> found;
  found.reserve(all.size());
  for (auto& [name, totals] : all) found.push_back(std::move(totals));
  return found;
}

}  // namespace relay
}  // namespace outbox
