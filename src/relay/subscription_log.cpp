// What a subscription's loop reports and logs.
#include <utility>

#include "base/count.hpp"
#include "base/log.hpp"
#include "relay/subscription_loop.hpp"
#include "sink/inspection.hpp"

namespace outbox::relay {
namespace {

constexpr std::chrono::seconds kLogParkedEvery{1};

/// A task whose time has not come: nothing has failed.
bool is_scheduled(const store::ParkedEvent& event) {
  return event.attempts == 0 && event.error.empty();
}

}  // namespace

/// Why it makes no progress, or is slow. After a failure, opening the sink again is no proof that
/// it works: an ack is, or an empty window.
std::string SubscriptionLoop::trouble() const {
  const SubscriptionSpec& spec = core_.row().spec;
  const SinkState& sink = core_.sink_state();
  const TrialGate& trial = core_.trial();
  const std::size_t live = core_.gate().live();
  if (sink.mode() == Mode::rejected) return sink.rejection()->error.text();
  if (!core_.replay() && spec.on_reject == OnReject::park && live >= spec.max_waiting)
    return count("event", live, "is", "are") +
           " parked, no new ones are delivered until there are fewer than " +
           std::to_string(spec.max_waiting) + " (max_waiting)";
  const bool works = sink.mode() == Mode::delivering && core_.window().events() == 0;
  if (sink.failures() > 0 && !works) return sink.last_failure().text();
  if (!trial.on()) return {};
  return std::string(store::kOnTrial) +
         "relays died here, and growing numbers of events are sent to find one that kills them: " +
         std::to_string(trial.passed()) + " of at most " + std::to_string(trial.most()) +
         " have been sent";
}

void SubscriptionLoop::log_changes() {
  const SinkState& sink = core_.sink_state();
  const Mode mode = sink.mode();
  const TimePoint now = std::chrono::steady_clock::now();
  if (mode == Mode::backing_off && sink.pause_until() != logged_pause_) {
    logged_pause_ = sink.pause_until();
    const std::string reason = sink.last_failure().text();
    if (const auto repeats = outage_.failed(reason, now)) {
      log::warn("cannot deliver, retries", {{"subscription", core_.row().spec.name},
                                            {"retry_in_seconds", in_seconds(*logged_pause_ - now)},
                                            {"repeats", *repeats},
                                            {"reason", reason}});
    }
  } else if (mode == Mode::delivering && trouble().empty()) {
    if (const auto over = outage_.works(now)) log_recovery(*over);
  } else if (mode == Mode::rejected && !reported_rejection_) {
    log_rejection(*sink.rejection());
  }
}

void SubscriptionLoop::log_rejection(const Rejection& rejection) {
  // The fields only refer to their texts.
  const std::string event = rejection.id.str();
  const std::string reason = rejection.error.text();
  const log::Fields fields{{"subscription", core_.row().spec.name},
                           {"seq", rejection.seq},
                           {"event", event},
                           {"reason", reason}};
  if (core_.replay()) {
    log::error("an event was rejected, the replay stops and live delivery goes on", fields);
  } else {
    log::error("an event was rejected, the subscription stops", fields);
  }
}

void SubscriptionLoop::log_work(const ProgressWork& work) {
  log_parked(work.parked);
  for (const auto& progress : work.replays) log_skipped(progress);
  for (const auto& result : work.results) {
    if (result.state == store::ParkedState::dead)
      log_dead(result.seq, result.id, result.attempts, result.error);
  }
}

/// One line a second at most: a broken writer may produce thousands.
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
  log::warn("events are parked", {{"subscription", core_.row().spec.name},
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
            {{"subscription", core_.row().spec.name},
             {"replay", progress.replay},
             {"events", std::exchange(parked_unlogged_, 0)},
             {"seq", first.seq},
             {"reason", first.error}});
  log_parked_at_ = now + kLogParkedEvery;
}

void SubscriptionLoop::log_dead(std::int64_t seq, const EventId& id, std::size_t attempts,
                                const std::string& error) {
  log::error("an event is dead: it is not sent again until a person decides",
             {{"subscription", core_.row().spec.name},
              {"seq", seq},
              {"event", id.str()},
              {"attempts", attempts},
              {"reason", error}});
}

/// Without failures() an event was acked; otherwise the sink was opened and there was nothing to
/// send.
void SubscriptionLoop::log_recovery(const Outage::Over& over) {
  const log::Fields fields{{"subscription", core_.row().spec.name},
                           {"down_seconds", in_seconds(over.lasted)},
                           {"failures", over.failures}};
  if (core_.sink_state().failures() == 0) {
    log::info("delivers again", fields);
  } else {
    log::info("the sink is open again, nothing is pending", fields);
  }
}

void SubscriptionLoop::log_trial_over(std::size_t tried) {
  log::info("the trial is over, events are sent as always",
            {{"subscription", core_.row().spec.name}, {"tried", tried}});
}

void SubscriptionLoop::culprit_found(const EventView& event, std::size_t deaths) {
  log::error("an event that kills the relay was found and is parked",
             {{"subscription", core_.row().spec.name},
              {"seq", event.seq},
              {"event", event.id.str()},
              {"deaths", deaths}});
}

void SubscriptionLoop::publish_state() {
  log_changes();
  look_at_transport();
  const SinkState& sink = core_.sink_state();
  const LoopCore::Counts counts = core_.counts();
  const bool is_rejected = sink.mode() == Mode::rejected;
  {
    const MutexLock lock(box_->mutex);
    SubscriptionReport& report = box_->report;
    report.state = core_.replay() ? "replaying" : to_string(sink.mode());
    report.reason = trouble();
    report.delivered = counts.acked;
    report.filtered = counts.filtered;
    report.parked = counts.parked;
    report.in_window = core_.window().events();
    report.window_bytes = core_.window().bytes();
    report.in_flight = sink.in_flight();
    report.insecure = insecure_;
    report.settlements = counts.settlements;
    box_->could_merge = core_.could_merge();
    if (is_rejected) box_->rejection = sink.rejection();
  }
  if (!is_rejected || std::exchange(reported_rejection_, true)) return;
  const MutexLock lock(links_mutex_);
  if (links_) links_->listener.rejected();
}

/// What a sink has found at its destination changes only when it is opened.
void SubscriptionLoop::look_at_transport() {
  const std::uint64_t openings = core_.sink_state().openings();
  if (std::exchange(looked_at_opening_, openings) == openings) return;
  const auto* const network = dynamic_cast<const sink::OverNetwork*>(sink_.get());
  insecure_ = network != nullptr && network->is_insecure();
}

void SubscriptionLoop::publish_measured(TimePoint now) {
  measured_at_ = now;
  const auto sends = core_.take_measured();
  const MutexLock lock(links_mutex_);
  if (sends && links_ && links_->listener.measured) links_->listener.measured(*sends);
}

}  // namespace outbox::relay
