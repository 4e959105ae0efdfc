#include "sim/tasks/run_keeper.hpp"

#include <algorithm>
#include <utility>

namespace outbox::sim {
namespace {

constexpr int kLooks = 2;
/// At a stop, for the last ends to be written.
constexpr std::chrono::milliseconds kLastWrite{40};
constexpr task::ExchangeOptions kSharing{.heartbeat = kHeartbeat,
                                         .settled = std::chrono::milliseconds(3),
                                         .turn = std::chrono::milliseconds(3),
                                         .claim_every = std::chrono::milliseconds(15)};

}  // namespace

SimRunKeeper::SimRunKeeper(GroupShared& world, const EventId& worker,
                           const relay::TimePoint::duration& clock,
                           const std::shared_ptr<SimRunner>& runner)
    : world_(world), worker_(worker), clock_(clock), runner_(*runner), exchange_(worker, kSharing) {
  exchange_.add(runner);
}

void SimRunKeeper::step() {
  if (over_) return;
  runner_.watch();
  take_ends();
  if (connected_ && incarnation_ != world_.database.incarnation()) lose_connection();
  if (connected_) {
    work();
  } else if (world_.random.chance(30)) {
    connect();
  }
  watch_stop();
}

void SimRunKeeper::connect() {
  connected_ = true;
  incarnation_ = world_.database.incarnation();
  kept_.reset();
  dead_.clear();
  rows_of_dead_.clear();
  exchange_.start_over();
}

void SimRunKeeper::take_ends() {
  for (const task::KeptEnd& kept : runner_.kept_ends())
    ends_.push_back(task::end_of(kept, worker_));
  for (task::FinishedRun& run : runner_.finished()) finished_.push_back(std::move(run));
}

/// RunKeeper::is_over()
void SimRunKeeper::watch_stop() {
  if (!stop_by_) return;
  const bool runs = !runner_.kept().empty();
  take_ends();
  if (ends_.empty() && finished_.empty() && !runs) {
    if (connected_ && !std::exchange(compared_, true)) return compare_after_stop();
    if (connected_) world_.tables.forget_worker(worker_);
    over_ = true;
  } else if (now() >= *stop_by_ && !given_up_) {
    given_up_ = true;
    world_.result.given_back += runner_.kept().size();
    runner_.give_up_kept();
  } else if (given_up_ && now() >= *stop_by_ + kLastWrite) {
    over_ = true;
  }
}

/// The relay may have written the row of a run that it gave up when it stopped. Twice: see OwnRows.
void SimRunKeeper::compare_after_stop() {
  for (int i = 0; i < 2; ++i) {
    unkept_ = runner_.unkept();
    kept_ = runner_.kept();
    compare();
  }
}

void SimRunKeeper::work() {
  if (kept_) return compare();
  if (!rows_of_dead_.empty() || !dead_.empty()) return recover();
  if (!beat_at_ || now() >= *beat_at_) return begin_comparison();
  if (!ends_.empty() || !finished_.empty()) return write();
  if (claims_ && now() >= exchange_.next_at()) return share();
  if (!look_at_ || now() >= *look_at_) look();
}

/// Not every worker is notified: some have a pooler before them.
void SimRunKeeper::share() {
  const bool hears = worker_.bytes[1] % 2 == 0;
  if (std::exchange(heard_of_ready_, world_.tables.told_of_ready()) != heard_of_ready_ && hears)
    exchange_.told();
  SimSharedRows rows(world_);
  if (!exchange_.turn(rows, now())) lose_connection();
}

void SimRunKeeper::begin_comparison() {
  world_.tables.beat(worker_, world_.server_now());
  world_.runs.beats(worker_, world_.now);
  beat_at_ = now() + kHeartbeat;
  unkept_ = runner_.unkept();
  kept_ = runner_.kept();
}

void SimRunKeeper::compare() {
  const auto kept = *std::exchange(kept_, {});
  const auto rows = world_.tables.runs_of(worker_);
  const auto difference = own_rows_.compare(unkept_, kept, ends_, rows);
  for (const store::TaskRunRow& row : difference.runless) {
    ++world_.result.runless;
    world_.trace("worker ", +worker_.bytes[0], " gives back task ", number_of(row.id),
                 ", which does not run");
    ends_.push_back(task::end_of({.run = {.subscription = row.subscription,
                                          .seq = row.seq,
                                          .id = row.id,
                                          .attempts = row.attempts,
                                          .token = row.token}},
                                 worker_));
  }
  for (const sink::KeptRun& run : difference.cancelled) {
    world_.trace("worker ", +worker_.bytes[0], " hears that task ", number_of(run.id),
                 " is cancelled");
    runner_.cancel(run);
  }
  for (const sink::KeptRun& run : difference.lost) {
    ++world_.result.lost;
    world_.trace("worker ", +worker_.bytes[0], " has lost task ", number_of(run.id));
    runner_.lose(run);
  }
  for (const sink::KeptRun& run : runner_.kept()) {
    const bool compared = std::any_of(kept.begin(), kept.end(), [&](const sink::KeptRun& one) {
      return one.seq == run.seq && one.token == run.token;
    });
    if (compared) world_.runs.goes_on(run, worker_, rows);
  }
}

/// One transaction. False: the connection broke, and it may be written.
bool SimRunKeeper::end(const std::vector<store::TaskRunEnd>& ends,
                       const std::vector<store::TaskFinish>& finishes) {
  const bool breaks =
      world_.options.lost_connections > 0 && !world_.healed && world_.random.chance(5);
  if (breaks) lose_connection();
  if (breaks && world_.random.chance(50)) return false;
  world_.runs.writes(ends, worker_);
  const auto written = world_.tables.end_runs(ends, finishes, world_.server_now());
  for (std::size_t i = 0; i < ends.size(); ++i)
    world_.trace("worker ", +worker_.bytes[0], " writes the end of task ",
                 number_of(ends[i].result.id), ", token ", ends[i].token, ": ",
                 ends[i].result.state ? store::to_string(*ends[i].result.state) : "done",
                 written[i] ? "" : ", refused");
  world_.runs.written(written);
  for (std::size_t i = 0; i < ends.size(); ++i) {
    if (!written[i]) continue;
    const std::size_t number = number_of(ends[i].result.id);
    const ParkedTable& parked = world_.tables.parked(ends[i].result.subscription);
    if (parked.discarded().contains(ends[i].result.seq)) {
      ++world_.result.cancelled;
      world_.checks.discarded(number);
    } else if (ends[i].result.state == store::ParkedState::dead) {
      ++world_.result.dead;
      world_.checks.died(number);
    }
  }
  return !breaks;
}

void SimRunKeeper::write() {
  std::vector<store::TaskFinish> finishes;
  for (const auto& run : finished_) finishes.push_back(run.finish);
  if (!end(ends_, finishes)) return;
  for (const auto& run : finished_) runner_.noted(run);
  if (!ends_.empty()) runner_.announce_changed_rows();
  ends_.clear();
  finished_.clear();
}

void SimRunKeeper::look() {
  look_at_ = now() + kHeartbeat / kLooks;
  dead_ = others_.silent(world_.tables.others(worker_), now(), kHeartbeat);
  for (const EventId& dead : dead_) world_.runs.taken_for_dead(dead, world_.now, kHeartbeat);
}

void SimRunKeeper::recover() {
  const EventId dead = dead_.back();
  if (rows_of_dead_.empty()) {
    rows_of_dead_ = world_.tables.runs_of(dead);
    if (!rows_of_dead_.empty()) return;
    others_.forget(dead);
    world_.tables.forget_worker(dead);
    return dead_.pop_back();
  }
  world_.trace("worker ", +worker_.bytes[0], " recovers what worker ", +dead.bytes[0], " left");
  std::vector<store::TaskRunEnd> ends;
  for (const store::TaskRunRow& row : std::exchange(rows_of_dead_, {}))
    ends.push_back(task::end_of_dead(row, dead, SimRunner::retries()));
  if (!end(ends, {})) return;
  world_.result.recovered += ends.size();
  runner_.announce_changed_rows();
}

}  // namespace outbox::sim
