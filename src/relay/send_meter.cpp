#include "relay/send_meter.hpp"

#include <algorithm>
#include <string>

namespace outbox {
namespace {

/// Adds to the count of this type, or of "other" if there are too many types.
void add_failures(SendTotals& totals, std::string_view type, std::uint64_t failures) {
  auto found = totals.failures.find(type);
  if (found == totals.failures.end()) {
    const bool fits = totals.failures.size() < SendTotals::kMostTypes;
    found = totals.failures.try_emplace(fits ? std::string(type) : "other").first;
  }
  found->second += failures;
}

}  // namespace

SendTotals& SendTotals::operator+=(const SendTotals& more) {
  for (std::size_t i = 0; i < outcomes.size(); ++i) outcomes[i] += more.outcomes[i];
  for (const auto& [type, count] : more.failures) add_failures(*this, type, count);
  reconnects += more.reconnects;
  last_delivery = std::max(last_delivery, more.last_delivery);
  latency += more.latency;
  send += more.send;
  batch += more.batch;
  return *this;
}

namespace relay {

void SendMeter::ended(Outcome::Kind kind, const EventView& event, std::chrono::nanoseconds took,
                      bool counts_latency) {
  ended_late(kind);
  totals_.send.add(took);
  if (kind == Outcome::Kind::acked) {
    totals_.last_delivery = wall_;
    // The clock of the store may be ahead of this one.
    if (counts_latency)
      totals_.latency.add(std::max(wall_ - event.created_at, Timestamp::duration(0)));
  } else if (kind != Outcome::Kind::postponed) {
    add_failures(totals_, event.event_type, 1);
  }
}

}  // namespace relay
}  // namespace outbox
