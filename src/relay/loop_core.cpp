#include "relay/loop_core.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <set>
#include <utility>

#include "base/units.hpp"

namespace outbox::relay {
namespace {

/// What waits for something else is looked at again after this time at the latest: the rest of a
/// batch that the sink did not take, and what is due already.
constexpr std::chrono::milliseconds kOfferAgain{1};
/// While something is in flight the loop asks for outcomes this often even if the sink does not
/// call wake().
constexpr std::chrono::milliseconds kLookAgain{20};
/// The trust deadline is checked at least this often.
constexpr std::chrono::milliseconds kLongest{100};
/// Pages of which nothing is wanted are settled after so many intervals.
constexpr int kPassedIntervals = 20;

ParkingRules parking_rules(const SubscriptionSpec& spec, const LoopPace& pace) {
  return {.policy = subscription::RetryPolicy(spec),
          .max_waiting = spec.max_waiting,
          .max_at_once = pace.parked_at_once,
          .slow_after = pace.slow_after,
          .failing = pace.failing};
}

/// A replay writes no rows.
sink::RunOwner* find_run_owner(Sink& sink, const LoopOptions& options) {
  return options.replay ? nullptr : dynamic_cast<sink::RunOwner*>(&sink);
}

std::optional<EventId> find_worker(const sink::RunOwner* owner) {
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
    core.parking = options.replay ? replay_parking() : parking_rules(row.spec, options.pace);
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
    Token first_token, const sink::RunOwner* owner, Token prefix, SendMeter& meter,
    std::function<void(std::unordered_set<std::uint64_t>& keys)> keys_in_flight) {
  ParkingRules rules = parking_rules(row.spec, options.pace);
  know_slow_types(rules, owner);
  return {.subscription = row.id,
          .generation = options.holding.generation,
          .rules = std::move(rules),
          .gapless = traits.gapless,
          .max_batch = std::min<std::size_t>(traits.max_batch, 100),
          .write_interval = options.settle_interval,
          .first_token = first_token,
          .worker = find_worker(owner),
          .slow_after = owner != nullptr ? owner->row_after() : std::chrono::milliseconds(0),
          .token_prefix = prefix,
          .keys_in_flight = std::move(keys_in_flight),
          .look_at_runs = options.pace.look_at_runs,
          .meter = &meter};
}

/// What this relay may send of a rate that holds for all relays.
double held_share(const store::Holding& holding) {
  const double lanes = std::max(std::popcount(holding.lanes), 1);
  return lanes / std::popcount(store::kAllLanes);
}

TimePoint::duration ticks(std::chrono::nanoseconds time) {
  return std::chrono::duration_cast<TimePoint::duration>(time);
}

}  // namespace

LoopCore::LoopCore(store::SubscriptionRow row, format::Renderer renderer, LoopBeginning beginning,
                   const LoopOptions& options, Sink& sink, LoopPorts& ports, TimePoint now)
    : row_(std::move(row)),
      renderer_(std::move(renderer)),
      filter_(row_.spec, row_.left_out),
      holding_(options.holding),
      replay_(options.replay),
      pace_(options.pace),
      live_acks_(replay_ ? std::exchange(beginning.unsettled_acks, {}) : std::vector<EventRef>{}),
      live_retry_acks_(replay_ ? std::exchange(beginning.retry_acks, {}) : std::vector<EventRef>{}),
      window_(options.window),
      sink_(sink),
      ports_(ports),
      run_owner_(find_run_owner(sink, options)),
      offering_(sink, row_.spec.on_reject == OnReject::park),
      sink_state_(pace_.sink_pauses, static_cast<std::uint64_t>(row_.id)),
      trial_(options.trial),
      retries_(retry_options(row_, options, sink.traits(), beginning.next_token, run_owner_,
                             prefix_of(kRetries), meter_,
                             [this](auto& keys) {
                               for (const auto& strand : strands_)
                                 strand->core.add_keys_in_flight(keys);
                             }),
               sink_state_, gate_) {
  renderer_.bind(sink_.traits());
  begin_retries(beginning, now);
  begin_strands(beginning, options);
  if (replay_) {
    for (const std::uint64_t key : replay_->skipped_keys) gate_.found(key);
  }
  if (row_.spec.rate.count > 0)
    rate_.emplace(per_second(row_.spec.rate) * held_share(holding_), now);
  if (run_owner_ != nullptr)
    run_owner_->follow({.share = held_share(holding_), .paused_types = row_.paused_types});
}

void LoopCore::begin_retries(const LoopBeginning& beginning, TimePoint now) {
  gate_.replace_stored(beginning.parked);
  for (const auto& key : beginning.parked.keys) {
    if (key.run_seq != 0) retries_.runs(key.run_seq, key.key);
  }
  if (gate_.live() > 0 || !gate_.empty()) retries_.due_at(now);
  for (const EventRef& event : beginning.retry_acks) retries_.remember(event);
}

void LoopCore::begin_strands(const LoopBeginning& beginning, const LoopOptions& options) {
  CoreOptions core = core_options(row_, options, sink_.traits(), beginning.next_token);
  core.worker = find_worker(run_owner_);
  core.meter = &meter_;
  core.counts_latency = !replay_;
  if (core.parking) know_slow_types(*core.parking, run_owner_);
  // Several strands come together at settled cursors and a replay ends at one: they must not wait.
  if (beginning.strands.size() == 1 && !replay_)
    core.passed_interval = kPassedIntervals * core.settle_interval;
  for (const store::Strand& strand : beginning.strands) {
    core.row.lanes = strand.lanes;
    core.token_prefix = prefix_of(strands_.size());
    strands_.push_back(std::make_unique<Strand>(core, strand.cursor, sink_state_, window_, gate_));
    for (const EventRef& event : beginning.unsettled_acks) strands_.back()->core.remember(event);
    strands_.back()->update_wanted_end(replay_ != nullptr || trial_.on());
  }
}

// ---- what has happened

bool LoopCore::needs_step(const store::Page& page) const {
  return page.drained || page.caught_up || window_.is_half(window_.events(), window_.bytes()) ||
         !filter_.surely_none(page.events, page.kinds);
}

void LoopCore::page_read(std::size_t strand, std::shared_ptr<const store::Page> page,
                         TimePoint now) {
  Strand& of = *strands_[strand];
  filter_.mark(page->events, page->kinds, wanted_);
  of.core.page_read(std::move(page), wanted_, now);
  of.update_wanted_end(replay_ != nullptr || trial_.on());
  // Pages that were only passed need no settlement to make room.
  made_room_ = true;
}

/// First which events are parked, then which keys have nothing to do: in this order a key is never
/// free while an event of it is there.
void LoopCore::written(std::optional<std::size_t> strand,
                       const std::vector<std::uint64_t>& released, TimePoint now) {
  if (strand) strands_[*strand]->core.settled();
  if (!replay_) {
    for (const std::uint64_t key : released) gate_.released(key);
  }
  if (!strand) return retries_.written(now);
  made_room_ = settled_ = true;
}

void LoopCore::due_read(store::DueEvents due, TimePoint now) {
  retries_.loaded(std::move(due), now);
}

void LoopCore::keys_read(const store::ParkedKeys& keys) {
  reading_keys_ = false;
  gate_.replace_stored(keys);
}

void LoopCore::parked_changed(TimePoint now) {
  if (replay_) return;
  retries_.changed(now);
  if (!keys_at_) keys_at_ = now + ticks(pace_.read_keys_again);
}

void LoopCore::stop_requested(TimePoint by, bool settle, TimePoint now) {
  may_settle_ = settle;
  if (stop_by_) return;
  stop_sending(settle, now);
  stop_by_ = by;
}

void LoopCore::stop_sending(bool fill_gaps, TimePoint now) {
  for (const auto& strand : strands_) strand->core.stop_requested(now);
  retries_.stop_requested();
  sink_state_.stop_requested(fill_gaps);
}

// ---- a step

void LoopCore::step(TimePoint now) {
  tell_of_room();
  watch_replay();
  read_what_is_due(now);
  read_keys_again(now);
  take_outcomes(now);
  leave_runs_to_owner(now);
  watch_trust(now);
  open_if_wanted(now);
  send_what_may_go(now);
  settle(now);
  watch_trial(now);
  bring_strands_together();
}

TimePoint LoopCore::next_at(TimePoint now) const {
  TimePoint until = now + kLongest;
  // What is due already waits for something else.
  const auto soon = [&](const std::optional<TimePoint>& at) {
    return at ? std::max(*at, now + kOfferAgain) : until;
  };
  if (sends_more_) return now;
  if (sink_state_.in_flight() > 0) until = std::min(until, now + kLookAgain);
  if (send_stalled_) until = std::min(until, now + kOfferAgain);
  if (rate_wait_) until = std::min(until, *rate_wait_);
  if (keys_at_ && !reading_keys_ && !stop_by_) until = std::min(until, *keys_at_);
  if (sink_state_.mode() == Mode::backing_off)
    until = std::min(until, sink_state_.pause_until().value_or(now));
  if (sink_state_.mode() == Mode::reopening) until = now;
  for (const auto& strand : strands_)
    until =
        std::min({until, strand->core.settle_at().value_or(until), soon(strand->core.send_at())});
  return std::min(until, soon(retries_.next_at()));
}

void LoopCore::tell_of_room() {
  if (std::exchange(made_room_, false)) ports_.room();
}

/// Live delivery goes on once every strand has come to its end.
void LoopCore::watch_replay() {
  if (!std::exchange(settled_, false) || !replay_) return;
  const bool done = std::all_of(strands_.begin(), strands_.end(), [](const auto& strand) {
    return strand->core.idle() && strand->core.done().drained();
  });
  if (done) ports_.replay_done();
}

void LoopCore::read_what_is_due(TimePoint now) {
  if (!retries_.wants_load(now)) return;
  retries_.load_asked();
  ports_.read_due(gate_.late.size(), retries_.asked());
}

/// What people have given up leaves keys in the gate that have nothing to do. That delays nothing
/// but a few events, which are parked and sent at once; but they count as parked, and too many stop
/// the stream.
void LoopCore::read_keys_again(TimePoint now) {
  if (!keys_at_ || reading_keys_ || stop_by_) return;
  if (now < *keys_at_ && gate_.live() < row_.spec.max_waiting) return;
  keys_at_.reset();
  reading_keys_ = true;
  ports_.read_keys();
}

void LoopCore::take_outcomes(TimePoint now) {
  sink_.receive(outcomes_);
  // Calls of the sink may have taken long.
  if (!outcomes_.empty()) meter_.come_to(ports_.now());
  for (Outcome& outcome : outcomes_) {
    const std::size_t source = source_of(outcome.token);
    outcome.token &= kTokenMask;
    if (source == kRetries) {
      retries_.outcome(outcome, now);
    } else if (source < strands_.size()) {
      strands_[source]->core.outcome(outcome, now);
    }
  }
  outcomes_.clear();
}

/// Sends that were set aside and have their rows.
void LoopCore::leave_runs_to_owner(TimePoint now) {
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
    const std::size_t source = source_of(send.token);
    if (source < strands_.size()) strands_[source]->core.kept(send.token & kTokenMask);
    retries_.kept(send, now);
    sink_state_.left(now);
  }
}

