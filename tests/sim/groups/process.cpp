#include "sim/groups/process.hpp"

#include <algorithm>
#include <utility>

#include "relay/assignment.hpp"
#include "sim/groups/replays.hpp"

namespace outbox::sim {
namespace {

EventId id_of(std::uint64_t number) {
  EventId id;
  const std::uint64_t text = splitmix64(number);
  for (unsigned byte = 0; byte < 8; ++byte)
    id.bytes[byte] = static_cast<std::uint8_t>(text >> (8 * byte));
  return id;
}

/// Of the type with a limit, at once in a worker.
constexpr std::size_t kMostOfType = 1;

}  // namespace

SimProcess::SimProcess(GroupShared& world, std::uint64_t number, std::vector<InTransit>& in_transit)
    : world_(world),
      id_(id_of(number)),
      in_transit_(in_transit),
      sets_apart_(world.options.limited_from != 0 && number >= world.options.limited_from) {
  retained_.push_back({.sink = SimSink(world.random, world.topic, world.options.gapless)});
  SimSink& sink = retained_.front().sink;
  sink.fail_percent = world.options.fail_percent;
  sink.lie_percent = world.options.lie_percent;
  sink.reject_percent = world.options.reject_percent;
  sink.sick_percent = world.options.sick_percent;
  sink.slow_percent = world.options.slow_percent;
  go_down(world.down_for > 0);
  if (world.healed) heal();
  if (world.options.clocks_differ && number % 2 == 0) offset_ = std::chrono::hours(1);
  if (!world.options.tasks) return;
  const auto runner =
      std::make_shared<SimRunner>(world, id_, offset_, sets_apart_ ? kMostOfType : 0);
  run_tracker_ = std::make_unique<SimRunTracker>(world, id_, offset_, runner);
  retained_.push_back({.sink = SimSink(world.random, world.topic, false)});
  for (task::Source source = 0; source < retained_.size(); ++source) {
    retained_[source].runner = runner;
    retained_[source].source = source;
  }
}

void SimProcess::step() {
  if (stopped_ > 0) {
    --stopped_;
    return;
  }
  switch (world_.random.below(run_tracker_ ? 15 : 12)) {
    case 0: return step_tenures();
    case 1: return step_lease();
    case 2:
    case 3:
    case 4: return step_reader();
    case 5:
    case 6:
    case 7: return step_loop();
    case 8:
    case 9: return step_settler();
    case 12:
    case 13: return run_tracker_->step();
    // What the client has queued goes on being delivered, whatever the loop knows.
    default: return sink().step();
  }
}

void SimProcess::crash() {
  world_.trace("relay ", +id_.bytes[0], " crashes");
  if (tenure_) {
    for (const auto& served : tenure_->served) keep_in_transit(*served);
  }
  sink().crash();
  if (world_.options.same_machine) world_.tables.members().process_ended(id_);
}

/// What was sent when the connection broke may be written.
void SimProcess::keep_in_transit(const Served& served) {
  if (served.jobs.empty() || !world_.random.chance(50) || !served.reader.incarnation()) return;
  in_transit_.push_back(
      {.batch = served.jobs.front().batch, .incarnation = *served.reader.incarnation()});
}

void SimProcess::lose_connection() {
  if (tenure_) tenure_->failed = true;
}

void SimProcess::stop_for(int steps, bool clock_too) {
  world_.trace("relay ", +id_.bytes[0], " is stopped for ", steps,
               clock_too ? ", with its clock" : "");
  stopped_ = steps;
  if (clock_too) offset_ -= std::chrono::milliseconds(steps);
}

bool SimProcess::at_rest() const {
  if (stopped_ != 0 || !tenure_ || tenure_->failed) return false;
  // Strands that are to come together settle again and again: two subscriptions hardly ever rest at
  // once.
  const bool many = tenure_->served.size() > 1;
  const auto rests = [many](const auto& served) {
    if (many) return !served->stopping && (!served->loop || !served->loop->in_flight());
    return !served->stopping && served->jobs.empty() &&
           (!served->loop || served->loop->core().idle());
  };
  return std::all_of(tenure_->served.begin(), tenure_->served.end(), rests) &&
         (!run_tracker_ || (sink().runner->idle() && run_tracker_->idle()));
}

int SimProcess::keys_too_many() const {
  int too_many = 0;
  for (std::size_t i = 0; tenure_ && i < tenure_->served.size() && too_many == 0; ++i) {
    const SimLoop* const loop = tenure_->served[i]->loop.get();
    if (loop == nullptr || loop->replays()) continue;
    const relay::KeyGate& gate = loop->core().gate();
    const auto stored =
        world_.tables.parked(loop->core().row().id).keys(loop->core().holding().lanes);
    std::size_t with_key = 0;
    for (const auto& key : stored.keys) {
      if (key.key == static_cast<std::uint64_t>(key.run_seq)) continue;  // without a key
      ++with_key;
      if (!gate.blocked(key.key)) return -1;
    }
    too_many = static_cast<int>(gate.keys() - with_key);
  }
  return too_many;
}

// ---- the lease

void SimProcess::step_lease() {
  if (!tenure_ || tenure_->failed || now() < renew_at_) return;
  const relay::TimePoint before = now();
  if (!world_.tables.members().keep(id_, world_.server_now())) {
    trust_.end();
    tenure_->failed = true;
    return;
  }
  trust_.extend_to(before + kLease - kLease / 5);
  renew_at_ = before + kLease / 3;
}

// ---- the tenure loop

void SimProcess::step_tenures() {
  if (has_left_) return;
  if (!tenure_) {
    if (leaving_for_good_)
      end_relay();
    else if (world_.random.chance(30))
      begin_tenure();
    return;
  }
  if (tenure_->failed) return end_tenure();
  for (const auto& served : tenure_->served) {
    const auto incarnation = served->reader.incarnation();
    if (incarnation && *incarnation != world_.database.incarnation()) return lose_connection();
  }
  look();
}

void SimProcess::begin_tenure() {
  const relay::TimePoint before = now();
  // A false answer: it was removed, and is registered again.
  (void)world_.tables.members().keep(id_, world_.server_now());
  trust_.extend_to(before + kLease - kLease / 5);
  renew_at_ = before + kLease / 3;
  tenure_ = std::make_unique<Tenure>();
  tenure_->served.push_back(std::make_unique<Served>(world_, kSubscription));
}

/// Worker::stop()
void SimProcess::end_relay() {
  has_left_ = true;
  excuse_repeats(0);
  if (run_tracker_) run_tracker_->stop(std::chrono::milliseconds(world_.random.below(60)));
}

/// The store or the lease is lost: what is in flight gets its outcome or is purged, nothing more is
/// written.
void SimProcess::end_tenure() {
  for (const auto& served : tenure_->served) {
    SimLoop* const loop = served->loop.get();
    if (loop == nullptr) continue;
    loop->stop(std::chrono::milliseconds(world_.random.chance(70) ? 1000 : 0), false);
    for (int step = 0; !loop->is_over() && step < 1000; ++step) {
      sink().step();
      loop->step();
    }
    keep_in_transit(*served);
    loop->end();
  }
  world_.trace("relay ", +id_.bytes[0], " ends its tenure");
  if (tenure_->holding.lanes != 0) held_before_ = tenure_->holding;
  tenure_.reset();
}

bool SimProcess::lost_lanes(const store::Fleet& fleet) const {
  const store::Holding& held = tenure_->holding;
  for (const store::OwnedLanes& owned : fleet.groups.front().owners) {
    const bool ours = owned.owner == id_ && owned.generation == held.generation;
    if (!ours && (owned.lanes & held.lanes) != 0) return true;
  }
  return false;
}

store::LaneMask SimProcess::wanted(const store::Fleet& fleet) const {
  if (leaving_for_good_) return 0;
  return relay::wanted_lanes(id_, fleet.groups.front(), fleet.members);
}

bool SimProcess::delivers() const {
  return std::any_of(tenure_->served.begin(), tenure_->served.end(),
                     [](const auto& served) { return served->loop != nullptr; });
}

void SimProcess::look() {
  Tenure& tenure = *tenure_;
  for (const auto& served : tenure.served) {
    if (served->stopping && !end_loop(*served)) return;
  }
  if (leaving_for_good_ && !delivers()) {
    world_.tables.members().leave(id_);
    tenure_.reset();
    return end_relay();
  }
  const store::Fleet fleet = world_.tables.members().look(id_, world_.server_now(), kLease);
  if (held_before_.lanes != 0) forget_retries(fleet);
  if (lost_lanes(fleet)) return lose_connection();
  const store::LaneMask lanes = wanted(fleet);
  if (lanes != tenure.holding.lanes) {
    if (!delivers()) return change_lanes(lanes);
    for (const auto& served : tenure.served) stop(*served);
    return;
  }
  if (retire_changed() || lanes == 0) return;
  begin_type();
  begin_loops();
}

/// Ends a loop in order.
void SimProcess::stop(Served& served) {
  if (!served.loop) return;
  served.stopping = true;
  served.reader.remove_all();
  served.loop->stop(kLease / 2, true);
}

/// True: some are ending now. Then it goes on with the rows that it has read.
bool SimProcess::retire_changed() {
  Tenure& tenure = *tenure_;
  if (std::exchange(tenure.retired, false)) return false;
  tenure.rows = world_.tables.catalog().rows();
  for (const auto& served : tenure.served) {
    if (!served->loop) continue;
    const store::SubscriptionRow& row = tenure.rows[static_cast<std::size_t>(served->id - 1)];
    const bool merges = served->loop->core().could_merge() && served->jobs.empty();
    if (!merges && !served->loop->differs(row, world_.tables.running_replay())) {
      if (std::exchange(served->parked_version, row.parked_version) == row.parked_version) continue;
      served->loop->parked_changed();
      continue;
    }
    if (merges) ++world_.result.merges;
    stop(*served);
    tenure.retired = true;
  }
  return tenure.retired;
}

/// Tenure::begin_types(), and before it the configuration of a worker with a limit.
void SimProcess::begin_type() {
  Tenure& tenure = *tenure_;
  if (sets_apart_) world_.tables.set_apart(false);
  if (tenure.rows.size() < kSubscriptions) return;
  if (tenure.served.size() < kSubscriptions)
    tenure.served.push_back(std::make_unique<Served>(world_, kOfType));
  if (tenure.begun_type == tenure.holding) return;
  if (!world_.tables.begin_beside(tenure.holding.lanes, tenure.holding.generation))
    return lose_connection();
  world_.checks.follow(world_.tables.rows());
  tenure.begun_type = tenure.holding;
  ++world_.result.types_begun;
  world_.trace("relay ", +id_.bytes[0], " has begun the type in lanes ", tenure.holding.lanes);
}

/// Tenure::start_new()
void SimProcess::begin_loops() {
  for (const auto& served : tenure_->served) {
    const store::SubscriptionRow& row = tenure_->rows[static_cast<std::size_t>(served->id - 1)];
    if (tenure_->failed || served->loop || row.state != store::SubscriptionState::active) continue;
    begin_loop(*served, row);
  }
}

/// TenureLoop::forget_retries_of_lost_lanes()
void SimProcess::forget_retries(const store::Fleet& fleet) {
  const store::Holding before = std::exchange(held_before_, {});
  store::LaneMask kept = 0;
  for (const store::OwnedLanes& owned : fleet.groups.front().owners) {
    if (owned.owner == id_ && owned.generation == before.generation) kept |= owned.lanes;
  }
  if ((before.lanes & ~kept) == 0) return;
  excuse_repeats(kept);
  forget_retries();
}

void SimProcess::forget_retries() {
  for (RetainedSink& retained : retained_) retained.retry_acks.clear();
}

/// P5: the next owner of lanes does not know what was delivered and not settled in time.
void SimProcess::excuse_repeats(store::LaneMask kept) {
  const auto excuse = [&](const relay::EventRef& event) {
    const std::size_t number = number_of(event.id);
    if ((kept >> world_.database.event(number).lane & 1U) == 0) world_.runs.forgotten(number);
  };
  for (const RetainedSink& retained : retained_) {
    std::for_each(retained.acks.begin(), retained.acks.end(), excuse);
    std::for_each(retained.retry_acks.begin(), retained.retry_acks.end(), excuse);
  }
}

void SimProcess::change_lanes(store::LaneMask lanes) {
  Tenure& tenure = *tenure_;
  const auto holding = world_.tables.change(id_, lanes, world_.server_now(), kLease);
  world_.checks.follow(world_.tables.rows());
  if (!holding) return lose_connection();
  excuse_repeats(holding->lanes);
  if ((tenure.holding.lanes & ~holding->lanes) != 0) forget_retries();
  tenure.holding = *holding;
  tenure.retired = false;
  ++world_.result.claims;
  world_.trace("relay ", +id_.bytes[0], " has lanes ", holding->lanes, ", generation ",
               holding->generation);
}

/// Tenure::load_strands(): a claim makes lanes that have come to one cursor one strand.
void SimProcess::begin_loop(Served& served, store::SubscriptionRow row) {
  const store::Holding& holding = tenure_->holding;
  auto strands = world_.tables.strands(served.id, holding.lanes);
  const bool claimed =
      std::all_of(strands.begin(), strands.end(), [&](const store::Strand& strand) {
        return strand.generation == holding.generation && strand.rows == 1;
      });
  if (!claimed) {
    // hold_lanes
    if (!world_.tables.members().owns(holding.lanes, holding.generation)) return lose_connection();
    world_.tables.claim(served.id, holding.lanes, holding.generation);
    world_.checks.follow(world_.tables.rows());
    strands = world_.tables.strands(served.id, holding.lanes);
  }
  store::LaneMask covered = 0;
  for (const store::Strand& strand : strands) covered |= strand.lanes;
  if (covered != holding.lanes) return world_.checks.broke("lanes have no cursor");
  if (strands.size() > 1) ++world_.result.several_strands;
  const auto failed = [](const Error&) {};  // the round says so
  row.replay = world_.tables.running_replay();
  std::shared_ptr<relay::ReplayRun> replay;
  if (row.replay != 0) {
    // Tenure::make_loop()
    replay = *relay::begin_replay(std::make_unique<SimReplays>(world_.database, world_.tables),
                                  row.replay, holding.lanes, strands, {.page_events = 5}, failed);
    if (!replay) row.replay = 0;
    if (replay && replay->strands.empty()) replay = nullptr;
  }
  if (replay) strands = replay->strands;
  world_.trace("relay ", +id_.bytes[0], replay ? " replays " : " delivers ", row.spec.name);
  served.parked_version = row.parked_version;
  const SimLoop::Links links{.clock = offset_, .trust = trust_, .jobs = served.jobs};
  served.loop = std::make_unique<SimLoop>(world_, retained(served.id), links, std::move(row),
                                          holding, strands, replay);
  if (replay) return;
  for (std::size_t i = 0; i < strands.size(); ++i)
    served.reader.add(i, strands[i].lanes, strands[i].cursor);
}

bool SimProcess::end_loop(Served& served) {
  if (!served.loop->is_over()) return false;
  served.stopping = false;
  if (!served.jobs.empty()) {
    lose_connection();  // its last settlement was not written in time
    return false;
  }
  served.loop->end();
  served.loop.reset();
  served.due.reset();
  return true;
}

// ---- the other threads

/// One of the subscriptions.
SimProcess::Served& SimProcess::any() {
  auto& served = tenure_->served;
  return *served[served.size() == 1 ? 0 : world_.random.below(served.size())];
}

void SimProcess::step_reader() {
  if (!tenure_ || tenure_->failed || tenure_->holding.lanes == 0) return;
  Served& served = any();
  SimLoop* const loop = served.loop.get();
  const bool has_room = loop != nullptr && !served.stopping && loop->has_room();
  if (loop != nullptr && loop->replays()) {
    if (has_room && !loop->read_replay()) lose_connection();
    return;
  }
  const bool works = served.reader.step(
      has_room, [&](std::size_t strand, const auto& page) { loop->take_page(strand, page); });
  if (!works) lose_connection();
}

void SimProcess::step_loop() {
  if (!tenure_ || tenure_->failed) return;
  SimLoop* const loop = any().loop.get();
  if (loop == nullptr) return;
  loop->step();
  if (loop->is_distrusted()) lose_connection();
}

void SimProcess::step_settler() {
  if (!tenure_ || tenure_->failed) return;
  Served& served = any();
  if (served.loop && served.loop->asks_for_keys() && world_.random.chance(20))
    served.loop->keys_read(
        world_.tables.parked(served.id).keys(served.loop->core().holding().lanes));
  if (served.due || served.jobs.empty()) {
    if (served.loop && served.loop->asks_for_due()) read_due(served);
    return;
  }
  SimReader& reader = served.reader;
  Batch all;
  for (const auto& job : served.jobs) all.add(job.batch);
  check_faults(all);
  const bool flushed =
      world_.random.chance(30) ||
      store::begins_runs({.settlements = all.rows, .parked = all.parked, .results = all.results});
  const auto w = world_.write(all, reader.incarnation().value_or(0), flushed);
  if (!w) return lose_connection();
  for (const auto& progress : all.replays)
    world_.trace("g", progress.generation, " has replayed lanes ", progress.lanes, " up to ",
                 progress.position, ", sent ", progress.sent, ", skipped ", progress.skips.size());
  for (const auto& row : all.rows) {
    reader.marks().note(*w, row.bound);
    world_.trace("g", row.generation, " settles lanes ", row.lanes, " (", row.s1, " ", row.s2,
                 "] from ", row.from_position, " to ", row.position.value_or(-1), ", acked ",
                 row.acked.count);
  }
  const std::vector<std::uint64_t> released = world_.tables.released(served.id, all);
  for (const auto& job : std::exchange(served.jobs, {})) {
    if (served.loop) served.loop->written(job, released);
  }
}

/// read_due(): what has become of runs, then what is due.
void SimProcess::read_due(Served& served) {
  SimLoop& loop = *served.loop;
  std::optional<store::DueEvents>& due = served.due;
  if (!loop.asked().empty() && !due) {
    due.emplace().asked = world_.tables.parked(served.id).asked(loop.asked());
    return;
  }
  store::DueEvents answer = due ? *std::exchange(due, {}) : store::DueEvents{};
  world_.tables.due(served.id, loop.core().holding(), world_.server_now(), answer);
  loop.due_read(std::move(answer));
}

/// P6: what is parked failed by its own fault, and no attempt is counted for an outage.
void SimProcess::check_faults(const Batch& batch) {
  const SimSink& sink = this->sink().sink;
  // Once healed the dice do not tell who has failed.
  const bool others_fail = world_.options.tasks || world_.healed ||
                           world_.options.fail_percent + world_.options.outages > 0;
  for (const store::ParkedEvent& event : batch.parked) {
    const std::size_t number = number_of(event.id);
    const auto dice = static_cast<std::int64_t>(number);
    world_.trace("relay ", +id_.bytes[0], " parks event ", number, " as ",
                 store::to_string(event.state), ", attempts ", event.attempts);
    const bool slow = event.state == store::ParkedState::retrying && event.attempts == 0;
    ++world_.result.parked;
    world_.result.slow += slow ? 1 : 0;
    const bool bad = others_fail || sink.rejections(dice) > 0 || sink.failures(dice) > 0;
    world_.checks.parks(event, number, bad);
    if (event.attempts > 0 && sink.outages.explain(dice))
      world_.checks.broke("P6: an outage parked an event");
  }
  for (const store::RetryResult& result : batch.results) {
    const std::size_t number = number_of(result.id);
    world_.trace("relay ", +id_.bytes[0], " writes that parked event ", number, " is ",
                 result.state ? store::to_string(*result.state) : "delivered", ", attempts ",
                 result.attempts);
    if (!result.state && !world_.topic.has(static_cast<std::int64_t>(number)))
      world_.checks.broke("P2: a retry counts as delivered that never arrived");
    world_.result.dead += result.state == store::ParkedState::dead ? 1 : 0;
    if (result.state && sink.outages.explain(static_cast<std::int64_t>(number)))
      world_.checks.broke("P6: an outage counted an attempt");
  }
}

}  // namespace outbox::sim
