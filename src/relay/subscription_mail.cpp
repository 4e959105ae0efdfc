// What other threads ask of a subscription's loop and leave in its mailbox.
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "base/steady.hpp"
#include "relay/subscription_loop.hpp"

namespace outbox::relay {
namespace {

/// After the grace period, for the last calls of a stop: a purge and its outcomes.
constexpr std::chrono::seconds kCallLimit{2};

}  // namespace

void SubscriptionLoop::Intake::take_page(const std::shared_ptr<const store::Page>& page) {
  if (strand_.accept(*page, now_steady())) loop_.offer(number_, page);
}

void SubscriptionLoop::read_from(feed::Pump& pump) {
  for (std::size_t i = 0; i < intakes_.size(); ++i) {
    const Strand& strand = core_.strand(i);
    if (core_.replay())
      core_.replay()->feed->add(*intakes_[i]);
    else
      pump.add(*intakes_[i], strand.lanes(), strand.start());
  }
  if (core_.replay()) core_.replay()->feed->start();
}

void SubscriptionLoop::stop_reading(feed::Pump& pump) {
  if (core_.replay()) return core_.replay()->feed->stop();
  for (const auto& intake : intakes_) pump.remove(*intake);
}

void SubscriptionLoop::offer(std::size_t strand, const std::shared_ptr<const store::Page>& page) {
  const bool has_work = core_.needs_step(*page);
  {
    const MutexLock lock(box_->mutex);
    box_->mail.pages.emplace_back(strand, page);
    box_->rung = box_->rung || has_work;
  }
  if (has_work) box_->changed.notify_all();
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
  if (core_.replay()) core_.replay()->feed->stop();
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
    log::error("a call of the sink or of the store does not return, its thread is abandoned",
               {{"subscription", core_.row().spec.name}});
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
  // All are kept here until the process ends, so that a search for leaks does not report them.
  static auto& mutex = *new Mutex;
  static auto& leaked = *new std::vector<std::unique_ptr<SubscriptionLoop>>();
  loop->thread_.detach();
  const MutexLock lock(mutex);
  leaked.push_back(std::move(loop));
}

RetainedSink SubscriptionLoop::take_sink() {
  take_last_mail();
  sink_->on_ready({});
  return {.sink = std::move(sink_),
          .next_token = core_.next_token(),
          .unsettled_acks = core_.unsettled_acks(),
          .retry_acks = core_.retry_acks()};
}

bool SubscriptionLoop::drained() {
  take_last_mail();
  return core_.finished() && abandoned() == 0;
}

std::uint64_t SubscriptionLoop::abandoned() {
  take_last_mail();
  return core_.given_up() + core_.count_unsettled();
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