void LoopCore::watch_trust(TimePoint now) {
  if (purged_ || ports_.trusted(now)) return;
  // Another relay may have the lanes by now: nothing more may be sent, not even what the sink's
  // client has queued.
  purged_ = true;
  stop_sending(false, now);
  sink_.purge();
  take_outcomes(now);
  ports_.distrusted();
}

void LoopCore::open_if_wanted(TimePoint now) {
  if (!sink_state_.wants_open(now)) return;
  const bool again = sink_state_.openings() > 0;
  const Status opened = sink_.open();
  if (opened && again) meter_.reconnected();
  sink_state_.opened(opened, ports_.now());
}

// ---- what is written: settlements with what is parked, the progress of a replay, results

void LoopCore::settle(TimePoint now) {
  if (!may_settle_) return;
  // What is tried next waits for it.
  const TimePoint by = trial_waits_ && sink_state_.in_flight() == 0 ? TimePoint::max() : now;
  for (std::size_t strand = 0; strand < strands_.size(); ++strand) {
    auto due = strands_[strand]->core.settle(by);
    if (due.empty()) continue;
    settlements_ += due.rows.size();
    ProgressWork work{.rows = {}};
    if (replay_) {
      work.replays.push_back(replay_progress(replay_->replay, due));
    } else {
      look_again_at(due.parked, now);
      work.rows = std::move(due.rows);
      work.parked = std::move(due.parked);
    }
    ports_.write(std::move(work), strand);
  }
  settle_retries(now);
}

