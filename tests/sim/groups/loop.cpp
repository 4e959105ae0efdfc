#include "sim/groups/loop.hpp"

#include <algorithm>
#include <chrono>

#include "event/key.hpp"

namespace outbox::sim {
namespace {

constexpr unsigned kStrandShift = 57;
constexpr Token kTokenMask = (Token{1} << kStrandShift) - 1;
constexpr std::size_t kGroupPage = 9;
constexpr std::chrono::milliseconds kWriteInterval{6};
/// As in SubscriptionLoop::settle(), waiting events are looked for again after this time.
constexpr std::chrono::milliseconds kFindOrphans{20};

relay::ParkingRules group_rules() {
  SubscriptionSpec spec{.name = "sim", .sink = "custom"};
  spec.max_attempts = 5;
  spec.retry_base = std::chrono::milliseconds(3);
  spec.retry_cap = std::chrono::milliseconds(20);
  return {
      .policy = subscription::RetryPolicy(spec),
      .max_at_once = 3,
      .slow_after = std::chrono::milliseconds(10),
      .failing = {.first = std::chrono::milliseconds(2), .longest = std::chrono::milliseconds(8)}};
}

}  // namespace

SimLoop::SimLoop(GroupShared& world, RetainedSink& retained, store::SubscriptionRow row,
                 const store::Holding& holding, const std::vector<store::Strand>& strands,
                 std::shared_ptr<relay::ReplayRun> replay)
    : world_(world),
      retained_(retained),
      row_(std::move(row)),
      filter_(row_.spec, row_.left_out),
      holding_(holding),
      replay_(std::move(replay)),
      state_({.first = std::chrono::milliseconds(2), .longest = std::chrono::milliseconds(8)},
             world.options.seed),
      window_({.events = 40, .page_events = kGroupPage}),
      retries_({.subscription = row_.id,
                .generation = holding.generation,
                .rules = group_rules(),
                .gapless = world.options.gapless,
                .max_batch = 5,
                .write_interval = kWriteInterval,
                .first_token = retained.next_token,
                .worker = retained.runner ? std::optional(retained.runner->worker()) : std::nullopt,
                .slow_after = kRowAfter,
                .token_prefix = static_cast<Token>(kRetries) << kStrandShift,
                .keys_in_flight =
                    [this](auto& keys) {
                      for (const auto& core : cores_) core->add_keys_in_flight(keys);
                    },
                .look_at_runs = std::chrono::milliseconds(20)},
               state_, gate_) {
  relay::CoreOptions core;
  core.row.subscription = row_.id;
  core.row.generation = holding.generation;
  core.gapless = world.options.gapless;
  core.max_batch = 7;
  core.max_in_flight = 25;
  core.settle_events = 8;
  core.settle_interval = kWriteInterval;
  if (strands.size() == 1 && !replay_) core.passed_interval = 20 * kWriteInterval;
  if (world.options.parks()) core.parking = replay_ ? relay::replay_parking() : group_rules();
  core.first_token = retained.next_token;
  if (retained.runner) {
    retained.runner->follow(row_.paused_types);
    core.independent = true;
    core.worker = retained.runner->worker();
    core.parking->slow_after = kRowAfter;
  }
  for (const store::Strand& strand : strands) {
    core.row.lanes = strand.lanes;
    core.token_prefix = static_cast<Token>(cores_.size()) << kStrandShift;
    cores_.push_back(
        std::make_unique<relay::DeliveryCore>(core, strand.cursor, state_, window_, gate_));
    if (replay_) continue;
    for (const auto& event : retained.acks) {
      cores_.back()->remember(event);
      world.checks.remembers(row_.id, number_of(event.id));
    }
  }
  if (replay_) {
    begin_replay();
    return;
  }
  const store::ParkedKeys parked = world.tables.parked(row_.id).keys(holding.lanes);
  gate_.replace_stored(parked);
  for (const auto& key : parked.keys) {
    if (key.run_seq != 0) retries_.runs(key.run_seq, key.key);
  }
  if (gate_.live() > 0 || !gate_.empty()) retries_.due_at({});
  for (const auto& event : retained.retry_acks) {
    retries_.remember(event);
    acked_retries_.insert(number_of(event.id));
  }
}

// ---- a replay

/// Passes on what the feed reads.
class SimLoop::Reader final : public feed::PageConsumer {
 public:
  Reader(SimLoop& loop, std::size_t strand) : loop_(loop), strand_(strand) {}
  [[nodiscard]] bool has_room(std::size_t /*pages*/) const override { return loop_.has_room(); }
  void take_page(const std::shared_ptr<const store::Page>& page) override {
    loop_.add_page(strand_, page, {});
  }

