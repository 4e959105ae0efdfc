#include "relay/subscription_loop.hpp"

#include <algorithm>
#include <utility>

#include "base/log.hpp"
#include "base/thread.hpp"

namespace outbox::relay {
namespace {

TimePoint now_steady() { return std::chrono::steady_clock::now(); }

/// A sink that took nothing is offered the rest again after this long at the latest.
constexpr std::chrono::milliseconds kOfferAgain{1};
/// While something is in flight the outcomes are looked for this often even if the sink forgot to ring.
constexpr std::chrono::milliseconds kLookAgain{20};
/// A sink may take so long over the last calls of a stop: a purge, a round of outcomes.
constexpr std::chrono::seconds kCallLimit{2};
/// Longest sleep: the trust deadline is checked at least this often.
constexpr std::chrono::milliseconds kLongest{100};

CoreOptions for_sink(CoreOptions options, const SinkTraits& traits, Token first_token) {
  options.first_token = first_token;
  options.gapless = traits.gapless;
  options.max_batch = traits.max_batch;
  options.max_in_flight = traits.max_in_flight;
  return options;
}

}  // namespace

SubscriptionLoop::SubscriptionLoop(store::SubscriptionRow row, event::Renderer renderer,
                                   store::Cursor start, LoopOptions options, Remains remains,
                                   Settler& settler, const TrustDeadline& trust, Listener listener)
    : row_(std::move(row)),
      renderer_(std::move(renderer)),
      filter_(row_.spec),
      start_(std::move(start)),
      options_(options),
      ties_{.mutex = {},
            .cut = false,
            .settler = settler,
            .trust = trust,
            .listener = std::move(listener)},
      sink_(std::move(remains.sink)),
      core_(for_sink(options_.core, sink_->traits(), remains.next_token), start_),
      box_(std::make_shared<Mailbox>()) {
  for (const EventRef& event : remains.unsettled_acks) core_.remember(event);
  asks_for_the_end_ = core_.remembers();
  sink_->on_ready([box = box_] { box->ring(); });
  report_.name = row_.spec.name;
  report_.state = to_string(core_.mode());
}

SubscriptionLoop::~SubscriptionLoop() {
  // Without a limit: who can leave a stuck one behind has done so.
  if (thread_.joinable() && stop(std::chrono::nanoseconds(0), false) == Stopped::in_a_call)
    thread_.join();
  if (sink_) sink_->on_ready({});
}

void SubscriptionLoop::start() {
  thread_ = start_thread("ob-sub-" + row_.spec.name, [this](const std::stop_token&) { run(); });
}

// ---- from other threads

void SubscriptionLoop::offer(std::shared_ptr<const store::Page> page) {
  window_events_.fetch_add(page->events.size(), std::memory_order_relaxed);
  window_bytes_.fetch_add(page->bytes, std::memory_order_relaxed);
  {
    const std::scoped_lock lock(box_->mutex);
    box_->mail.pages.push_back(std::move(page));
    box_->rung = true;
  }
  box_->bell.notify_one();
}

bool SubscriptionLoop::has_room(std::size_t events, std::size_t bytes) const {
  const std::size_t held = window_events_.load(std::memory_order_relaxed);
  const std::size_t held_bytes = window_bytes_.load(std::memory_order_relaxed);
  if (held == 0) return true;
  return held + events <= options_.core.window_events &&
         held_bytes + bytes <= options_.core.window_bytes;
}

void SubscriptionLoop::Mailbox::ring() {
  {
    const std::scoped_lock lock(mutex);
    if (rung) return;
    rung = true;
  }
  bell.notify_one();
}

SubscriptionLoop::Stopped SubscriptionLoop::stop(std::chrono::nanoseconds grace, bool settle) {
  std::unique_lock lock(box_->mutex);
  box_->mail.stop = true;
  grace_ = grace;
  may_settle_ = settle;
  box_->rung = true;
  box_->bell.notify_one();
  if (!thread_.joinable()) return Stopped::ended;
  if (!box_->over.wait_for(lock, grace + kCallLimit, [this] { return box_->ended; })) {
    log::error("sink does not return from a call, its thread is left behind",
               {{"subscription", row_.spec.name}});
    return Stopped::in_a_call;
  }
  lock.unlock();
  thread_.join();
  return Stopped::ended;
}

void SubscriptionLoop::leave() {
  const std::scoped_lock lock(ties_.mutex);
  ties_.cut = true;
}

bool SubscriptionLoop::ended() const {
  const std::scoped_lock lock(box_->mutex);
  return box_->ended;
}

void SubscriptionLoop::leak(std::unique_ptr<SubscriptionLoop> loop) {
  loop->thread_.detach();
  (void)loop
      .release();  // NOLINT(bugprone-unused-return-value): on purpose, its thread is in the sink
}

/// The last settlement may have been written when the thread had ended.
void SubscriptionLoop::take_last_mail() {
  const std::scoped_lock lock(box_->mutex);
  if (std::exchange(box_->mail.settled, false)) core_.settled();
}

Remains SubscriptionLoop::take_remains() {
  take_last_mail();
  sink_->on_ready({});
  return {.next_token = core_.next_token(),
          .sink = std::move(sink_),
          .unsettled_acks = core_.unsettled_acks()};
}

bool SubscriptionLoop::drained() {
  take_last_mail();
  return core_.finished() && given_up_ == 0 && core_.unsettled_acks().empty();
}

std::uint64_t SubscriptionLoop::abandoned() {
  take_last_mail();
  return given_up_ + core_.unsettled_acks().size();
}

SubscriptionReport SubscriptionLoop::report() const {
  const std::scoped_lock lock(box_->mutex);
  return report_;
}

// ---- the loop

void SubscriptionLoop::run() {
  while (true) {
    Mail mail = wait_for_mail();
    const TimePoint now = now_steady();
    take(std::move(mail), now);
    take_outcomes(now);
    watch_trust(now);
    open_if_wanted(now);
    send_what_may_go(now);
    settle(now);
    publish_state();
    if (is_over(now_steady())) break;
  }
  publish_state();
  {
    const std::scoped_lock lock(box_->mutex);
    box_->ended = true;
  }
  box_->over.notify_all();
}

bool SubscriptionLoop::trusted(TimePoint now) {
  const std::scoped_lock lock(ties_.mutex);
  return !ties_.cut && ties_.trust.holds(now);
}

bool SubscriptionLoop::is_cut() {
  const std::scoped_lock lock(ties_.mutex);
  return ties_.cut;
}

SubscriptionLoop::Mail SubscriptionLoop::wait_for_mail() {
  TimePoint until = now_steady() + kLongest;
  if (core_.in_flight() > 0) until = std::min(until, now_steady() + kLookAgain);
  if (send_stalled_) until = std::min(until, now_steady() + kOfferAgain);
  if (const auto at = core_.wake_at()) until = std::min(until, *at);
  if (core_.mode() == Mode::reopening) until = now_steady();
  std::unique_lock lock(box_->mutex);
  box_->bell.wait_until(lock, until, [this] { return box_->rung; });
  box_->rung = false;
  return std::exchange(box_->mail, {});
}

void SubscriptionLoop::take(Mail&& mail, TimePoint now) {
  for (auto& page : mail.pages) {
    wanted_.clear();
    if (!filter_.all()) {
      for (const EventView& event : page->events) wanted_.push_back(filter_.matches(event) ? 1 : 0);
    }
    core_.page_read(std::move(page), wanted_, now);
  }
  asks_for_the_end_.store(core_.remembers(), std::memory_order_relaxed);
  if (mail.settled) {
    const std::size_t events = core_.window_events();
    const std::size_t bytes = core_.window_bytes();
    core_.settled();
    window_events_.fetch_sub(events - core_.window_events(), std::memory_order_relaxed);
    window_bytes_.fetch_sub(bytes - core_.window_bytes(), std::memory_order_relaxed);
    const std::scoped_lock lock(ties_.mutex);
    if (!ties_.cut) ties_.listener.room();
  }
  if (mail.stop && !stop_by_) {
    const std::scoped_lock lock(box_->mutex);
    core_.stop_asked(may_settle_);
    stop_by_ = now + std::chrono::duration_cast<TimePoint::duration>(grace_);
  }
}

void SubscriptionLoop::take_outcomes(TimePoint now) {
  outcomes_.clear();
  sink_->receive(outcomes_);
  for (const Outcome& outcome : outcomes_) core_.outcome(outcome, now);
}

void SubscriptionLoop::watch_trust(TimePoint now) {
  if (purged_ || trusted(now)) return;
  // Another relay may own the lanes by now: nothing more may leave, not even what the client has queued.
  purged_ = true;
  core_.stop_asked(false);
  sink_->purge();
  take_outcomes(now);
  const std::scoped_lock lock(ties_.mutex);
  if (!ties_.cut) ties_.listener.distrusted();
}

void SubscriptionLoop::open_if_wanted(TimePoint now) {
  if (!core_.wants_open(now)) return;
  const Status status = sink_->open();
  core_.opened(status, now_steady());
  was_opened_ = was_opened_ || status.has_value();
}

void SubscriptionLoop::send_what_may_go(TimePoint now) {
  send_stalled_ = false;
  // Bounded, so that settlements and pages are looked at between batches of a fast sink.
  for (int batch = 0; batch < 16; ++batch) {
    const auto all = core_.to_send();
    if (all.empty()) return;
    const auto sends = all.first(std::min(all.size(), batch_limit_));
    if (!trusted(now_steady())) return;
    buffer_.clear();
    for (const auto& send : sends) renderer_.render(send.token, *send.event, buffer_);
    const std::size_t taken = sink_->send(buffer_.messages());
    core_.handed_over(taken, now);
    take_outcomes(now);
    if (taken < sends.size()) {
      send_stalled_ = true;
      batch_limit_ = std::max<std::size_t>(taken, 1);
      return;
    }
    batch_limit_ = std::max(batch_limit_, 2 * sends.size());
    settle(now);
  }
  box_->ring();
}

void SubscriptionLoop::settle(TimePoint now) {
  if (stop_by_) {
    const std::scoped_lock lock(box_->mutex);
    if (!may_settle_) return;
  }
  auto rows = core_.settle(now);
  if (rows.empty()) return;
  for (store::Settlement& row : rows) {
    row.subscription = row_.id;
    row.generation = options_.generation;
    row.config_version = row_.config_version;
  }
  settlements_ += rows.size();
  const std::scoped_lock tied(ties_.mutex);
  if (ties_.cut) return;
  ties_.settler.settle(std::move(rows), [box = box_] {
    {
      const std::scoped_lock lock(box->mutex);
      box->mail.settled = true;
      box->rung = true;
    }
    box->bell.notify_one();
  });
}

bool SubscriptionLoop::is_over(TimePoint now) {
  if (is_cut()) return true;
  if (!stop_by_) return false;
  bool may_settle = true;
  {
    const std::scoped_lock lock(box_->mutex);
    may_settle = may_settle_;
  }
  if (core_.in_flight() == 0 && (core_.finished() || !may_settle)) return true;
  if (now < *stop_by_) return false;
  if (core_.in_flight() > 0) {
    const std::uint64_t acked = core_.unsettled_acks().size();
    given_up_ = core_.in_flight();
    sink_->purge();
    take_outcomes(now);
    given_up_ -= core_.unsettled_acks().size() - acked;
  }
  return true;
}

// ---- what others see

/// A destination that was opened again has not shown yet that it takes anything.
std::string SubscriptionLoop::trouble() const {
  if (core_.mode() == Mode::rejected) return core_.rejection()->error.text();
  const bool shown = core_.mode() == Mode::delivering && core_.window_events() == 0;
  return core_.failures() > 0 && !shown ? core_.last_failure().text() : std::string();
}

void SubscriptionLoop::log_changes() {
  const Mode mode = core_.mode();
  const TimePoint now = now_steady();
  if (mode == Mode::backing_off && core_.pause_until() != logged_pause_) {
    logged_pause_ = core_.pause_until();
    const std::string reason = core_.last_failure().text();
    if (const auto repeats = outage_.failed(reason, now)) {
      log::warn("cannot deliver, retries", {{"subscription", row_.spec.name},
                                            {"retry_in_seconds", in_seconds(*logged_pause_ - now)},
                                            {"repeats", *repeats},
                                            {"reason", reason}});
    }
  } else if (mode == Mode::delivering && trouble().empty()) {
    if (const auto over = outage_.works(now)) log_recovery(*over);
  } else if (mode == Mode::rejected && logged_ != mode) {
    log::error("an event was rejected, the subscription stops",
               {{"subscription", row_.spec.name},
                {"seq", core_.rejection()->seq},
                {"event", core_.rejection()->id.str()},
                {"reason", core_.rejection()->error.text()}});
  }
  logged_ = mode;
}

/// A sink that was opened with nothing to send has not delivered.
void SubscriptionLoop::log_recovery(const Outage::Over& over) {
  const log::Fields fields{{"subscription", row_.spec.name},
                           {"down_seconds", in_seconds(over.lasted)},
                           {"failures", over.failures}};
  if (core_.failures() == 0) {
    log::info("delivers again", fields);
  } else {
    log::info("the sink is open again, and nothing waits", fields);
  }
}

void SubscriptionLoop::publish_state() {
  log_changes();
  const Mode mode = core_.mode();
  {
    const std::scoped_lock lock(box_->mutex);
    report_.state = to_string(mode);
    report_.reason = trouble();
    report_.delivered = core_.acked();
    report_.filtered = core_.filtered();
    report_.in_window = core_.window_events();
    report_.settlements = settlements_;
  }
  if (mode == Mode::rejected && !told_rejection_) {
    told_rejection_ = true;
    const std::scoped_lock lock(ties_.mutex);
    if (!ties_.cut) ties_.listener.rejected(*core_.rejection());
  }
}

}  // namespace outbox::relay
