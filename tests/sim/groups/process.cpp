#include "sim/groups/process.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
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

/// How many tasks of the limited type may run at once in a worker.
constexpr std::size_t kMostOfType = 1;

constexpr relay::TenurePace kPace{
    .vacancy_check = std::chrono::milliseconds(1),
    .update = std::chrono::milliseconds(2),
    .maintain = std::chrono::milliseconds(40),
    .sound_tenure = std::chrono::milliseconds(20),
    .reconnect = {.first = std::chrono::milliseconds(2), .longest = std::chrono::milliseconds(16)}};

Error lost_connection() {
  return fail(Errc::unavailable, Remedy::reconnect, "the connection is lost").value();
}
/// A lock that is not free in time, or a serialization failure.
Error passing_failure() {
  return fail(Errc::unavailable, Remedy::retry_transaction, "it passes").value();
}

}  // namespace

SimProcess::SimProcess(GroupShared& world, std::uint64_t number, std::vector<InTransit>& in_transit)
    : world_(world),
      identity_{.id = id_of(number), .name = {}},
      in_transit_(in_transit),
      sets_apart_(world.options.limited_from != 0 && number >= world.options.limited_from),
      core_(identity_, configuration_, trust_, kPace) {
  core_.start(number);
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
      std::make_shared<SimRunner>(world, id(), offset_, sets_apart_ ? kMostOfType : 0);
  run_tracker_ = std::make_unique<SimRunTracker>(world, id(), offset_, runner);
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
    // What the client has queued is delivered even if the loop has stopped.
    default: return sink().step();
  }
}

void SimProcess::crash() {
  world_.trace("relay ", +id().bytes[0], " crashes");
  if (tenure_) {
    for (const auto& served : tenure_->served) keep_in_transit(*served);
  }
  sink().crash();
  if (world_.options.same_machine) world_.tables.members().process_ended(id());
}

/// A statement that was sent when the connection broke may still be executed.
void SimProcess::keep_in_transit(const Served& served) {
  if (served.jobs.empty() || !world_.random.chance(50) || !served.reader.incarnation()) return;
  in_transit_.push_back(
      {.batch = served.jobs.front().batch, .incarnation = *served.reader.incarnation()});
}

void SimProcess::lose_connection() {
  if (tenure_ && !tenure_->failure) tenure_->failure = lost_connection();
}

void SimProcess::stop_for(int steps, bool clock_too) {
  world_.trace("relay ", +id().bytes[0], " is stopped for ", steps,
               clock_too ? ", with its clock" : "");
  stopped_ = steps;
  if (clock_too) offset_ -= std::chrono::milliseconds(steps);
}

