#include "relay/subscription_loop.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <set>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/steady.hpp"
#include "base/thread.hpp"
#include "base/units.hpp"
#include "event/key.hpp"
#include "relay/strand.hpp"

namespace outbox::relay {
namespace {

/// The rest of a batch that the sink did not take is offered again after this time at the latest.
constexpr std::chrono::milliseconds kOfferAgain{1};
/// While something is in flight the loop asks for outcomes this often even if the sink does not
/// call wake().
constexpr std::chrono::milliseconds kLookAgain{20};
/// The trust deadline is checked at least this often.
constexpr std::chrono::milliseconds kLongest{100};
/// Pages of which nothing is wanted are settled after so many intervals.
constexpr int kPassedIntervals = 20;
/// After a person's changes the keys of parked events are read again, this long after the first
/// change.
constexpr std::chrono::seconds kReadKeysAgain{5};
/// After this many batches the loop takes pages and settlements from its mailbox.
constexpr int kMostBatches = 16;
/// The token that the sink gets consists of the number of the strand and the core's token. There
/// are at most as many strands as lanes.
constexpr unsigned kStrandShift = 57;
/// The number that the retries have instead of a strand's.
constexpr std::size_t kRetries = 64;
constexpr Token kTokenMask = (Token{1} << kStrandShift) - 1;

ParkingRules parking_rules(const SubscriptionSpec& spec) {
  return {.policy = subscription::RetryPolicy(spec), .max_waiting = spec.max_waiting};
}

/// Returns null for a replay, too, because a replay writes no rows.
sink::RunOwner* run_owner_of(Sink& sink, const LoopOptions& options) {
  return options.replay ? nullptr : dynamic_cast<sink::RunOwner*>(&sink);
}

std::optional<EventId> worker_of(const sink::RunOwner* owner) {
  return owner != nullptr ? std::optional(owner->worker()) : std::nullopt;
}

CoreOptions core_options(const store::SubscriptionRow& row, const LoopOptions& options,
                         const SinkTraits& traits, Token first_token) {
  CoreOptions core;
  core.row.subscription = row.id;
  core.row.generation = options.holding.generation;
  core.row.config_version = row.config_version;
  core.gapless = traits.gapless;
  core.independent = traits.independent;
  core.max_batch = traits.max_batch;
  core.max_in_flight = traits.max_in_flight;
  core.settle_interval = options.settle_interval;
  core.settle_events = options.settle_events;
  core.first_token = first_token;
  if (row.spec.on_reject == OnReject::park)
    core.parking = options.replay ? replay_parking() : parking_rules(row.spec);
  return core;
}

/// `owner` outlives the core.
void know_slow_types(ParkingRules& rules, const sink::RunOwner* owner) {
  if (owner == nullptr) return;
  rules.slow_after = owner->row_after();
  rules.is_slow = [owner](std::string_view type) { return owner->is_slow(type); };
}

RetryOptions retry_options(
    const store::SubscriptionRow& row, const LoopOptions& options, const SinkTraits& traits,
    Token first_token, const sink::RunOwner* owner,
    std::function<void(std::unordered_set<std::uint64_t>& keys)> keys_in_flight) {
  ParkingRules rules = parking_rules(row.spec);
  know_slow_types(rules, owner);
  return {.subscription = row.id,
          .generation = options.holding.generation,
          .rules = std::move(rules),
          .gapless = traits.gapless,
          .max_batch = std::min<std::size_t>(traits.max_batch, 100),
          .write_interval = options.settle_interval,
          .first_token = first_token,
          .worker = worker_of(owner),
          .slow_after = owner != nullptr ? owner->row_after() : std::chrono::milliseconds(0),
          .token_prefix = static_cast<Token>(kRetries) << kStrandShift,
          .keys_in_flight = std::move(keys_in_flight)};
}

/// The part that this relay may send of a rate that holds for all relays together.
double share_of(const store::Holding& holding) {
  const double lanes = std::max(std::popcount(holding.lanes), 1);
  return lanes / std::popcount(store::kAllLanes);
}

}  // namespace

SubscriptionLoop::SubscriptionLoop(store::SubscriptionRow row, format::Renderer renderer,
                                   const std::vector<store::Strand>& strands,
                                   const store::ParkedKeys& parked, const LoopOptions& options,
                                   RetainedSink retained, Settler& settler,
                                   const TrustDeadline& trust, Listener listener)
    : row_(std::move(row)),
      renderer_(std::move(renderer)),
      filter_(row_.spec, row_.left_out),
      holding_(options.holding),
      replay_(options.replay),
      live_acks_(replay_ ? std::exchange(retained.unsettled_acks, {}) : std::vector<EventRef>{}),
      live_retry_acks_(replay_ ? std::exchange(retained.retry_acks, {}) : std::vector<EventRef>{}),
      window_(options.window),
      links_(Links{.settler = &settler, .trust = &trust, .listener = std::move(listener)}),
      sink_(std::move(retained.sink)),
      run_owner_(run_owner_of(*sink_, options)),
      offering_(*sink_, row_.spec.on_reject == OnReject::park),
      sink_state_({}, static_cast<std::uint64_t>(row_.id)),
      trial_(options.trial),
      retries_(retry_options(row_, options, sink_->traits(), retained.next_token, run_owner_,
                             [this](auto& keys) {
                               for (const auto& strand : strands_)
                                 strand->core.add_keys_in_flight(keys);
                             }),
               sink_state_, gate_) {
  renderer_.bind(sink_->traits());
  gate_.replace_stored(parked);
  for (const auto& key : parked.keys) {
    if (key.run_seq != 0) retries_.runs(key.run_seq, key.key);
  }
  if (gate_.live() > 0 || !gate_.empty()) retries_.due_at(now_steady());
  for (const EventRef& event : retained.retry_acks) retries_.remember(event);
  CoreOptions core = core_options(row_, options, sink_->traits(), retained.next_token);
  core.worker = worker_of(run_owner_);
  if (core.parking) know_slow_types(*core.parking, run_owner_);
  const auto offer = [this](Strand& strand, const std::shared_ptr<const store::Page>& page) {
    const bool has_work = needs_loop(*page);
    {
      const MutexLock lock(box_->mutex);
      box_->mail.pages.emplace_back(&strand, page);
      box_->rung = box_->rung || has_work;
    }
    if (has_work) box_->changed.notify_all();
  };
  // Several strands come together at settled cursors, and a replay ends at one, so these must not
  // wait for their settlements.
  if (strands.size() == 1 && !replay_)
    core.passed_interval = kPassedIntervals * core.settle_interval;
  for (const store::Strand& strand : strands) {
    core.row.lanes = strand.lanes;
    core.token_prefix = static_cast<Token>(strands_.size()) << kStrandShift;
    strands_.push_back(
        std::make_unique<Strand>(core, strand.cursor, sink_state_, window_, gate_, offer));
    for (const EventRef& event : retained.unsettled_acks) strands_.back()->core.remember(event);
    strands_.back()->update_wanted_end(replay_ != nullptr || trial_.on());
  }
  if (replay_) {
    for (const std::uint64_t key : replay_->skipped_keys) gate_.found(key);
  }
  if (row_.spec.rate.count > 0)
    rate_.emplace(per_second(row_.spec.rate) * share_of(holding_), now_steady());
  if (run_owner_ != nullptr)
    run_owner_->follow({.share = share_of(holding_), .paused_types = row_.paused_types});
  sink_->on_ready([box = box_] { box->ring(); });
  const MutexLock lock(box_->mutex);
  box_->report.name = row_.spec.name;
  box_->report.state = to_string(sink_state_.mode());
}

SubscriptionLoop::~SubscriptionLoop() {
  // This waits without a limit. A loop whose thread does not end is given to leak() instead.
  if (!stop(std::chrono::nanoseconds(0), false)) thread_.join();
  if (sink_) sink_->on_ready({});
}

void SubscriptionLoop::start() {
  thread_ = start_thread("ob-sub-" + row_.spec.name, [this](const std::stop_token&) { run(); });
}

// ---- the loop

void SubscriptionLoop::run() {
  do {
    Mail mail = wait_for_mail();
    const TimePoint now = now_steady();
    take(std::move(mail), now);
    take_outcomes(now);
    leave_runs_to_owner(now);
    watch_trust(now);
    open_if_wanted(now);
    send_what_may_go(now);
    settle(now);
    watch_trial(now);
    bring_strands_together();
    publish_state();
  } while (!is_over(now_steady()));
  publish_state();
  {
    const MutexLock lock(box_->mutex);
    box_->ended = true;
  }
  box_->changed.notify_all();
}

bool SubscriptionLoop::trusted(TimePoint now) {
  const MutexLock lock(links_mutex_);
  return links_ && links_->trust->holds(now);
}

bool SubscriptionLoop::is_abandoned() {
  const MutexLock lock(links_mutex_);
  return !links_;
}

/// Whether the loop must wake for this page. In a backlog of events that only other subscriptions
/// want, it need not: it takes the pages after kLongest at the latest.
bool SubscriptionLoop::needs_loop(const store::Page& page) const {
  return page.drained || page.caught_up || window_.is_half(window_.events(), window_.bytes()) ||
         !filter_.surely_none(page.events, page.kinds);
}

SubscriptionLoop::Mail SubscriptionLoop::wait_for_mail() {
  const TimePoint now = now_steady();
  TimePoint until = now + kLongest;
  // An action that is due already waits for something else, so the loop does not wake at once for
  // it.
  const auto soon = [&](const std::optional<TimePoint>& at) {
    return at ? std::max(*at, now + kOfferAgain) : until;
  };
  if (sink_state_.in_flight() > 0) until = std::min(until, now + kLookAgain);
  if (send_stalled_) until = std::min(until, now + kOfferAgain);
  if (rate_wait_) until = std::min(until, *rate_wait_);
  if (sink_state_.mode() == Mode::backing_off)
    until = std::min(until, sink_state_.pause_until().value_or(now));
  if (sink_state_.mode() == Mode::reopening) until = now;
  for (const auto& strand : strands_)
    until =
        std::min({until, strand->core.settle_at().value_or(until), soon(strand->core.send_at())});
  until = std::min(until, soon(retries_.next_at()));
  Mailbox& box = *box_;
  const MutexLock lock(box.mutex);
  box.changed.wait_until(box.mutex, until,
                         [&box]() OUTBOX_REQUIRES(box.mutex) { return box.rung; });
  box.rung = false;
  return std::exchange(box.mail, {});
}

void SubscriptionLoop::take(Mail&& mail, TimePoint now) {
  for (auto& [strand, page] : mail.pages) take_page(*strand, std::move(page), now);
  // Pages that were only passed need no settlement to make room.
  if (!mail.pages.empty()) tell_of_room();
  take_answers(mail, now);
  read_what_is_due(now);
  read_keys_again(now);
  if (mail.stop) take_stop(*mail.stop, now);
}

void SubscriptionLoop::take_page(Strand& strand, std::shared_ptr<const store::Page> page,
                                 TimePoint now) {
  filter_.mark(page->events, page->kinds, wanted_);
  strand.core.page_read(std::move(page), wanted_, now);
  strand.update_wanted_end(replay_ != nullptr || trial_.on());
}

void SubscriptionLoop::take_answers(Mail& mail, TimePoint now) {
  for (auto& answer : mail.answers) {
    if (const auto* const written = std::get_if<Written>(&answer)) {
      take_written(*written, now);
    } else if (auto* const due = std::get_if<store::DueEvents>(&answer)) {
      retries_.loaded(std::move(*due), now);
    } else {
      reading_keys_ = false;
      gate_.replace_stored(std::get<store::ParkedKeys>(answer));
    }
  }
  // This comes after the answers, which may be older than the change.
  if (!mail.parked_changed || replay_) return;
  retries_.changed(now);
  if (!keys_at_) keys_at_ = now + kReadKeysAgain;
}

/// Tells the gate first which events are parked, and then which keys have nothing to do. In this
/// order a key is never free while an event of it is parked.
void SubscriptionLoop::take_written(const Written& written, TimePoint now) {
  if (written.strand) strands_[*written.strand]->core.settled();
  if (!replay_) {
    for (const std::uint64_t key : written.released) gate_.released(key);
  }
  if (!written.strand) return retries_.written(now);
  tell_of_room();
  if (replay_) watch_replay();
}

void SubscriptionLoop::tell_of_room() {
  if (replay_) return replay_->feed->room();
  const MutexLock lock(links_mutex_);
  if (links_) links_->listener.room();
}

void SubscriptionLoop::read_what_is_due(TimePoint now) {
  if (!retries_.wants_load(now)) return;
  const MutexLock lock(links_mutex_);
  if (!links_) return;
  retries_.load_asked();
  links_->settler->read_due(
      {.subscription = row_.id,
       .holding = holding_,
       .besides = gate_.late.size(),
       .asked = retries_.asked(),
       .read = [box = box_](store::DueEvents due) { box->read(std::move(due)); }});
}

/// Events that people have discarded leave keys in the gate that have nothing to do. Such a key
/// only delays a few events, which are parked and then sent at once. But the discarded events still
/// count as parked, and too many of them stop the stream.
void SubscriptionLoop::read_keys_again(TimePoint now) {
  if (!keys_at_ || reading_keys_ || stop_by_) return;
  if (now < *keys_at_ && gate_.live() < row_.spec.max_waiting) return;
  const MutexLock lock(links_mutex_);
  if (!links_) return;
  keys_at_.reset();
  reading_keys_ = true;
  links_->settler->read_keys(
      {.subscription = row_.id, .holding = holding_, .read = [box = box_](store::ParkedKeys keys) {
         box->read(std::move(keys));
       }});
}

void SubscriptionLoop::take_stop(const Stop& stop, TimePoint now) {
  may_settle_ = stop.settle;
  if (stop_by_) return;
  stop_sending(stop.settle, now);
  stop_by_ = now + std::chrono::duration_cast<TimePoint::duration>(stop.grace);
}

void SubscriptionLoop::stop_sending(bool fill_gaps, TimePoint now) {
  for (const auto& strand : strands_) strand->core.stop_requested(now);
  retries_.stop_requested();
  sink_state_.stop_requested(fill_gaps);
}

void SubscriptionLoop::take_outcomes(TimePoint now) {
  sink_->receive(outcomes_);
  for (Outcome& outcome : outcomes_) {
    const auto strand = static_cast<std::size_t>(outcome.token >> kStrandShift);
    outcome.token &= kTokenMask;
    if (strand == kRetries) {
      retries_.outcome(outcome, now);
    } else if (strand < strands_.size()) {
      strands_[strand]->core.outcome(outcome, now);
    }
  }
  outcomes_.clear();
}

/// Leaves to the sink the sends that were set aside and whose rows are written.
void SubscriptionLoop::leave_runs_to_owner(TimePoint now) {
  if (run_owner_ == nullptr) return;
  if (run_owner_->rows_changed()) retries_.due_at(now);
  std::vector<LateSends::Send> written;
  for (const auto& [seq, send] : gate_.late.all()) {
    if (send.written && !send.outcome && send.run > 0) written.push_back(send);
  }
  for (const LateSends::Send& send : written) {
    const sink::KeptRun run{.subscription = row_.id,
                            .seq = send.seq,
                            .id = send.id,
                            .attempts = send.attempts,
                            .token = send.run};
    if (!run_owner_->keep(send.token, run)) continue;
    gate_.late.remove(send.seq);
    const auto strand = static_cast<std::size_t>(send.token >> kStrandShift);
    if (strand < strands_.size()) strands_[strand]->core.kept(send.token & kTokenMask);
    retries_.kept(send, now);
    sink_state_.left(now);
  }
}

void SubscriptionLoop::watch_trust(TimePoint now) {
  if (purged_ || trusted(now)) return;
  // Another relay may have the lanes by now, so nothing more may be sent, not even what the sink's
  // client has queued.
  purged_ = true;
  stop_sending(false, now);
  sink_->purge();
  take_outcomes(now);
  const MutexLock lock(links_mutex_);
  if (links_) links_->listener.distrusted();
}

void SubscriptionLoop::open_if_wanted(TimePoint now) {
  if (sink_state_.wants_open(now)) sink_state_.opened(sink_->open(), now_steady());
}

void SubscriptionLoop::send_what_may_go(TimePoint now) {
  send_stalled_ = trial_waits_ = false;
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
  box_->ring();
}

bool SubscriptionLoop::send_batch(std::size_t strand, TimePoint now) {
  DeliveryCore& core = strands_[strand]->core;
  auto sends = core.to_send(now);
  if (sends.empty() || rate_allows(now) == 0) return false;
  const std::size_t room = may_go(strand + 1, strands_[strand]->lanes(), sends);
  if (const std::size_t deaths = std::exchange(culprit_deaths_, 0); deaths > 0) {
    core.refuse(deaths, death_of(*sends.front().event, deaths), now);
    return true;
  }
  sends = sends.first(room);
  if (sends.empty() || !trusted(now_steady())) return false;
  core.handed_over(hand_over(static_cast<Token>(strand) << kStrandShift, sends, now));
  for (const Token token : offering_.kept_back()) core.kept_back(token & kTokenMask, now);
  take_outcomes(now);
  settle(now);
  return true;
}

bool SubscriptionLoop::send_retries(TimePoint now) {
  auto sends = retries_.to_send(now);
  if (sends.empty() || rate_allows(now) == 0) return false;
  const std::size_t room = may_go(TrialGate::kRetries, store::kAllLanes, sends);
  if (const std::size_t deaths = std::exchange(culprit_deaths_, 0); deaths > 0) {
    retries_.refuse(death_of(*sends.front().event, deaths), now);
    settle_retries(now);
    return true;
  }
  sends = sends.first(room);
  if (sends.empty() || !trusted(now_steady())) return false;
  retries_.handed_over(hand_over(static_cast<Token>(kRetries) << kStrandShift, sends, now));
  OUTBOX_CHECK(offering_.kept_back().empty());  // there is one retry of a key at a time
  take_outcomes(now);
  settle_retries(now);
  return true;
}

/// A range is recorded with nothing in flight, before any of it is rendered. The thread waits for
/// the store, which is rare.
std::size_t SubscriptionLoop::may_go(std::size_t source, store::LaneMask lanes,
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
    const auto dead = try_range({.lanes = lanes, .events = step.count, .seq = seq});
    if (!dead) return 0;
    if (trial_.recorded(source, seq, *dead)) return may_go(source, lanes, sends);
  }
  end_trial();
  if (step.kind != Kind::culprit) return may_go(source, lanes, sends);
  culprit_deaths_ = step.count;
  return 0;
}

