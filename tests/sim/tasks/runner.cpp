#include "sim/tasks/runner.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.hpp"

namespace outbox::sim {
namespace {

constexpr std::size_t kThreads = 4;
/// Quick ones are taken before a thread is free.
constexpr std::size_t kAhead = 2;
constexpr std::chrono::milliseconds kDeadline{150};
constexpr std::chrono::milliseconds kDeadlineGrace{60};
constexpr std::chrono::milliseconds kLongestWait{5};

std::uint64_t dice_of(std::size_t number, std::uint64_t which) {
  return splitmix64(number * 61 + which);
}

Outcome outcome(Token token, Outcome::Kind kind, const char* why) {
  return {
      .token = token, .kind = kind, .error = fail(Errc::internal, Remedy::retry_call, why).value()};
}

}  // namespace

const task::RetrySchedule& SimRunner::retries() {
  static_assert(kMostRuns == 3);
  static const task::RetrySchedule schedule({"3ms", "9ms"}, 0);
  return schedule;
}

// ---- the sink

Status SimRunner::open() const {
  const bool given_up = std::any_of(running_.begin(), running_.end(), [](const Run& run) {
    return run->dropped && !run->kept && !run->replaced;
  });
  if (!given_up) return {};
  return fail(Errc::unavailable, Remedy::retry_call, "handlers that were told to stop still run");
}

std::size_t SimRunner::busy() const {
  return static_cast<std::size_t>(std::count_if(running_.begin(), running_.end(),
                                                [](const Run& run) { return !run->replaced; }));
}

std::size_t SimRunner::room() const {
  const std::size_t taken = busy() + waiting_.size();
  return taken >= kThreads + kAhead ? 0 : kThreads + kAhead - taken;
}

void SimRunner::send(Token token, const EventView& event, std::size_t attempt,
                     std::int64_t generation) {
  const std::size_t number = number_of(event.id);
  const WrittenEvent& written = world_.database.event(number);
  waiting_.push_back(std::make_shared<SimRun>(SimRun{.token = token,
                                                     .number = number,
                                                     .seq = event.seq,
                                                     .id = event.id,
                                                     .attempt = attempt,
                                                     .key = written.key,
                                                     .lane = written.lane,
                                                     .worker = worker_,
                                                     .generation = generation,
                                                     .began = now()}));
}

std::vector<Outcome> SimRunner::receive() {
  watch();
  while (!waiting_.empty() && now() - waiting_.front()->began >= kLongestWait) {
    ready_.push_back(outcome(waiting_.front()->token, Outcome::Kind::postponed, "no thread"));
    ready_.back().retry_after = Duration::zero();
    waiting_.pop_front();
  }
  return std::exchange(ready_, {});
}

void SimRunner::purge() {
  for (const Run& run : waiting_)
    ready_.push_back(outcome(run->token, Outcome::Kind::retry, "it had not begun"));
  waiting_.clear();
  for (const Token token : std::exchange(awaited_, {}))
    ready_.push_back(outcome(token, Outcome::Kind::unknown, "its end was not noted"));
  for (const Run& run : running_) {
    if (run->kept || std::exchange(run->dropped, true)) continue;
    tell(*run);
    ready_.push_back(outcome(run->token, Outcome::Kind::unknown, "it ran when the worker stopped"));
  }
}

bool SimRunner::keep(Token token, const sink::KeptRun& run) {
  const auto found = std::find_if(running_.begin(), running_.end(), [&](const Run& one) {
    return one->token == token && !one->dropped;
  });
  if (found == running_.end()) return false;
  (*found)->kept = run;
  ++world_.result.kept;
  world_.trace("worker ", +worker_.bytes[0], " keeps task ", (*found)->number, ", token ",
               run.token);
  return true;
}

// ---- the threads

void SimRunner::step() {
  if (killed_) return;
  while (!waiting_.empty() && busy() < kThreads) begin_next();
  const std::vector<Run> runs = running_;
  for (const Run& run : runs) {
    if (run->way == SimRun::Way::hangs && !run->told) continue;
    if (world_.random.chance(50) || --run->left > 0) continue;
    if (run->way == SimRun::Way::kills && !run->told) {
      world_.trace("task ", run->number, " kills worker ", +worker_.bytes[0]);
      killed_ = true;
      return;
    }
    end(run);
  }
}

void SimRunner::begin_next() {
  const Run run = waiting_.front();
  waiting_.pop_front();
  run->began = now();
  world_.runs.begins(run);
  decide(*run);
  world_.trace("worker ", +worker_.bytes[0], " begins task ", run->number, " (seq ", run->seq,
               ", k", run->key, "), attempt ", run->attempt);
  running_.push_back(run);
  ++world_.result.runs;
}

void SimRunner::decide(SimRun& run) const {
  const GroupOptions& options = world_.options;
  const std::size_t number = run.number;
  const int before = world_.runs.runs(number) - 1;
  const auto is = [&](std::uint64_t which, unsigned percent) {
    return dice_of(number, which) % 100 < percent;
  };
  const auto some = [&](std::uint64_t which, std::uint64_t most) {
    return before < 1 + static_cast<int>(dice_of(number, which) / 100 % most);
  };
  const bool is_long = is(1, options.slow_percent);
  run.left = static_cast<int>(world_.random.below(is_long ? 90 : 4));
  if (!world_.healed && is(2, options.kill_percent) && some(2, 2)) {
    run.way = SimRun::Way::kills;
    run.left = static_cast<int>(world_.random.below(60));
  } else if (is(3, options.sick_percent) && some(3, 2)) {
    run.way = SimRun::Way::hangs;
    run.end = TaskEnd::failed("was told to stop");
  } else if (is(4, options.reject_percent) && some(4, 5)) {
    run.end = is(5, 20) ? TaskEnd::dead("no run can succeed") : TaskEnd::failed("failed");
  } else if (is(6, options.snooze_percent) && some(6, 3)) {
    run.end = TaskEnd::snooze(std::chrono::milliseconds(5));
  }
}

/// A handler may go on for a while.
void SimRunner::tell(SimRun& run) const {
  if (std::exchange(run.told, true)) return;
  if (run.way != SimRun::Way::ends || world_.random.chance(50))
    run.left = static_cast<int>(world_.random.below(world_.random.chance(20) ? 150 : 20));
}

void SimRunner::end(const Run& run) {
  std::erase(running_, run);
  world_.runs.over(run);
  world_.trace("worker ", +worker_.bytes[0], " ends task ", run->number,
               run->dropped ? ", which does not count" : "");
  // Its effect; of one that stopped, perhaps.
  if (run->end.kind() == TaskEnd::Kind::done && (!run->told || world_.random.chance(50)))
    world_.topic.arrive(static_cast<std::int64_t>(run->number));
  else if (run->end.kind() == TaskEnd::Kind::done)
    run->end = TaskEnd::failed("was told to stop");
  if (!run->dropped) report(*run, run->end);
}

/// Runner::Shared::report()
void SimRunner::report(const SimRun& run, const TaskEnd& end) {
  const bool final = end.kind() == TaskEnd::Kind::dead;
  if (final || end.kind() == TaskEnd::Kind::failed) world_.runs.failed(run.number, final);
  Outcome outcome = task::outcome_of(run.token, end);
  retries().decide(outcome, run.attempt, std::nullopt, run.id);
  std::optional<store::TaskFinish> finish;
  if (end.kind() == TaskEnd::Kind::done && is_noted(run.number)) {
    finish = store::TaskFinish{.id = run.id};
  }
  if (run.kept) {
    ends_.push_back({.run = *run.kept, .outcome = std::move(outcome), .finish = finish});
  } else if (finish) {
    awaited_.insert(run.token);
    finished_.push_back({.source = 0, .outcome = std::move(outcome), .finish = *finish});
  } else {
    ready_.push_back(std::move(outcome));
  }
}

// ---- for the keeper

void SimRunner::watch() {
  for (const Run& run : running_) {
    if (now() < run->began + kDeadline) continue;
    tell(*run);
    if (now() < run->began + kDeadline + kDeadlineGrace || run->replaced) continue;
    if (!run->dropped) report(*run, TaskEnd::failed("did not end within its deadline"));
    run->dropped = run->replaced = true;
    world_.trace("worker ", +worker_.bytes[0], " gives up the thread of task ", run->number);
  }
}

std::vector<sink::KeptRun> SimRunner::kept() const {
  std::vector<sink::KeptRun> all;
  for (const Run& run : running_) {
    if (run->kept && !run->dropped) all.push_back(*run->kept);
  }
  return all;
}

std::vector<EventId> SimRunner::unkept() const {
  std::vector<EventId> all;
  for (const Run& run : running_) {
    if (!run->kept && !run->dropped) all.push_back(run->id);
  }
  return all;
}

void SimRunner::noted(const task::FinishedRun& run) {
  if (awaited_.erase(run.outcome.token) != 0) ready_.push_back(run.outcome);
}

void SimRunner::lose(const sink::KeptRun& run) {
  for (const Run& one : running_) {
    if (!one->kept || one->kept->seq != run.seq || one->kept->token != run.token) continue;
    one->dropped = true;
    tell(*one);
  }
}

void SimRunner::cancel(const sink::KeptRun& run) {
  for (const Run& one : running_) {
    if (one->kept && one->kept->seq == run.seq && one->kept->token == run.token) tell(*one);
  }
}

void SimRunner::give_up_kept() {
  for (const sink::KeptRun& run : kept()) {
    lose(run);
    ends_.push_back({.run = run});
  }
}

}  // namespace outbox::sim
