// What a subscription's loop reports and logs.
#include <utility>

#include "base/count.hpp"
#include "base/log.hpp"
#include "relay/subscription_loop.hpp"

namespace outbox::relay {
namespace {

constexpr std::chrono::seconds kLogParkedEvery{1};

/// Whether this is a task whose time has not come, so that nothing has failed.
bool is_scheduled(const store::ParkedEvent& event) {
  return event.attempts == 0 && event.error.empty();
}

}  // namespace

/// Why the subscription makes no progress, or is slow; empty if neither holds. After a failure only
/// an ack or an empty window proves that the sink works; opening it again does not.
std::string SubscriptionLoop::trouble() const {
  const SinkState& sink = sink_state_;
  if (sink.mode() == Mode::rejected) return sink.rejection()->error.text();
  if (!replay_ && row_.spec.on_reject == OnReject::park && gate_.live() >= row_.spec.max_waiting)
    return count("event", gate_.live(), "is", "are") +
           " parked, no new ones are delivered until there are fewer than " +
           std::to_string(row_.spec.max_waiting) + " (max_waiting)";
  const bool works = sink.mode() == Mode::delivering && window_.events() == 0;
  if (sink.failures() > 0 && !works) return sink.last_failure().text();
  if (!trial_.on()) return {};
  return std::string(store::kOnTrial) +
         "relays died here, and growing numbers of events are sent to find one that kills them: " +
         std::to_string(trial_.passed()) + " of at most " + std::to_string(trial_.most()) +
         " have been sent";
}

void SubscriptionLoop::log_changes() {
  const Mode mode = sink_state_.mode();
  const TimePoint now = std::chrono::steady_clock::now();
  if (mode == Mode::backing_off && sink_state_.pause_until() != logged_pause_) {
    logged_pause_ = sink_state_.pause_until();
    const std::string reason = sink_state_.last_failure().text();
    if (const auto repeats = outage_.failed(reason, now)) {
      log::warn("cannot deliver, retries", {{"subscription", row_.spec.name},
                                            {"retry_in_seconds", in_seconds(*logged_pause_ - now)},
                                            {"repeats", *repeats},
                                            {"reason", reason}});
    }
  } else if (mode == Mode::delivering && trouble().empty()) {
    if (const auto over = outage_.works(now)) log_recovery(*over);
  } else if (mode == Mode::rejected && !reported_rejection_) {
    const Rejection& rejection = *sink_state_.rejection();
    log::error("an event was rejected, the subscription stops",
               {{"subscription", row_.spec.name},
                {"seq", rejection.seq},
                {"event", rejection.id.str()},
                {"reason", rejection.error.text()}});
  }
}

/// Logs at most one line a second for events that are not dead, because a broken writer may produce
/// thousands.
void SubscriptionLoop::log_parked(const std::vector<store::ParkedEvent>& parked) {
  const store::ParkedEvent* newest = nullptr;
  for (const auto& event : parked) {
    if (event.state == store::ParkedState::dead) {
      log_dead(event.seq, event.id, event.attempts, event.error);
    } else if (event.state == store::ParkedState::retrying && !is_scheduled(event)) {
      ++parked_unlogged_;
      newest = &event;
    }
  }
  const TimePoint now = std::chrono::steady_clock::now();
  if (newest == nullptr || now < log_parked_at_) return;
  log::warn("events are parked", {{"subscription", row_.spec.name},
                                  {"events", std::exchange(parked_unlogged_, 0)},
                                  {"seq", newest->seq},
                                  {"reason", newest->error}});
  log_parked_at_ = now + kLogParkedEvery;
}

void SubscriptionLoop::log_skipped(const store::ReplayProgress& progress) {
  parked_unlogged_ += progress.skips.size();
  const TimePoint now = std::chrono::steady_clock::now();
  if (progress.skips.empty() || now < log_parked_at_) return;
  const store::ReplaySkip& first = progress.skips.front();
  log::warn("the replay skips rejected events, and what follows of their keys",
            {{"subscription", row_.spec.name},
             {"replay", progress.replay},
             {"events", std::exchange(parked_unlogged_, 0)},
             {"seq", first.seq},
             {"reason", first.error}});
  log_parked_at_ = now + kLogParkedEvery;
}

void SubscriptionLoop::log_dead(std::int64_t seq, const EventId& id, std::size_t attempts,
                                const std::string& error) {
  log::error("an event is dead: it is not sent again until a person decides",
             {{"subscription", row_.spec.name},
              {"seq", seq},
              {"event", id.str()},
              {"attempts", attempts},
              {"reason", error}});
}

/// If failures() is 0, an event was acked; otherwise the sink was opened and there was nothing to
/// send.
void SubscriptionLoop::log_recovery(const Outage::Over& over) {
  const log::Fields fields{{"subscription", row_.spec.name},
                           {"down_seconds", in_seconds(over.lasted)},
                           {"failures", over.failures}};
  if (sink_state_.failures() == 0) {
    log::info("delivers again", fields);
  } else {
    log::info("the sink is open again, nothing is pending", fields);
  }
}

void SubscriptionLoop::publish_state() {
  log_changes();
  std::uint64_t acked = 0;
  std::uint64_t filtered = 0;
  std::uint64_t parked = 0;
  for (const auto& strand : strands_) {
    acked += strand->core.acked();
    filtered += strand->core.filtered();
    parked += strand->core.parked();
  }
  {
    const MutexLock lock(box_->mutex);
    SubscriptionReport& report = box_->report;
    report.state = replay_ ? "replaying" : to_string(sink_state_.mode());
    report.reason = trouble();
    report.delivered = acked;
    report.filtered = filtered;
    report.parked = parked;
    report.in_window = window_.events();
    report.settlements = settlements_;
    if (sink_state_.mode() == Mode::rejected) box_->rejection = sink_state_.rejection();
  }
  if (sink_state_.mode() != Mode::rejected || std::exchange(reported_rejection_, true)) return;
  const MutexLock lock(links_mutex_);
  if (links_) links_->listener.rejected();
}

}  // namespace outbox::relay
