#include "sim/groups/process.hpp"

#include <algorithm>

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

}  // namespace

SimProcess::SimProcess(GroupShared& world, std::uint64_t number, std::vector<InTransit>& in_transit)
    : world_(world),
      id_(id_of(number)),
      in_transit_(in_transit),
      retained_{.sink = SimSink(world.random, world.topic, world.options.gapless)} {
  retained_.sink.fail_percent = world.options.fail_percent;
  retained_.sink.lie_percent = world.options.lie_percent;
  retained_.sink.reject_percent = world.options.reject_percent;
  retained_.sink.sick_percent = world.options.sick_percent;
  retained_.sink.slow_percent = world.options.slow_percent;
  go_down(world.down_for > 0);
  if (world.healed) heal();
  if (world.options.clocks_differ && number % 2 == 0) offset_ = std::chrono::hours(1);
  if (!world.options.tasks) return;
  retained_.runner = std::make_unique<SimRunner>(world, id_, offset_);
  run_keeper_ = std::make_unique<SimRunKeeper>(world, id_, offset_, *retained_.runner);
}

void SimProcess::step() {
  if (stopped_ > 0) {
    --stopped_;
    return;
  }
  switch (world_.random.below(run_keeper_ ? 15 : 12)) {
    case 0: return step_keeper();
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
    case 13: return run_keeper_->step();
    // What the client has queued goes on being delivered, whatever the loop knows.
    default: return retained_.step();
  }
}

void SimProcess::crash() {
  world_.trace("relay ", +id_.bytes[0], " crashes");
  if (tenure_ && !tenure_->jobs.empty() && world_.random.chance(50) &&
      tenure_->reader.incarnation())
    in_transit_.push_back(
        {.batch = tenure_->jobs.front().batch, .incarnation = *tenure_->reader.incarnation()});
  retained_.crash();
  if (world_.options.same_machine) world_.tables.process_ended(id_);
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
  return stopped_ == 0 && tenure_ && !tenure_->failed && !tenure_->stopping &&
         tenure_->jobs.empty() && (!tenure_->loop || tenure_->loop->idle()) &&
         (!run_keeper_ || (retained_.runner->idle() && run_keeper_->idle()));
}

// ---- the lease

void SimProcess::step_lease() {
  if (!tenure_ || tenure_->failed || now() < renew_at_) return;
  const relay::TimePoint before = now();
  if (!world_.tables.keep(id_, world_.server_now())) {
    trust_.end();
    tenure_->failed = true;
    return;
  }
  trust_.extend_to(before + kLease - kLease / 5);
  renew_at_ = before + kLease / 3;
}

// ---- the keeper

void SimProcess::step_keeper() {
  if (has_left_) return;
  if (!tenure_) {
    if (leaving_for_good_)
      end_relay();
    else if (world_.random.chance(30))
      begin_tenure();
    return;
  }
  if (tenure_->failed) return end_tenure();
  if (tenure_->reader.incarnation() &&
      *tenure_->reader.incarnation() != world_.database.incarnation())
    return lose_connection();
  look();
}

void SimProcess::begin_tenure() {
  const relay::TimePoint before = now();
  // A false answer: it was removed, and is registered again.
  (void)world_.tables.keep(id_, world_.server_now());
  trust_.extend_to(before + kLease - kLease / 5);
  renew_at_ = before + kLease / 3;
  tenure_ = std::make_unique<Tenure>(world_);
}

/// Worker::stop()
void SimProcess::end_relay() {
  has_left_ = true;
  if (run_keeper_) run_keeper_->stop(std::chrono::milliseconds(world_.random.below(60)));
}

