// What other threads ask of a subscription's loop and leave in its mailbox.
#include <algorithm>
#include <set>
#include <utility>

#include "base/log.hpp"
#include "relay/strand.hpp"
#include "relay/subscription_loop.hpp"

namespace outbox::relay {
namespace {

/// How long a stop waits after the grace period for its last calls to the sink: a purge and its
/// outcomes.
constexpr std::chrono::seconds kCallLimit{2};

}  // namespace

void SubscriptionLoop::read_from(feed::Pump& pump) {
  if (!replay_) {
    for (const auto& strand : strands_) pump.add(*strand, strand->lanes(), strand->start());
    return;
  }
  for (const auto& strand : strands_) replay_->feed->add(*strand);
  replay_->feed->start();
}

void SubscriptionLoop::stop_reading(feed::Pump& pump) {
  if (replay_) return replay_->feed->stop();
  for (const auto& strand : strands_) pump.remove(*strand);
}

void SubscriptionLoop::Mailbox::ring() {
  {
    const MutexLock lock(mutex);
    if (std::exchange(rung, true)) return;
  }
  changed.notify_all();
}

void SubscriptionLoop::Mailbox::written(Written written) {
  {
    const MutexLock lock(mutex);
    mail.answers.emplace_back(std::move(written));
    --unwritten;
    rung = true;
  }
  changed.notify_all();
}

void SubscriptionLoop::parked_changed() {
  {
    const MutexLock lock(box_->mutex);
    box_->mail.parked_changed = true;
  }
  box_->ring();
}

bool SubscriptionLoop::stop(std::chrono::nanoseconds grace, bool settle) {
  if (replay_) replay_->feed->stop();
  if (!thread_.joinable()) return true;
  bool ended = false;
  {
    Mailbox& box = *box_;
    const MutexLock lock(box.mutex);
    box.mail.stop = Stop{.grace = grace, .settle = settle};
    box.rung = true;
    box.changed.notify_all();
    ended = box.changed.wait_for(box.mutex, grace + kCallLimit,
                                 [&box]() OUTBOX_REQUIRES(box.mutex) { return box.ended; });
  }
  if (!ended) {
    log::error("sink does not return from a call, its thread is abandoned",
               {{"subscription", row_.spec.name}});
    return false;
  }
  thread_.join();
  return true;
}

void SubscriptionLoop::abandon() {
  const MutexLock lock(links_mutex_);
  links_.reset();
}

bool SubscriptionLoop::ended() const {
  const MutexLock lock(box_->mutex);
  return box_->ended;
}

bool SubscriptionLoop::has_unwritten_rows() const {
  const MutexLock lock(box_->mutex);
  return box_->unwritten > 0;
}

void SubscriptionLoop::leak(std::unique_ptr<SubscriptionLoop> loop) {
  loop->thread_.detach();
  (void)loop.release();  // NOLINT(bugprone-unused-return-value): on purpose
}

/// The last settlement may have been written after the thread ended.
void SubscriptionLoop::take_last_mail() {
  Mail mail;
  {
    const MutexLock lock(box_->mutex);
    mail = std::exchange(box_->mail, {});
  }
  for (const auto& answer : mail.answers) {
    const auto* const written = std::get_if<Written>(&answer);
    if (written == nullptr) continue;
    if (written->strand) {
      strands_[*written->strand]->core.settled();
    } else {
      retries_.written(std::chrono::steady_clock::now());
    }
  }
}

std::vector<EventRef> SubscriptionLoop::unsettled_acks() const {
  if (replay_) return live_acks_;
  std::vector<EventRef> all;
  for (const auto& strand : strands_) {
    const auto acks = strand->core.unsettled_acks();
    all.insert(all.end(), acks.begin(), acks.end());
  }
  return all;
}

std::vector<EventRef> SubscriptionLoop::retry_acks() const {
  return replay_ ? live_retry_acks_ : retries_.unsettled_acks();
}

/// The stream and the retries may both know of a slow event that was acked.
std::uint64_t SubscriptionLoop::count_unsettled() const {
  const auto stream = unsettled_acks();
  const auto retries = retry_acks();
  std::set<EventRef> all(stream.begin(), stream.end());
  all.insert(retries.begin(), retries.end());
  return all.size();
}

RetainedSink SubscriptionLoop::take_sink() {
  take_last_mail();
  sink_->on_ready({});
  Token next = retries_.next_token();
  for (const auto& strand : strands_) next = std::max(next, strand->core.next_token());
  return {.sink = std::move(sink_),
          .next_token = next,
          .unsettled_acks = unsettled_acks(),
          .retry_acks = retry_acks()};
}

bool SubscriptionLoop::drained() {
  take_last_mail();
  return all_finished() && given_up_ == 0 && count_unsettled() == 0;
}

std::uint64_t SubscriptionLoop::abandoned() {
  take_last_mail();
  return given_up_ + count_unsettled();
}

SubscriptionReport SubscriptionLoop::report() const {
  const MutexLock lock(box_->mutex);
  return box_->report;
}

bool SubscriptionLoop::could_merge() const {
  const MutexLock lock(box_->mutex);
  return box_->could_merge;
}

bool SubscriptionLoop::replayed() const {
  const MutexLock lock(box_->mutex);
  return box_->replayed;
}

std::optional<Rejection> SubscriptionLoop::rejection() const {
  const MutexLock lock(box_->mutex);
  return box_->rejection;
}

}  // namespace outbox::relay
