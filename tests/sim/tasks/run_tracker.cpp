#include "sim/tasks/run_tracker.hpp"

#include <algorithm>
#include <utility>

namespace outbox::sim {
namespace {

/// How long a stop waits until the last ends are written.
constexpr std::chrono::milliseconds kLastWrite{40};

task::RunTrackerOptions options() {
  return {.retries = SimRunner::retries(),
          .last_write = kLastWrite,
          .sharing = {.heartbeat = kHeartbeat,
                      .settled = std::chrono::milliseconds(3),
                      .turn = std::chrono::milliseconds(3),
                      .claim_every = std::chrono::milliseconds(15)}};
}

}  // namespace

SimRunTracker::SimRunTracker(GroupShared& world, const EventId& worker,
                             const relay::TimePoint::duration& clock,
                             const std::shared_ptr<SimRunner>& runner)
    : world_(world),
      worker_(worker),
      clock_(clock),
      runner_(runner),
      rows_(world, worker),
      core_(worker, options()) {
  core_.add(runner->core());
  runner->core()->on_work([this] { rung_ = true; });
}

void SimRunTracker::lose_connection() {
  connected_ = in_round_ = false;
  core_.disconnected();
}

void SimRunTracker::step() {
  if (over_) return;
  if (connected_ && incarnation_ != world_.database.incarnation()) lose_connection();
  if (!in_round_) return begin_round();
  const auto more = core_.step(rows_, now());
  follow(core_.news());
  kept_ = runner_->core()->kept();
  if (!more) lose_connection();
  if (!more || !*more) end_round();
}

/// Begins a round if one is due; otherwise checks that waiting is right.
void SimRunTracker::begin_round() {
  // Not every worker is notified, because some connect through a pooler.
  const bool hears = connected_ && worker_.bytes[1] % 2 == 0;
  if (std::exchange(heard_of_ready_, world_.tables.told_of_ready()) != heard_of_ready_ && hears) {
    core_.told();
    rung_ = true;
  }
  const auto reconnect_at = connected_ ? std::nullopt : std::optional(now());
  if (!rung_ && now() < core_.next_at(now(), reconnect_at)) return check_wait();
  rung_ = false;
  core_.begin_round(now());
  if (!connected_ && world_.random.chance(30)) {
    connected_ = true;
    incarnation_ = world_.database.incarnation();
    core_.connected();
  }
  in_round_ = connected_;
  if (!in_round_) end_round();
}

void SimRunTracker::end_round() {
  in_round_ = false;
  over_ = core_.is_over(connected_ ? &rows_ : nullptr, now());
  kept_ = runner_->core()->kept();
  if (!over_) return;
  world_.result.given_back += core_.given_back();
  if (!kept_.empty()) world_.checks.broke("a worker leaves runs behind that belong to it");
  if (core_.unwritten() > 0 && now() < *stop_by_ + kLastWrite)
    world_.checks.broke("a worker leaves before the ends of its runs are written");
}

/// The run tracker may only wait if nothing is to be done, because nobody else would wake it.
void SimRunTracker::check_wait() {
  if (connected_ && now() - beat_at_ >= kHeartbeat) world_.checks.broke("a heartbeat is late");
  if (!runner_->core()->kept_ends().empty() || !runner_->core()->finished().empty())
    world_.checks.broke("an end waits, and the run tracker was not told");
}

void SimRunTracker::follow(const task::RunTrackerNews& news) {
  world_.result.runless += news.runless.size();
  world_.result.lost += news.lost.size();
  for (const store::TaskRunRow& row : news.runless)
    world_.trace("worker ", +worker_.bytes[0], " gives back task ", number_of(row.id),
                 ", which does not run");
  for (const EventId& task : news.cancelled)
    world_.trace("worker ", +worker_.bytes[0], " hears that task ", number_of(task),
                 " is cancelled");
  for (const sink::KeptRun& run : news.lost) {
    world_.trace("worker ", +worker_.bytes[0], " has lost task ", number_of(run.id));
    world_.runs.loses(run, worker_);
  }
  for (const EventId& dead : news.dead) world_.runs.taken_for_dead(dead, world_.now, kHeartbeat);
  for (const auto& [dead, tasks] : news.recovered) {
    world_.trace("worker ", +worker_.bytes[0], " has recovered what worker ", +dead.bytes[0],
                 " left");
    world_.result.recovered += tasks;
  }
  if (std::exchange(rows_.beaten, false)) beat_at_ = now();
  if (const auto own = std::exchange(rows_.own, {})) check_comparison(*own);
}

void SimRunTracker::check_comparison(const std::vector<store::TaskRunRow>& own) const {
  for (const sink::KeptRun& run : runner_->core()->kept()) {
    const bool compared = std::any_of(kept_.begin(), kept_.end(), [&](const sink::KeptRun& one) {
      return one.seq == run.seq && one.token == run.token;
    });
    if (compared) world_.runs.goes_on(run, worker_, own);
  }
}

}  // namespace outbox::sim
