#include "relay/subscription_loop.hpp"

#include <utility>

#include "base/steady.hpp"
#include "base/thread.hpp"

namespace outbox::relay {
namespace {

constexpr std::chrono::milliseconds kMeasuredEvery{100};

Timestamp now_by_wall_clock() {
  return std::chrono::time_point_cast<Timestamp::duration>(std::chrono::system_clock::now());
}

}  // namespace

SubscriptionLoop::SubscriptionLoop(store::SubscriptionRow row, format::Renderer renderer,
                                   const std::vector<store::Strand>& strands,
                                   const store::ParkedKeys& parked, const LoopOptions& options,
                                   RetainedSink retained, Settler& settler,
                                   const TrustDeadline& trust, Listener listener)
    : links_(Links{.settler = &settler, .trust = &trust, .listener = std::move(listener)}),
      sink_(std::move(retained.sink)),
      core_(std::move(row), std::move(renderer),
            {.strands = strands,
             .parked = parked,
             .next_token = retained.next_token,
             .unsettled_acks = std::move(retained.unsettled_acks),
             .retry_acks = std::move(retained.retry_acks)},
            options, *sink_, *this, now_steady()) {
  for (std::size_t strand = 0; strand < core_.strands(); ++strand)
    intakes_.push_back(std::make_unique<Intake>(*this, strand));
  sink_->on_ready([box = box_] { box->ring(); });
  const MutexLock lock(box_->mutex);
  box_->report.name = core_.row().spec.name;
  box_->report.state = to_string(core_.sink_state().mode());
}

SubscriptionLoop::~SubscriptionLoop() {
  // Waits without a limit: for a thread that does not end there is leak().
  if (!stop(std::chrono::nanoseconds(0), false)) thread_.join();
  if (sink_) sink_->on_ready({});
}

void SubscriptionLoop::start() {
  thread_ =
      start_thread("ob-sub-" + core_.row().spec.name, [this](const std::stop_token&) { run(); });
}

// ---- the thread

void SubscriptionLoop::run() {
  do {
    Mail mail = wait_for_mail();
    const TimePoint now = now_steady();
    core_.tell_time(now, now_by_wall_clock());
    take(std::move(mail), now);
    core_.step(now);
    publish_state();
    if (now - measured_at_ >= kMeasuredEvery) publish_measured(now);
  } while (!is_abandoned() && !core_.is_over(now_steady()));
  publish_state();
  publish_measured(now_steady());
  {
    const MutexLock lock(box_->mutex);
    box_->ended = true;
  }
  box_->changed.notify_all();
}

SubscriptionLoop::Mail SubscriptionLoop::wait_for_mail() {
  const TimePoint until = core_.next_at(now_steady());
  Mailbox& box = *box_;
  const MutexLock lock(box.mutex);
  box.changed.wait_until(box.mutex, until,
                         [&box]() OUTBOX_REQUIRES(box.mutex) { return box.rung; });
  box.rung = false;
  return std::exchange(box.mail, {});
}

void SubscriptionLoop::take(Mail&& mail, TimePoint now) {
  for (auto& [strand, page] : mail.pages) core_.page_read(strand, std::move(page), now);
  for (auto& answer : mail.answers) {
    if (const auto* const written = std::get_if<Written>(&answer)) {
      core_.written(written->strand, written->released, now);
    } else if (auto* const due = std::get_if<store::DueEvents>(&answer)) {
      core_.due_read(std::move(*due), now);
    } else {
      core_.keys_read(std::get<store::ParkedKeys>(answer));
    }
  }
  // After the answers, which may be older.
  if (mail.parked_changed) core_.parked_changed(now);
  if (const auto& stop = mail.stop; stop)
    core_.stop_requested(now + std::chrono::duration_cast<TimePoint::duration>(stop->grace),
                         stop->settle, now);
}

/// The last settlement may have been written after the thread ended.
void SubscriptionLoop::take_last_mail() {
  Mail mail;
  {
    const MutexLock lock(box_->mutex);
    mail = std::exchange(box_->mail, {});
  }
  for (const auto& answer : mail.answers) {
    if (const auto* const written = std::get_if<Written>(&answer))
      core_.written(written->strand, written->released, now_steady());
  }
}

bool SubscriptionLoop::is_abandoned() {
  const MutexLock lock(links_mutex_);
  return !links_;
}

// ---- what the core has done

TimePoint SubscriptionLoop::now() { return now_steady(); }

bool SubscriptionLoop::trusted(TimePoint now) {
  const MutexLock lock(links_mutex_);
  return links_ && links_->trust->holds(now);
}

void SubscriptionLoop::distrusted() {
  const MutexLock lock(links_mutex_);
  if (links_) links_->listener.distrusted();
}

void SubscriptionLoop::room() {
  if (core_.replay()) return core_.replay()->feed->room();
  const MutexLock lock(links_mutex_);
  if (links_) links_->listener.room();
}

void SubscriptionLoop::replay_done() {
  {
    const MutexLock lock(box_->mutex);
    box_->replayed = true;
  }
  const MutexLock lock(links_mutex_);
  if (links_ && links_->listener.replayed) links_->listener.replayed();
}

void SubscriptionLoop::write(ProgressWork work, std::optional<std::size_t> strand) {
  log_work(work);
  const MutexLock lock(links_mutex_);
  if (!links_) return;
  {
    const MutexLock box_lock(box_->mutex);
    ++box_->unwritten;
  }
  const auto tell = [box = box_, strand, id = core_.row().id](const auto& keys) {
    Written written{.strand = strand};
    for (const store::ReleasedKey& key : keys) {
      if (key.subscription == id) written.released.push_back(key.key);
    }
    box->written(std::move(written));
  };
  links_->settler->settle(std::move(work), tell);
}

void SubscriptionLoop::read_due(std::size_t besides, const std::vector<store::AskedRow>& asked) {
  const MutexLock lock(links_mutex_);
  if (!links_) return;
  links_->settler->read_due(
      {.subscription = core_.row().id,
       .holding = core_.holding(),
       .besides = besides,
       .asked = asked,
       .read = [box = box_](store::DueEvents due) { box->read(std::move(due)); }});
}

void SubscriptionLoop::read_keys() {
  const MutexLock lock(links_mutex_);
  if (!links_) return;
  links_->settler->read_keys(
      {.subscription = core_.row().id,
       .holding = core_.holding(),
       .read = [box = box_](store::ParkedKeys keys) { box->read(std::move(keys)); }});
}

std::optional<std::vector<std::int64_t>> SubscriptionLoop::try_range(
    const store::Trials::Range& range) {
  const MutexLock lock(links_mutex_);
  if (!links_ || !links_->listener.try_range) return {};
  return links_->listener.try_range(range);
}

void SubscriptionLoop::end_trial(const std::vector<std::int64_t>& keep,
                                 std::optional<std::size_t> tried) {
  if (tried) log_trial_over(*tried);
  const MutexLock lock(links_mutex_);
  if (links_ && links_->listener.end_trial) links_->listener.end_trial(keep);
}

}  // namespace outbox::relay
