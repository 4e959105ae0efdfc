// How a loop sends: retries and strands in turn, on trial or not, no more than the rate allows.
#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "relay/loop_core.hpp"

namespace outbox::relay {
namespace {

/// After this many batches a step ends, so that pages and settlements are taken.
constexpr int kMostBatches = 16;

}  // namespace

void LoopCore::send_what_may_go(TimePoint now) {
  send_stalled_ = trial_waits_ = sends_more_ = false;
  rate_wait_.reset();
  const std::size_t sources = strands_.size() + 1;
  for (int batch = 0; batch < kMostBatches; ++batch) {
    const std::size_t first = trial_.turn();
    bool sent = false;
    for (std::size_t i = 0; i < sources; ++i) {
      const std::size_t source = (first + i) % sources;
      const bool here =
          source == TrialGate::kRetries ? send_retries(now) : send_batch(source - 1, now);
      sent = here || sent;
      if (send_stalled_) return;
    }
    if (!sent) return;
  }
  sends_more_ = true;
}

bool LoopCore::send_batch(std::size_t strand, TimePoint now) {
  DeliveryCore& core = strands_[strand]->core;
  auto sends = core.to_send(now);
  if (sends.empty() || rate_allows(now) == 0) return false;
  const std::size_t room = may_go(strand + 1, strands_[strand]->lanes(), sends);
  if (const std::size_t deaths = std::exchange(culprit_deaths_, 0); deaths > 0) {
    core.refuse(deaths, describe_death(*sends.front().event, deaths), now);
    return true;
  }
  sends = sends.first(room);
  if (sends.empty() || !ports_.trusted(ports_.now())) return false;
  core.handed_over(hand_over(prefix_of(strand), sends, now));
  for (const Token token : offering_.kept_back()) core.kept_back(token & kTokenMask, now);
  take_outcomes(now);
  settle(now);
  return true;
}

bool LoopCore::send_retries(TimePoint now) {
  auto sends = retries_.to_send(now);
  if (sends.empty() || rate_allows(now) == 0) return false;
  const std::size_t room = may_go(TrialGate::kRetries, store::kAllLanes, sends);
  if (const std::size_t deaths = std::exchange(culprit_deaths_, 0); deaths > 0) {
    retries_.refuse(describe_death(*sends.front().event, deaths), now);
    settle_retries(now);
    return true;
  }
  sends = sends.first(room);
  if (sends.empty() || !ports_.trusted(ports_.now())) return false;
  retries_.handed_over(hand_over(prefix_of(kRetries), sends, now));
  OUTBOX_CHECK(offering_.kept_back().empty());  // of a key one retry at a time
  take_outcomes(now);
  settle_retries(now);
  return true;
}

/// A range is recorded with nothing in flight, before any of it is rendered. The driver waits for
/// the store: this is rare.
std::size_t LoopCore::may_go(std::size_t source, store::LaneMask lanes,
                             std::span<const DeliveryCore::Send> sends) {
  using Kind = TrialGate::Step::Kind;
  if (!trial_.active()) return sends.size();
  const bool rests = sink_state_.in_flight() == 0 && retries_.is_written() &&
                     std::all_of(strands_.begin(), strands_.end(),
                                 [](const auto& strand) { return strand->core.is_written(); });
  const TrialGate::Step step = trial_.next(source, sends, rests);
  if (step.kind == Kind::send) return step.count;
  if (step.kind == Kind::wait) {
    trial_waits_ = true;
    return 0;
  }
  if (step.kind == Kind::record) {
    const std::int64_t seq = sends.front().event->seq;
    const auto dead = ports_.try_range({.lanes = lanes, .events = step.count, .seq = seq});
    if (!dead) return 0;
    if (trial_.recorded(source, seq, *dead)) return may_go(source, lanes, sends);
  }
  end_trial();
  if (step.kind != Kind::culprit) return may_go(source, lanes, sends);
  culprit_deaths_ = step.count;
  return 0;
}

void LoopCore::end_trial() {
  const auto tried = trial_.on() ? std::optional(trial_.passed()) : std::nullopt;
  ports_.end_trial(trial_.end(), tried);
}

/// Also over when the log had no more events: all that the dead relays had in flight has survived.
void LoopCore::watch_trial(TimePoint now) {
  if (!trial_.active() || stop_by_ || sink_state_.in_flight() > 0) return;
  const bool nothing_left = window_.events() == 0 && retries_.is_quiet(now) &&
                            std::all_of(strands_.begin(), strands_.end(),
                                        [](const auto& strand) { return strand->core.saw_end(); });
  if (trial_.on() ? nothing_left : trial_.used_up()) end_trial();
}

Error LoopCore::describe_death(const EventView& event, std::size_t deaths) {
  ports_.culprit_found(event, deaths);
  Error error;
  error.code = Errc::internal;
  error.message = "the relay died " + std::to_string(deaths) + " times while it sent this event";
  return error;
}

std::size_t LoopCore::rate_allows(TimePoint now) {
  if (!rate_) return std::numeric_limits<std::size_t>::max();
  const std::size_t allowed = rate_->allowed(now);
  if (allowed == 0) rate_wait_ = rate_->next();
  return allowed;
}

std::size_t LoopCore::hand_over(Token prefix, std::span<const DeliveryCore::Send> all,
                                TimePoint now) {
  const auto sends = all.first(std::min({all.size(), batch_limit_, rate_allows(now)}));
  buffer_.clear();
  for (const auto& send : sends)
    renderer_.render(prefix | send.token, *send.event, buffer_, send.attempt);
  const std::size_t taken = offering_.offer(buffer_.messages(), outcomes_);
  trial_.sent(taken);
  if (rate_) rate_->sent(taken);
  send_stalled_ = taken < sends.size();
  batch_limit_ =
      send_stalled_ ? std::max<std::size_t>(taken, 1) : std::max(batch_limit_, 2 * sends.size());
  return taken;
}

}  // namespace outbox::relay
