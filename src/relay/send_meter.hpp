// Measures what became of the sends of a loop, and how long they took. The cores tell it; it
// decides nothing. Pure.
//
// Threads: that of the loop.
#pragma once

#include <chrono>
#include <optional>
#include <outbox/relay.hpp>
#include <utility>

#include "relay/trust_deadline.hpp"

namespace outbox::relay {

class SendMeter {
 public:
  /// `now` and `wall` are one moment by both clocks.
  void tell_time(TimePoint now, Timestamp wall) {
    now_ = now;
    wall_ = wall;
  }
  /// The time has come to `now`.
  void come_to(TimePoint now) {
    wall_ += std::chrono::duration_cast<Timestamp::duration>(now - now_);
    now_ = now;
  }
  [[nodiscard]] TimePoint now() const { return now_; }
  /// An event has its outcome. A replay has no latency: its events are as old as people want.
  void ended(Outcome::Kind kind, const EventView& event, std::chrono::nanoseconds took,
             bool counts_latency);
  /// A send has its outcome whose event was set aside before.
  void ended_late(Outcome::Kind kind) {
    has_measured_ = true;
    ++totals_.outcomes[static_cast<std::size_t>(kind)];
  }
  void page_settled(TimePoint read_at) {
    has_measured_ = true;
    totals_.batch.add(now_ - read_at);
  }
  void reconnected() {
    has_measured_ = true;
    ++totals_.reconnects;
  }

  /// What was measured since the last call, if anything was.
  [[nodiscard]] std::optional<SendTotals> take() {
    if (!std::exchange(has_measured_, false)) return {};
    return std::exchange(totals_, {});
  }

 private:
  TimePoint now_{};
  Timestamp wall_{};
  SendTotals totals_;
  bool has_measured_{false};
};

}  // namespace outbox::relay