bool SimProcess::at_rest() const {
  if (stopped_ != 0 || !tenure_ || tenure_->failure) return false;
  // Strands that are to come together settle again and again, so two subscriptions hardly ever rest
  // at the same time.
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

/// Heartbeats and their answers take their time now and then.
void SimProcess::step_lease() {
  if (!tenure_ || tenure_->failure) return;
  std::optional<Heartbeat>& heartbeat = tenure_->heartbeat;
  if (now() < (heartbeat ? heartbeat->arrives : tenure_->lease.next_at())) return;
  const auto delay = std::chrono::milliseconds(is_troubled(10) ? world_.random.below(120) : 0);
  if (!heartbeat) {
    heartbeat = {.sent = now(), .arrives = now() + delay};
    return;
  }
  if (!heartbeat->answer) {
    heartbeat->arrives = now() + delay;
    if (is_troubled(2))
      heartbeat->answer = outbox::fail(passing_failure());
    else
      heartbeat->answer = world_.tables.members().keep(id(), world_.server_now());
    return;
  }
  const Result<bool>& kept = *heartbeat->answer;
  relay::LeaseCore& lease = tenure_->lease;
  lease.answered(kept, heartbeat->sent, now());
  if (lease.next_at() - now() > (kept ? kLease / 3 : kLease / 20))
    world_.checks.broke("lease: a heartbeat is late");
  if (kept && !*kept && trust_.holds(now()))
    world_.checks.broke("lease: one that is lost is trusted");
  heartbeat.reset();
  tenure_->failure = lease.failure();
}

// ---- the tenure loop

/// Whether a statement fails, or takes long, on a sound connection.
bool SimProcess::is_troubled(unsigned percent) {
  return world_.options.lost_connections > 0 && !world_.healed && world_.random.chance(percent);
}

store::Holding SimProcess::held() const {
  const auto held = core_.holdings().find("default");
  return held == core_.holdings().end() ? store::Holding{} : held->second;
}

bool SimProcess::delivers() const {
  return std::any_of(tenure_->served.begin(), tenure_->served.end(),
                     [](const auto& served) { return served->loop != nullptr; });
}

/// Like TenureLoop::follow(), with steps of others between what the core asks for.
void SimProcess::step_tenures() {
  if (has_left_) return;
  if (!tenure_) {
    if (leaving_for_good_)
      end_relay();
    else if (now() >= begin_at_)
      begin_tenure();
    return;
  }
  for (const auto& served : tenure_->served) {
    const auto incarnation = served->reader.incarnation();
    if (incarnation && *incarnation != world_.database.incarnation()) lose_connection();
  }
  do {
    if (!tenure_->doing) {
      tenure_->doing = core_.next(now());
      check(*tenure_->doing);
    }
    if (!carry_out(*tenure_->doing)) return;
    if (tenure_) tenure_->doing.reset();
  } while (tenure_ && world_.random.chance(70));
}

void SimProcess::begin_tenure() {
  const relay::TimePoint sent = now();
  const bool kept = world_.tables.members().keep(id(), world_.server_now());
  if (!std::exchange(was_member_, true) || kept) {
    trust_.extend_to(relay::trusted_until(sent, kLease));
    core_.begin_tenure(now());
    tenure_ = std::make_unique<Tenure>(Tenure{.lease = {kLease, trust_, now()}});
    tenure_->served.push_back(std::make_unique<Served>(world_, kSubscription));
    return tell();
  }
  begin_at_ = now() + core_.back_off(false, now()).pause;
}

/// Like TenureLoop::tell().
void SimProcess::tell() {
  if (std::exchange(tenure_->rung, false)) {
    core_.ring();
    tenure_->must_update = true;
  }
  if (leaving_for_good_) core_.stop();
  if (tenure_->failure) core_.lose(*tenure_->failure);
  tenure_->must_end = leaving_for_good_ || tenure_->failure;
}

/// Checks what docs/design/groups.md says about the core.
void SimProcess::check(const relay::TenureAction& action) {
  using Kind = relay::TenureAction::Kind;
  const auto forbid = [this](bool happens, const char* what) {
    if (happens) world_.checks.broke(what);
  };
  const Kind kind = action.kind;
  const bool ends = kind == Kind::end;
  const bool passes = action.error && action.error->message == passing_failure().message;
  forbid(tenure_->must_end && !ends && kind != Kind::forget_retries,
         "tenure: one goes on that is to end");
  forbid(ends && !action.error && !leaving_for_good_, "tenure: one ends for no reason");
  forbid(ends && passes && delivers() && trust_.holds(now()),
         "tenure: one that delivers ends, and the failure passes");
  forbid(kind == Kind::change && delivers(), "tenure: lanes change while a loop delivers");
  forbid(kind == Kind::wait && delivers(), "tenure: sinks are closed while a loop delivers");
  forbid(kind == Kind::apply && !trust_.holds(now()), "tenure: one applies without a lease");
  if (kind == Kind::update) tenure_->must_update = false;
  if (kind != Kind::sleep) return;
  forbid(tenure_->must_update && held().lanes != 0, "bells: a tenure loop sleeps though it rang");
  const auto pause = held().lanes == 0 ? kPace.vacancy_check : kPace.update;
  // A clock that stood still seems to have gone back.
  forbid(world_.options.freezes == 0 && action.until - now() > pause,
         "bells: a tenure loop sleeps for too long");
}

bool SimProcess::carry_out(const relay::TenureAction& action) {
  using Kind = relay::TenureAction::Kind;
  if (action.kind == Kind::sleep) return wakes(action.until);
  if (action.kind == Kind::end) return end(action.error);
  if (action.kind == Kind::forget_retries) forget_retries();
  if (action.kind == Kind::forget_retries || action.kind == Kind::report) return true;
  const bool passes = action.kind == Kind::look || action.kind == Kind::change;
  if (tenure_->failure || (passes && is_troubled(2))) {
    tenure_->must_update = false;
    core_.failed(tenure_->failure ? lost_connection() : passing_failure());
    return true;
  }
  switch (action.kind) {
    case Kind::look: look(); return true;
    case Kind::leave: return end_loops();
    case Kind::change: change_lanes(action.lanes); return true;
    case Kind::apply:
      if (sets_apart_) world_.tables.set_apart(false);
      configuration_.note_applied(action.group);
      return true;
    case Kind::update: return update();
    default: return true;
  }
}

void SimProcess::look() {
  Members& members = world_.tables.members();
  const store::Holding holding = held();
  tenure_->must_end = holding.lanes != 0 && !members.owns(holding.lanes, holding.generation);
  core_.looked(members.look(id(), world_.server_now(), kLease));
}

void SimProcess::change_lanes(store::LaneMask lanes) {
  if (is_troubled(2)) return core_.changed(std::nullopt);  // another relay has the lock
  const auto holding = world_.tables.change(id(), lanes, world_.server_now(), kLease);
  world_.checks.follow(world_.tables.rows());
  if (!holding) return core_.failed(relay::lease_lost("it was taken for dead"));
  excuse_repeats(holding->lanes);
  core_.changed(holding);
  ++world_.result.claims;
  world_.trace("relay ", +id().bytes[0], " has lanes ", holding->lanes, ", generation ",
               holding->generation);
}

bool SimProcess::wakes(relay::TimePoint until) {
  const bool rings = tenure_->rung || tenure_->failure || leaving_for_good_;
  if (now() < until && !rings) return false;
  tell();
  return true;
}

bool SimProcess::end(const std::optional<Error>& error) {
  if (error || tenure_->failure) {
    end_tenure();
    begin_at_ = now() + core_.back_off(false, now()).pause;
    return true;
  }
  if (!end_loops()) return false;
  tenure_.reset();
  end_relay();
  return true;
}

/// Like TenureLoop::give_back_lanes() and Worker::stop().
void SimProcess::end_relay() {
  has_left_ = true;
  excuse_repeats(0);
  world_.tables.members().leave(id());
  if (run_tracker_) run_tracker_->stop(std::chrono::milliseconds(world_.random.below(60)));
}

/// The store or the lease is lost. What is in flight gets its outcome or is purged, and nothing
/// more is written.
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
  world_.trace("relay ", +id().bytes[0], " ends its tenure");
  tenure_.reset();
}