std::optional<std::vector<std::int64_t>> SubscriptionLoop::try_range(
    const store::Trials::Range& range) {
  const MutexLock lock(links_mutex_);
  if (!links_ || !links_->listener.try_range) return {};
  return links_->listener.try_range(range);
}

void SubscriptionLoop::end_trial() {
  if (trial_.on()) {
    log::info("the trial is over, events are sent as always",
              {{"subscription", row_.spec.name}, {"tried", trial_.passed()}});
  }
  const auto keep = trial_.end();
  const MutexLock lock(links_mutex_);
  if (links_ && links_->listener.end_trial) links_->listener.end_trial(keep);
}

/// Ends a trial also when the log has no more events, because then everything that the dead relays
/// had in flight was sent without a death.
void SubscriptionLoop::watch_trial(TimePoint now) {
  if (!trial_.active() || stop_by_ || sink_state_.in_flight() > 0) return;
  const bool nothing_left = window_.events() == 0 && retries_.is_quiet(now) &&
                            std::all_of(strands_.begin(), strands_.end(),
                                        [](const auto& strand) { return strand->core.saw_end(); });
  if (trial_.on() ? nothing_left : trial_.used_up()) end_trial();
}

Error SubscriptionLoop::death_of(const EventView& event, std::size_t deaths) const {
  Error error;
  error.code = Errc::internal;
  error.message = "the relay died " + std::to_string(deaths) + " times while it sent this event";
  log::error("an event that kills the relay was found and is parked",
             {{"subscription", row_.spec.name},
              {"seq", event.seq},
              {"event", event.id.str()},
              {"deaths", deaths}});
  return error;
}