/// The store or the lease is lost: what is in flight gets its outcome or is purged, nothing more is written.
void SimProcess::end_tenure() {
  if (SimLoop* const loop = tenure_->loop.get(); loop != nullptr) {
    loop->stop(now(), false);
    const bool waits = world_.random.chance(70);
    for (int step = 0; waits && loop->in_flight() && step < 1000; ++step) {
      retained_.step();
      loop->take_outcomes(now());
    }
    if (!tenure_->jobs.empty() && world_.random.chance(50) && tenure_->reader.incarnation())
      in_transit_.push_back(
          {.batch = tenure_->jobs.front().batch, .incarnation = *tenure_->reader.incarnation()});
    loop->end(now());
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

void SimProcess::look() {
  Tenure& tenure = *tenure_;
  if (tenure.stopping && !end_loop()) return;
  if (leaving_for_good_ && !tenure.loop) {
    world_.tables.leave(id_);
    tenure_.reset();
    return end_relay();
  }
  const store::Fleet fleet = world_.tables.look(id_, world_.server_now(), kLease);
  if (held_before_.lanes != 0) forget_retries(fleet);
  if (lost_lanes(fleet)) return lose_connection();
  const store::LaneMask lanes = wanted(fleet);
  const bool merges = tenure.loop && tenure.loop->could_merge() && tenure.jobs.empty();
  const bool changed =
      tenure.loop && (tenure.loop->parked_version() != world_.tables.parked_version() ||
                      tenure.loop->replay_changed(world_.tables.running_replay()));
  if (lanes == tenure.holding.lanes && !merges && !changed) {
    if (!tenure.loop && lanes != 0) begin_loop();
    return;
  }
  if (tenure.loop) {
    tenure.stopping = true;
    tenure.reader.remove_all();
    tenure.stop_by = now() + kLease / 2;
    if (merges) ++world_.result.merges;
    return tenure.loop->stop(now(), true);
  }
  change_lanes(lanes);
}

/// Keeper::forget_retries_of_lost_lanes()
void SimProcess::forget_retries(const store::Fleet& fleet) {
  const store::Holding before = std::exchange(held_before_, {});
  store::LaneMask kept = 0;
  for (const store::OwnedLanes& owned : fleet.groups.front().owners) {
    if (owned.owner == id_ && owned.generation == before.generation) kept |= owned.lanes;
  }
  if ((before.lanes & ~kept) != 0) retained_.retry_acks.clear();
}

void SimProcess::change_lanes(store::LaneMask lanes) {
  Tenure& tenure = *tenure_;
  const auto holding = world_.tables.change(id_, lanes, world_.server_now(), kLease);
  world_.checks.follow(world_.tables.rows());
  if (!holding) return lose_connection();
  if ((tenure.holding.lanes & ~holding->lanes) != 0) retained_.retry_acks.clear();
  tenure.holding = *holding;
  ++world_.result.claims;
  world_.trace("relay ", +id_.bytes[0], " has lanes ", holding->lanes, ", generation ",
               holding->generation);
}

/// Tenure::load_strands(): a claim makes lanes that have come to one cursor one strand.
void SimProcess::begin_loop() {
  Tenure& tenure = *tenure_;
  const store::Holding& holding = tenure.holding;
  auto strands = world_.tables.strands(holding.lanes);
  const bool claimed =
      std::all_of(strands.begin(), strands.end(), [&](const store::Strand& strand) {
        return strand.generation == holding.generation && strand.rows == 1;
      });
  if (!claimed) {
    // hold_lanes
    for (unsigned lane = 0; lane < 64; ++lane) {
      if ((holding.lanes >> lane & 1U) != 0 &&
          world_.tables.generation_of(lane) != holding.generation)
        return lose_connection();
    }
    world_.tables.claim(holding.lanes, holding.generation);
    world_.checks.follow(world_.tables.rows());
    strands = world_.tables.strands(holding.lanes);
  }
  if (strands.size() > 1) ++world_.result.several_strands;
  const auto failed = [](const Error&) {};  // the round says so
  std::int64_t running = world_.tables.running_replay();
  std::shared_ptr<relay::ReplayRun> replay;
  if (running != 0) {
    // Tenure::make_loop()
    replay = *relay::begin_replay(std::make_unique<SimReplays>(world_.database, world_.tables),
                                  running, holding.lanes, strands, {.page_events = 5}, failed);
    if (!replay) running = 0;
    if (replay && replay->strands.empty()) replay = nullptr;
  }
  if (replay) strands = replay->strands;
  world_.trace("relay ", +id_.bytes[0], replay ? " replays" : " delivers");
  tenure.loop = std::make_unique<SimLoop>(world_, retained_, holding, strands, running, replay);
  if (replay) return;
  for (std::size_t i = 0; i < strands.size(); ++i)
    tenure.reader.add(i, strands[i].lanes, strands[i].cursor);
}

bool SimProcess::end_loop() {
  Tenure& tenure = *tenure_;
  const bool late = now() >= tenure.stop_by;
  if (!tenure.loop->finished() && !late) return false;
  tenure.stopping = false;
  if (!tenure.jobs.empty()) {
    lose_connection();  // its last settlement was not written in time
    return false;
  }
  tenure.loop->end(now());
  tenure.loop.reset();
  return true;
}

// ---- the other threads

void SimProcess::step_reader() {
  if (!tenure_ || tenure_->failed || tenure_->holding.lanes == 0) return;
  SimLoop* const loop = tenure_->loop.get();
  const bool has_room = loop != nullptr && !tenure_->stopping && loop->has_room();
  if (loop != nullptr && loop->replays()) {
    if (has_room && !loop->read_replay()) lose_connection();
    return;
  }
  const bool works = tenure_->reader.step(has_room, [&](std::size_t strand, const auto& page) {
    loop->take_page(strand, page, now());
  });
  if (!works) lose_connection();
}

void SimProcess::step_loop() {
  if (!tenure_ || !tenure_->loop) return;
  const bool trusted = trust_.holds(now());
  std::vector<SimLoop::Job> jobs;
  if (!trusted && !tenure_->failed) {
    tenure_->loop->stop(now(), false);
    retained_.purge();
    tenure_->loop->take_outcomes(now());
    return lose_connection();
  }
  if (tenure_->failed) return;
  tenure_->loop->step(now(), trusted, jobs);
  for (auto& job : jobs) tenure_->jobs.push_back(std::move(job));
}

void SimProcess::step_settler() {
  if (!tenure_ || tenure_->failed) return;
  if (tenure_->jobs.empty()) {
    SimLoop* const loop = tenure_->loop.get();
    if (loop != nullptr && loop->asks())
      loop->loaded(world_.tables.due(loop->holding(), world_.server_now(), loop->asked_runs()),
                   now());
    return;
  }
  SimReader& reader = tenure_->reader;
  Batch all;
  for (const auto& job : tenure_->jobs) all.add(job.batch);
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
  for (const auto& job : std::exchange(tenure_->jobs, {})) {
    if (tenure_->loop) tenure_->loop->written(job.strand, now());
  }
}

/// P6: what is parked failed by its own fault, and no attempt is counted for an outage.
void SimProcess::check_faults(const Batch& batch) {
  const SimSink& sink = retained_.sink;
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