/// Ends a loop in order.
void SimProcess::stop(Served& served) {
  if (!served.loop) return;
  served.stopping = true;
  served.reader.remove_all();
  served.loop->stop(kLease / 2, true);
}

/// Like Tenure::update().
bool SimProcess::update() {
  for (const auto& served : tenure_->served) {
    if (served->stopping && !end_loop(*served)) return false;
  }
  if (retire_changed()) return false;
  if (held().lanes == 0) return true;
  begin_type();
  begin_loops();
  return true;
}

/// Ends loops whose subscription has changed. Returns true if some are ending now; the next call
/// then goes on with the rows that were read.
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

/// Like Tenure::begin_types().
void SimProcess::begin_type() {
  Tenure& tenure = *tenure_;
  if (tenure.rows.size() < kSubscriptions) return;
  if (tenure.served.size() < kSubscriptions)
    tenure.served.push_back(std::make_unique<Served>(world_, kOfType));
  const store::Holding holding = held();
  if (tenure.begun_type == holding) return;
  if (!world_.tables.begin_beside(holding.lanes, holding.generation)) return lose_connection();
  world_.checks.follow(world_.tables.rows());
  tenure.begun_type = holding;
  ++world_.result.types_begun;
  world_.trace("relay ", +id().bytes[0], " has begun the type in lanes ", holding.lanes);
}

/// Like Tenure::start_new().
void SimProcess::begin_loops() {
  for (const auto& served : tenure_->served) {
    const store::SubscriptionRow& row = tenure_->rows[static_cast<std::size_t>(served->id - 1)];
    if (tenure_->failure || served->loop || row.state != store::SubscriptionState::active) continue;
    begin_loop(*served, row);
  }
}

/// What retries have delivered is forgotten of all lanes, also of those that the relay keeps.
void SimProcess::forget_retries() {
  store::LaneMask kept = 0;
  for (unsigned lane = 0; lane < 64; ++lane) {
    if (world_.tables.members().owner_of(lane) == id()) kept |= store::LaneMask{1} << lane;
  }
  excuse_repeats(kept);
  for (RetainedSink& retained : retained_) {
    for (const auto& event : std::exchange(retained.retry_acks, {}))
      world_.runs.forgotten(number_of(event.id));
  }
}

/// Excuses repeats under P5: the next owner of lanes does not know what was delivered and not
/// settled in time.
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