std::size_t SubscriptionLoop::rate_allows(TimePoint now) {
  if (!rate_) return std::numeric_limits<std::size_t>::max();
  const std::size_t allowed = rate_->allowed(now);
  if (allowed == 0) rate_wait_ = rate_->next();
  return allowed;
}

std::size_t SubscriptionLoop::hand_over(Token prefix, std::span<const DeliveryCore::Send> all,
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

/// Each strand costs a fetch of its own. While nothing is pending, the strands are asked to settle
/// up to the end of the log, where they meet. They are not asked while something is in flight,
/// because its event may have been set aside, and starting the loop again would wait for it.
void SubscriptionLoop::bring_strands_together() {
  if (strands_.size() < 2 || replay_) return;
  const store::Cursor& first = strands_.front()->core.done();
  const bool resting = sink_state_.mode() == Mode::delivering && window_.events() == 0 &&
                       sink_state_.in_flight() == 0 && !stop_by_;
  const bool idle = resting && std::all_of(strands_.begin(), strands_.end(),
                                           [](const auto& strand) { return strand->core.idle(); });
  const bool together = idle && first.drained() &&
                        std::all_of(strands_.begin(), strands_.end(), [&](const auto& strand) {
                          return strand->core.done() == first;
                        });
  for (const auto& strand : strands_) strand->update_wanted_end(idle && !together);
  const MutexLock lock(box_->mutex);
  box_->could_merge = together;
}

bool SubscriptionLoop::all_finished() const {
  return retries_.finished() &&
         std::all_of(strands_.begin(), strands_.end(),
                     [](const auto& strand) { return strand->core.finished(); });
}

bool SubscriptionLoop::is_over(TimePoint now) {
  if (is_abandoned()) return true;
  if (!stop_by_) return false;
  if (sink_state_.in_flight() == 0 && (all_finished() || !may_settle_)) return true;
  if (now < *stop_by_) return false;
  if (sink_state_.in_flight() > 0) {
    const std::uint64_t acked = count_unsettled();
    given_up_ = sink_state_.in_flight();
    sink_->purge();
    take_outcomes(now);
    given_up_ -= count_unsettled() - acked;
  }
  return true;
}

}  // namespace outbox::relay
