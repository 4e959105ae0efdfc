#include "relay/sink_state.hpp"

#include <algorithm>
#include <limits>
#include <string>

#include "base/count.hpp"

namespace outbox::relay {
namespace {

/// After so many rejected events in a row, with no ack in between, the destination is suspected.
constexpr int kManyRejected = 16;
/// After so many failed events in a row, with no ack in between, the sink pauses.
constexpr int kManyFailed = 16;
/// After so many pauses without an ack the sink is used carefully, because one event may be what
/// stops all others.
constexpr int kCarefulAfter = 2;
constexpr std::size_t kMostCareful = 1024;

}  // namespace

const char* to_string(Mode mode) noexcept {
  switch (mode) {
    case Mode::delivering: return "delivering";
    case Mode::draining: return "draining";
    case Mode::backing_off: return "backing-off";
    case Mode::reopening: return "opening";
    case Mode::rejected: return "stopped";
    case Mode::stopping: return "stopping";
  }
  return "stopping";
}

void SinkState::acked(TimePoint now) {
  ++accepted_;
  rejected_in_a_row_ = fresh_in_a_row_ = failed_runs_ = 0;
  neighbours_.acked();
  if (mode_ == Mode::delivering) failures_ = 0;
  outcome_came(now);
  if (in_flight_ > 0 || careful_limit_ == 0) return;
  careful_limit_ *= 2;
  if (careful_limit_ > kMostCareful) careful_limit_ = 0;
}

void SinkState::rejected(const Outcome& outcome, const EventView& event, bool gapless,
                         TimePoint now) {
  if (++rejected_in_a_row_ >= kManyRejected) suspect(outcome, event);
  if (gapless) stopped_by_event();
  outcome_came(now);
}

void SinkState::retry_failed(bool gapless, TimePoint now) {
  if (gapless) stopped_by_event();
  outcome_came(now);
}

void SinkState::stopped_by_event() {
  stopped_by_event_ = true;
  fills_gaps_ = false;
  if (mode_ == Mode::delivering) mode_ = Mode::draining;
}

/// So many events of different keys were rejected that more likely the destination refuses
/// everything.
void SinkState::suspect(const Outcome& outcome, const EventView& event) {
  rejected_in_a_row_ = 0;
  at_fault_ = true;
  ++suspicions_;
  ++failures_;
  last_failure_ = outcome.error;
  last_failure_.message =
      "the destination rejected " + std::to_string(kManyRejected) +
      " events of different keys in a row and accepted none, the last one seq " +
      std::to_string(event.seq) + ": " + outcome.error.message;
  if (mode_ == Mode::delivering) mode_ = Mode::draining;
}

Doubt SinkState::doubted(const Outcome& outcome, const EventView& event, Failure failure,
                         TimePoint now) {
  const bool after_ack = neighbours_.last_was_ack();
  Doubt doubt = neighbours_.doubted(failure.suspect);
  note(outcome, event);
  if (!failure.suspect && ++fresh_in_a_row_ >= kManyFailed) give_up();
  const bool last = in_flight_ == 1;
  if (failure.gapless || (last && !after_ack)) {
    // A suspect's failure says nothing about the destination, but the connection may have failed.
    failure.suspect ? stopped_by_event() : give_up();
  }
  outcome_came(now);
  return doubt;
}

void SinkState::late(const Outcome& outcome, const EventView& event, TimePoint now) {
  switch (outcome.kind) {
    case Outcome::Kind::acked: return acked(now);
    case Outcome::Kind::postponed:
    case Outcome::Kind::rejected: return retry_failed(false, now);
    case Outcome::Kind::blocked: return failed(outcome, event, now);
    case Outcome::Kind::retry:
    case Outcome::Kind::unknown: (void)doubted(outcome, event, {}, now);
  }
}

void SinkState::give_up() {
  if (mode_ != Mode::delivering) return;
  at_fault_ = true;
  mode_ = Mode::draining;
  ++failures_;
  ++failed_runs_;
}

void SinkState::suspect_slow(std::size_t keys, TimePoint now) {
  if (mode_ != Mode::delivering) return;
  last_failure_ = Error{};
  last_failure_.code = Errc::unavailable;
  last_failure_.message = "the destination takes long for " + count("key", keys) +
                          " at once, while others are delivered";
  give_up();
  if (in_flight_ == 0) enter_pause(now);
}

void SinkState::be_careful() {
  if (careful_limit_ == 0) careful_limit_ = kMostCareful;
}

std::size_t SinkState::batch_limit() const {
  if (careful_limit_ == 0) return std::numeric_limits<std::size_t>::max();
  return in_flight_ == 0 ? careful_limit_ : 0;
}

void SinkState::failed(const Outcome& outcome, const EventView& event, TimePoint now) {
  neighbours_.failed();
  note(outcome, event);
  if (outcome.kind == Outcome::Kind::blocked) at_fault_ = true;
  fills_gaps_ = false;  // after a failure a stop sends nothing more
  if (mode_ == Mode::delivering) {
    mode_ = Mode::draining;
    ++failures_;
    if (outcome.kind != Outcome::Kind::blocked) ++failed_runs_;
  }
  outcome_came(now);
}

void SinkState::note(const Outcome& outcome, const EventView& event) {
  if (outcome.kind == Outcome::Kind::rejected) {
    if (!rejection_ || event.seq < rejection_->seq)
      rejection_ = Rejection{.seq = event.seq, .id = event.id, .error = outcome.error};
  } else if (mode_ == Mode::delivering || last_failure_.message.empty()) {
    last_failure_ = outcome.error;
  }
  if (outcome.retry_after)
    requested_pause_ = std::max(requested_pause_.value_or(Duration::zero()), *outcome.retry_after);
}

void SinkState::outcome_came(TimePoint now) {
  --in_flight_;
  if (in_flight_ == 0 && mode_ == Mode::draining) enter_pause(now);
}

void SinkState::enter_pause(TimePoint now) {
  if (rejection_) {
    mode_ = Mode::rejected;
    return;
  }
  if (stopped_by_event_ && !at_fault_) {
    // The destination answered, or one event failed alone. The events that came back with it were
    // merely not sent.
    failures_ = 0;
    mode_ = Mode::reopening;
    return;
  }
  mode_ = Mode::backing_off;
  pause_until_ = now + std::max(backoff(backoff_, failures_, seed_),
                                requested_pause_.value_or(Duration::zero()));
  requested_pause_.reset();
}

bool SinkState::wants_open(TimePoint now) {
  if (mode_ == Mode::backing_off && pause_until_ && now >= *pause_until_) mode_ = Mode::reopening;
  return mode_ == Mode::reopening;
}

void SinkState::opened(const Status& status, TimePoint now) {
  if (mode_ != Mode::reopening) return;
  if (!status) {
    last_failure_ = status.error();
    ++failures_;
    enter_pause(now);
    return;
  }
  mode_ = Mode::delivering;
  stopped_by_event_ = at_fault_ = false;
  fresh_in_a_row_ = 0;
  if (careful_limit_ != 0 || failed_runs_ >= kCarefulAfter) careful_limit_ = 1;
  ++openings_;
  pause_until_.reset();
}

void SinkState::stop_requested(bool fill_gaps) {
  if (!fill_gaps) fills_gaps_ = false;
  if (fill_gaps && mode_ == Mode::delivering) fills_gaps_ = true;
  mode_ = Mode::stopping;
}

}  // namespace outbox::relay