/// What waits is due with the one before it; if that is gone already, it is found a moment later.
void LoopCore::look_again_at(const std::vector<store::ParkedEvent>& parked, TimePoint now) {
  for (const store::ParkedEvent& event : parked) {
    const bool waits = event.state == store::ParkedState::waiting;
    retries_.due_at(now + ticks(waits ? pace_.find_orphans : event.due_in));
    // Read back after this is written.
    if (event.state == store::ParkedState::ready) retries_.runs(event.seq, event.key);
  }
}

void LoopCore::settle_retries(TimePoint now) {
  if (!may_settle_) return;
  auto results = retries_.results(now);
  if (!results.empty()) ports_.write({.rows = {}, .results = std::move(results)}, std::nullopt);
}

/// Several strands cost a fetch each. While nothing is pending they are asked to settle up to the
/// end of the log, where they meet. Not while something is in flight, which may have been set
/// aside: starting again would wait for it.
void LoopCore::bring_strands_together() {
  if (strands_.size() < 2 || replay_) return;
  const store::Cursor& first = strands_.front()->core.done();
  const bool rests = sink_state_.mode() == Mode::delivering && window_.events() == 0 &&
                     sink_state_.in_flight() == 0 && !stop_by_ && idle();
  could_merge_ = rests && first.drained() &&
                 std::all_of(strands_.begin(), strands_.end(),
                             [&](const auto& strand) { return strand->core.done() == first; });
  for (const auto& strand : strands_) strand->update_wanted_end(rests && !could_merge_);
}