 private:
  SimLoop& loop_;
  const std::size_t strand_;
};

void SimLoop::begin_replay() {
  for (const std::uint64_t key : replay_->skipped_keys) gate_.found(key);
  for (std::size_t strand = 0; strand < cores_.size(); ++strand) {
    readers_.push_back(std::make_unique<Reader>(*this, strand));
    replay_->feed->add(*readers_.back());
  }
}

bool SimLoop::differs(const store::SubscriptionRow& row, std::int64_t replay) const {
  return row.state != store::SubscriptionState::active || row.left_out != row_.left_out ||
         row.paused_types != row_.paused_types || replay_differs(replay);
}

bool SimLoop::replay_differs(std::int64_t running) const {
  const std::int64_t here = replay_ ? replay_->replay.id : 0;
  if (running != 0 && running != here && running != row_.replay) return true;
  return replayed_ || (here != 0 && here != running);
}

void SimLoop::watch_replay() {
  replayed_ = replay_ && std::all_of(cores_.begin(), cores_.end(), [](const auto& core) {
                return core->idle() && core->done().drained();
              });
}

bool SimLoop::must_see(std::size_t strand, const store::Page& page) const {
  if (!page.events.empty() || (page.drained && page.from != 0)) return true;
  if ((meeting_ || cores_[strand]->remembers()) && page.drained) return true;
  return page.drained && world_.random.chance(10);
}

void SimLoop::take_page(std::size_t strand, const std::shared_ptr<const store::Page>& page,
                        relay::TimePoint now) {
  if (must_see(strand, *page)) add_page(strand, page, now);
}

void SimLoop::add_page(std::size_t strand, const std::shared_ptr<const store::Page>& page,
                       relay::TimePoint now) {
  window_.add(*page);
  std::vector<std::uint8_t> wanted;
  for (const EventView& event : page->events) {
    const bool wanted_at_all = world_.database.event(number_of(event.id)).wanted;
    wanted.push_back(wanted_at_all && filter_.matches(event) ? 1 : 0);
  }
  cores_[strand]->page_read(page, wanted, now);
  meeting_ = false;
}

void SimLoop::step(relay::TimePoint now, bool trusted, std::vector<Job>& jobs) {
  take_outcomes(now);
  if (retained_.runner) leave_runs_to_owner(now);
  if (state_.wants_open(now)) state_.opened(retained_.open(), now);
  if (retries_.wants_load(now)) {
    retries_.load_asked();
    asks_ = true;
  }
  if (trusted) send_retries(now);
  for (std::size_t strand = 0; trusted && strand < cores_.size(); ++strand) send(strand, now);
  settle(now, jobs);
  bring_strands_together();
}

void SimLoop::settle(relay::TimePoint now, std::vector<Job>& jobs) {
  for (std::size_t strand = 0; strand < cores_.size(); ++strand) {
    auto due = cores_[strand]->settle(now);
    if (due.empty()) continue;
    if (replay_) {
      const store::ReplayProgress progress = relay::replay_progress(replay_->replay, due);
      world_.result.replayed += static_cast<std::uint64_t>(progress.sent);
      world_.result.skipped += progress.skips.size();
      jobs.push_back({.strand = strand, .batch = {.rows = {}, .replays = {progress}}});
      continue;
    }
    for (const auto& event : due.parked) {
      retries_.due_at(now +
                      (event.state == store::ParkedState::waiting ? kFindOrphans : event.due_in));
      if (event.state == store::ParkedState::ready) retries_.runs(event.seq, event.key);
    }
    jobs.push_back({.strand = strand,
                    .batch = {.rows = std::move(due.rows), .parked = std::move(due.parked)}});
  }
  auto results = retries_.results(now);
  if (!results.empty())
    jobs.push_back({.strand = kRetries, .batch = {.rows = {}, .results = std::move(results)}});
}

void SimLoop::send(std::size_t strand, relay::TimePoint now) {
  const auto sends = cores_[strand]->to_send(now);
  if (sends.empty()) return;
  const std::size_t offered = world_.random.below(sends.size() + 1);
  std::size_t taken = 0;
  for (; taken < offered; ++taken) {
    const relay::DeliveryCore::Send& send = sends[taken];
    const std::size_t number = number_of(send.event->id);
    const WrittenEvent& event = world_.database.event(number);
    if (replay_) {
      world_.checks.replays(event, number, holding_.generation);
    } else {
      world_.checks.sent(row_.id, event, number, holding_.generation, acked_);
    }
    if (!hand_over(static_cast<Token>(strand) << kStrandShift | send.token, *send.event, number,
                   send.attempt))
      break;
  }
  cores_[strand]->handed_over(taken);
}

void SimLoop::send_retries(relay::TimePoint now) {
  const auto sends = retries_.to_send(now);
  if (sends.empty()) return;
  const std::size_t offered = world_.random.below(sends.size() + 1);
  std::size_t taken = 0;
  for (; taken < offered; ++taken) {
    const relay::DeliveryCore::Send& send = sends[taken];
    const std::size_t number = number_of(send.event->id);
    world_.checks.sent_again(row_.id, world_.database.event(number), number, holding_.generation,
                             acked_retries_);
    if (!hand_over(static_cast<Token>(kRetries) << kStrandShift | send.token, *send.event, number,
                   send.attempt))
      break;
  }
  retries_.handed_over(taken);
}

/// Like SubscriptionLoop::leave_runs_to_owner().
void SimLoop::leave_runs_to_owner(relay::TimePoint now) {
  if (retained_.runner->rows_changed(retained_.source)) retries_.due_at(now);
  std::vector<relay::LateSends::Send> written;
  for (const auto& [seq, send] : gate_.late.all()) {
    if (send.written && !send.outcome && send.run > 0) written.push_back(send);
  }
  for (const relay::LateSends::Send& send : written) {
    const sink::KeptRun run{.subscription = row_.id,
                            .seq = send.seq,
                            .id = send.id,
                            .attempts = send.attempts,
                            .token = send.run};
    if (!retained_.runner->keep(retained_.source, send.token, run)) continue;
    gate_.late.remove(send.seq);
    const auto strand = static_cast<std::size_t>(send.token >> kStrandShift);
    if (strand < cores_.size()) cores_[strand]->kept(send.token & kTokenMask);
    retries_.kept(send, now);
    state_.left(now);
  }
}

bool SimLoop::hand_over(Token token, EventView event, std::size_t number, std::size_t attempt) {
  const bool taken = !retained_.runner || retained_.runner->take(retained_.source, token, event,
                                                                 attempt, holding_.generation);
  if (!taken) return false;
  world_.trace("g", holding_.generation, " sends event ", number, " (seq ", event.seq, ", ",
               event.aggregate_id, ") of subscription ", row_.id, ", strand ",
               token >> kStrandShift, " token ", token & kTokenMask);
  if (retained_.runner) return true;
  event.seq = static_cast<std::int64_t>(number);
  if (retained_.sink.has_in_flight(event.seq)) world_.checks.broke("an event is in flight twice");
  (void)retained_.sink.send(token, event);
  return true;
}

void SimLoop::take_outcomes(relay::TimePoint now) {
  for (Outcome& outcome : retained_.receive()) {
    const auto strand = static_cast<std::size_t>(outcome.token >> kStrandShift);
    outcome.token &= kTokenMask;
    world_.trace("g", holding_.generation, " strand ", strand, " token ", outcome.token, ": ",
                 to_string(outcome.kind));
    if (outcome.kind != Outcome::Kind::acked) ++world_.result.failures;
    if (strand == kRetries) {
      retries_.outcome(outcome, now);
      for (const auto& ack : retries_.unsettled_acks()) acked_retries_.insert(number_of(ack.id));
    }
    if (strand >= cores_.size()) continue;
    cores_[strand]->outcome(outcome, now);
    for (const auto& ack : cores_[strand]->unsettled_acks()) acked_.insert(number_of(ack.id));
  }
}

void SimLoop::stop(relay::TimePoint now, bool in_order) {
  for (const auto& core : cores_) core->stop_requested(now);
  retries_.stop_requested();
  state_.stop_requested(in_order);
}

bool SimLoop::finished() const {
  return state_.in_flight() == 0 && retries_.finished() &&
         std::all_of(cores_.begin(), cores_.end(),
                     [](const auto& core) { return core->finished(); });
}

void SimLoop::end(relay::TimePoint now) {
  if (state_.in_flight() > 0) {
    retained_.purge();
    take_outcomes(now);
  }
  if (!replay_) {
    retained_.acks.clear();
    retained_.retry_acks = retries_.unsettled_acks();
  }
  retained_.next_token = std::max(retained_.next_token, retries_.next_token());
  for (const auto& core : cores_) {
    const auto acks = replay_ ? std::vector<relay::EventRef>{} : core->unsettled_acks();
    retained_.acks.insert(retained_.acks.end(), acks.begin(), acks.end());
    retained_.next_token = std::max(retained_.next_token, core->next_token());
  }
}

bool SimLoop::idle() const {
  return std::all_of(cores_.begin(), cores_.end(), [](const auto& core) { return core->idle(); });
}

void SimLoop::bring_strands_together() {
  if (cores_.size() < 2 || replay_) return;
  const bool resting = state_.mode() == relay::Mode::delivering && window_.events() == 0 && idle();
  const store::Cursor& first = cores_.front()->done();
  const bool together = resting && first.drained() &&
                        std::all_of(cores_.begin(), cores_.end(),
                                    [&](const auto& core) { return core->done() == first; });
  meeting_ = resting && !together;
  could_merge_ = together;
}

}  // namespace outbox::sim