/// As in Tenure::load_strands(), a claim makes one strand of lanes that have come to one cursor.
void SimProcess::begin_loop(Served& served, store::SubscriptionRow row) {
  const store::Holding holding = held();
  auto strands = world_.tables.strands(served.id, holding.lanes);
  const bool claimed =
      std::all_of(strands.begin(), strands.end(), [&](const store::Strand& strand) {
        return strand.generation == holding.generation && strand.rows == 1;
      });
  if (!claimed) {
    // The claim is refused as by hold_lanes().
    if (!world_.tables.members().owns(holding.lanes, holding.generation)) return lose_connection();
    world_.tables.claim(served.id, holding.lanes, holding.generation);
    world_.checks.follow(world_.tables.rows());
    strands = world_.tables.strands(served.id, holding.lanes);
  }
  store::LaneMask covered = 0;
  for (const store::Strand& strand : strands) covered |= strand.lanes;
  if (covered != holding.lanes) return world_.checks.broke("lanes have no cursor");
  if (strands.size() > 1) ++world_.result.several_strands;
  const auto failed = [](const Error&) {};  // read_replay() reports the failure
  row.replay = world_.tables.running_replay();
  std::shared_ptr<relay::ReplayRun> replay;
  if (row.replay != 0) {
    // As in Tenure::begin_loop().
    replay = *relay::begin_replay(std::make_unique<SimReplays>(world_.database, world_.tables),
                                  row.replay, holding.lanes, strands, {.page_events = 5}, failed);
    if (!replay) row.replay = 0;
    if (replay && replay->strands.empty()) replay = nullptr;
  }
  if (replay) strands = replay->strands;
  world_.trace("relay ", +id().bytes[0], replay ? " replays " : " delivers ", row.spec.name);
  served.parked_version = row.parked_version;
  const SimLoop::Links links{.relay = id(), .clock = offset_, .trust = trust_, .jobs = served.jobs};
  served.loop = std::make_unique<SimLoop>(world_, retained(served.id), links, std::move(row),
                                          holding, strands, replay);
  if (replay) return;
  for (std::size_t i = 0; i < strands.size(); ++i)
    served.reader.add(i, strands[i].lanes, strands[i].cursor);
}

bool SimProcess::end_loops() {
  for (const auto& served : tenure_->served) {
    if (!served->stopping) stop(*served);
  }
  return std::all_of(tenure_->served.begin(), tenure_->served.end(),
                     [this](const auto& served) { return !served->stopping || end_loop(*served); });
}

bool SimProcess::end_loop(Served& served) {
  if (!served.loop->is_over()) return false;
  served.stopping = false;
  if (!served.jobs.empty()) {
    lose_connection();  // the last settlement was not written in time
    return false;
  }
  served.loop->end();
  served.loop.reset();
  served.due.reset();
  return true;
}

// ---- the other threads

/// One of the subscriptions, at random.
SimProcess::Served& SimProcess::any() {
  auto& served = tenure_->served;
  return *served[served.size() == 1 ? 0 : world_.random.below(served.size())];
}

void SimProcess::step_reader() {
  if (!tenure_ || tenure_->failure || held().lanes == 0) return;
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
  if (!tenure_ || tenure_->failure) return;
  SimLoop* const loop = any().loop.get();
  if (loop == nullptr) return;
  const bool replayed = loop->replayed();
  loop->step();
  if (loop->replayed() && !replayed) tenure_->rung = true;
  if (loop->is_distrusted() && !tenure_->failure) tenure_->failure = relay::lease_lost("in time");
}

void SimProcess::step_settler() {
  if (!tenure_ || tenure_->failure) return;
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

/// Like read_due(): one statement reads what has become of runs, and the next one reads what is
/// due.
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

/// Checks P6: what is parked failed by its own fault, and no attempt is counted for an outage.
void SimProcess::check_faults(const Batch& batch) {
  const SimSink& sink = this->sink().sink;
  // Once the world is healed, the settings no longer tell which events have failed.
  const bool others_fail = world_.options.tasks || world_.healed ||
                           world_.options.fail_percent + world_.options.outages > 0;
  for (const store::ParkedEvent& event : batch.parked) {
    const std::size_t number = number_of(event.id);
    const auto dice = static_cast<std::int64_t>(number);
    world_.trace("relay ", +id().bytes[0], " parks event ", number, " as ",
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
    world_.trace("relay ", +id().bytes[0], " writes that parked event ", number, " is ",
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