// ---- the end

bool LoopCore::is_over(TimePoint now) {
  if (!stop_by_) return false;
  if (sink_state_.in_flight() == 0 && (finished() || !may_settle_)) return true;
  if (now < *stop_by_) return false;
  if (sink_state_.in_flight() > 0) give_up_in_flight(now);
  return true;
}

void LoopCore::give_up_in_flight(TimePoint now) {
  const std::uint64_t acked = count_unsettled();
  given_up_ = sink_state_.in_flight();
  sink_.purge();
  take_outcomes(now);
  given_up_ -= count_unsettled() - acked;
}

// ---- how it stands

LoopCore::Counts LoopCore::counts() const {
  Counts counts{.settlements = settlements_};
  for (const auto& strand : strands_) {
    counts.acked += strand->core.acked();
    counts.filtered += strand->core.filtered();
    counts.parked += strand->core.parked();
  }
  return counts;
}

bool LoopCore::idle() const {
  return std::all_of(strands_.begin(), strands_.end(),
                     [](const auto& strand) { return strand->core.idle(); });
}

bool LoopCore::finished() const {
  return retries_.finished() &&
         std::all_of(strands_.begin(), strands_.end(),
                     [](const auto& strand) { return strand->core.finished(); });
}

std::vector<EventRef> LoopCore::unsettled_acks() const {
  if (replay_) return live_acks_;
  std::vector<EventRef> all;
  for (const auto& strand : strands_) {
    const auto acks = strand->core.unsettled_acks();
    all.insert(all.end(), acks.begin(), acks.end());
  }
  return all;
}

std::vector<EventRef> LoopCore::retry_acks() const {
  return replay_ ? live_retry_acks_ : retries_.unsettled_acks();
}

/// Of a slow event that was acked both may know.
std::uint64_t LoopCore::count_unsettled() const {
  const auto stream = unsettled_acks();
  const auto retries = retry_acks();
  std::set<EventRef> all(stream.begin(), stream.end());
  all.insert(retries.begin(), retries.end());
  return all.size();
}

Token LoopCore::next_token() const {
  Token next = retries_.next_token();
  for (const auto& strand : strands_) next = std::max(next, strand->core.next_token());
  return next;
}

}  // namespace outbox::relay
