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
/// Without a thread; then another worker may do it.
constexpr std::chrono::milliseconds kLongWithoutThread{4};
/// A sink that has left tasks where they are is heard for so long.
constexpr std::chrono::milliseconds kWants{6};
/// Rows of a type that has a subscription of its own by now.
constexpr std::chrono::milliseconds kLimitedPause{4};
constexpr std::chrono::milliseconds kPausedPause{10};

std::uint64_t dice_of(std::size_t number, std::uint64_t which) {
  return splitmix64(number * 61 + which);
}

/// Of the queue, not of a type apart.
constexpr task::Source kOfQueue = kSubscription - 1;

bool is_of(const SimRun& run, const sink::KeptRun& kept) {
  return run.kept && run.kept->subscription == kept.subscription && run.kept->seq == kept.seq &&
         run.kept->token == kept.token;
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

SimRunner::SimRunner(GroupShared& world, const EventId& worker,
                     const relay::TimePoint::duration& clock, std::size_t most)
    : world_(world),
      worker_(worker),
      clock_(clock),
      limit_(most == 0 ? nullptr : std::make_shared<task::TypeLimit>(most, 0)) {}

// ---- the sinks

Status SimRunner::open(task::Source source) const {
  const bool given_up = std::any_of(running_.begin(), running_.end(), [&](const Run& run) {
    return run->source == source && run->dropped && !run->kept && !run->replaced;
  });
  if (!given_up) return {};
  return fail(Errc::unavailable, Remedy::retry_call, "handlers that were told to stop still run");
}

std::size_t SimRunner::busy() const {
  return static_cast<std::size_t>(std::count_if(running_.begin(), running_.end(),
                                                [](const Run& run) { return !run->replaced; }));
}

bool SimRunner::has_room() const { return busy() + waiting_.size() < kThreads + kAhead; }

SimRunner::Run SimRunner::run_of(const EventView& event, std::size_t attempt) const {
  const std::size_t number = number_of(event.id);
  const WrittenEvent& written = world_.database.event(number);
  return std::make_shared<SimRun>(SimRun{.number = number,
                                         .seq = event.seq,
                                         .id = event.id,
                                         .attempt = attempt,
                                         .key = written.key,
                                         .lane = written.lane,
                                         .worker = worker_,
                                         .began = now()});
}

bool SimRunner::has_limit(const EventView& event) const {
  return limit_ && event.event_type == Catalog::kType;
}

bool SimRunner::is_paused(const EventView& event) const {
  return std::find(paused_types_.begin(), paused_types_.end(), event.event_type) !=
         paused_types_.end();
}

/// QueueSink::take()
bool SimRunner::take(task::Source source, Token token, const EventView& event, std::size_t attempt,
                     std::int64_t generation) {
  if (source == kOfQueue && is_paused(event)) {
    postpone(source, token, kPausedPause, "its type is paused");
    return true;
  }
  if (!has_room()) return !has_limit(event) && give_away(source, token);
  task::Permit permit = has_limit(event) ? limit_->take(now()) : nullptr;
  if (has_limit(event) && !permit) {
    if (source != kOfQueue) return false;
    postpone(source, token, kLimitedPause, "the limit of its type is reached");
    return true;
  }
  const Run run = run_of(event, attempt);
  run->token = token;
  run->source = source;
  run->generation = generation;
  run->permit = std::move(permit);
  waiting_.push_back(run);
  desks_[source].took = true;
  return true;
}

void SimRunner::postpone(task::Source source, Token token, Duration pause, const char* why) {
  desks_[source].ready.push_back(outcome(token, Outcome::Kind::postponed, why));
  desks_[source].ready.back().retry_after = pause;
}

bool SimRunner::give_away(task::Source source, Token token) {
  const auto& since = desks_[source].refuses_since;
  if (!since || now() - *since < kLongWithoutThread || elsewhere_ == 0) return false;
  --elsewhere_;
  ++world_.result.given_away;
  postpone(source, token, Duration::zero(), "no thread was free here");
  desks_[source].ready.back().for_any_worker = true;
  return true;
}

/// QueueSink::send()
void SimRunner::offered(task::Source source, bool all_taken) {
  Desk& desk = desks_[source];
  if (std::exchange(desk.took, false) || all_taken) desk.refuses_since.reset();
  if (!all_taken && !desk.refuses_since) desk.refuses_since = now();
  desk.wants_until = all_taken ? relay::TimePoint() : now() + kWants;
}

std::vector<Outcome> SimRunner::receive(task::Source source) {
  watch();
  std::erase_if(waiting_, [&](const Run& run) {
    if (run->source != source || now() - run->began < kLongestWait) return false;
    postpone(source, run->token, Duration::zero(), "no thread");
    return true;
  });
  return std::exchange(desks_[source].ready, {});
}

void SimRunner::purge(task::Source source) {
  Desk& desk = desks_[source];
  std::erase_if(waiting_, [&](const Run& run) {
    if (run->source != source) return false;
    desk.ready.push_back(outcome(run->token, Outcome::Kind::retry, "it had not begun"));
    return true;
  });
  for (const auto& [token, number] : std::exchange(desk.awaited, {})) {
    desk.ready.push_back(outcome(token, Outcome::Kind::unknown, "its end was not noted"));
    world_.runs.forgotten(number);
  }
  for (const Run& run : running_) {
    if (run->source != source || run->kept || std::exchange(run->dropped, true)) continue;
    tell(*run);
    desk.ready.push_back(
        outcome(run->token, Outcome::Kind::unknown, "it ran when the worker stopped"));
  }
}

bool SimRunner::keep(task::Source source, Token token, const sink::KeptRun& run) {
  const auto found = std::find_if(running_.begin(), running_.end(), [&](const Run& one) {
    return one->source == source && one->token == token && !one->dropped;
  });
  if (found == running_.end()) return false;
  (*found)->kept = run;
  ++world_.result.kept;
  world_.trace("worker ", +worker_.bytes[0], " keeps task ", (*found)->number, ", token ",
               run.token);
  return true;
}

// ---- tasks for any worker

std::vector<std::string> SimRunner::types_to_claim() const { return {"Happened", Catalog::kType}; }

bool SimRunner::is_starved(relay::TimePoint now) const {
  const bool wants = std::any_of(desks_.begin(), desks_.end(),
                                 [&](const Desk& desk) { return now < desk.wants_until; });
  return wants && free_threads() == 0;
}

std::size_t SimRunner::free_threads() const {
  const std::size_t taken = busy() + waiting_.size() + claimed_.size();
  return kThreads - std::min(taken, kThreads);
}

void SimRunner::add_claimed(const store::ClaimedTasks& claimed) {
  for (const store::ClaimedTask& task : claimed.tasks) {
    const Run run = run_of(task.event, task.attempts + 1);
    run->source = static_cast<task::Source>(task.subscription - 1);
    run->kept = sink::KeptRun{.subscription = task.subscription,
                              .seq = task.event.seq,
                              .id = task.event.id,
                              .attempts = task.attempts,
                              .token = task.token};
    ++world_.result.claimed;
    world_.trace("worker ", +worker_.bytes[0], " claims task ", run->number, ", token ",
                 task.token);
    if (has_limit(task.event)) {
      run->permit = limit_->take(now());
      if (!run->permit) {
        ends_.push_back({.run = *run->kept});
        continue;
      }
    }
    claimed_.push_back(run);
  }
}

// ---- the threads

void SimRunner::step() {
  if (killed_) return;
  while (!(waiting_.empty() && claimed_.empty()) && busy() < kThreads) begin_next();
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
  std::deque<Run>& next = claimed_.empty() ? waiting_ : claimed_;
  const Run run = next.front();
  next.pop_front();
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
  run->permit.reset();
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
  if (end.kind() == TaskEnd::Kind::done) world_.runs.done(run.number);
  Outcome outcome = task::outcome_of(run.token, end);
  retries().decide(outcome, run.attempt, std::nullopt, run.id);
  std::optional<store::TaskFinish> finish;
  if (end.kind() == TaskEnd::Kind::done && is_noted(run.number)) {
    finish = store::TaskFinish{.id = run.id};
  }
  if (run.kept) {
    ends_.push_back({.run = *run.kept, .outcome = std::move(outcome), .finish = finish});
  } else if (finish) {
    desks_[run.source].awaited.emplace(run.token, run.number);
    finished_.push_back({.source = run.source, .outcome = std::move(outcome), .finish = *finish});
  } else {
    desks_[run.source].ready.push_back(std::move(outcome));
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
  for (const Run& run : claimed_) all.push_back(*run->kept);
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
  Desk& desk = desks_[run.source];
  if (desk.awaited.erase(run.outcome.token) != 0) desk.ready.push_back(run.outcome);
}

void SimRunner::lose(const sink::KeptRun& run) {
  std::erase_if(claimed_, [&](const Run& one) { return is_of(*one, run); });
  for (const Run& one : running_) {
    if (!is_of(*one, run)) continue;
    one->dropped = true;
    tell(*one);
  }
}

void SimRunner::cancel(const sink::KeptRun& run) {
  if (std::erase_if(claimed_, [&](const Run& one) { return is_of(*one, run); }) > 0)
    return ends_.push_back({.run = run});
  for (const Run& one : running_) {
    if (is_of(*one, run)) tell(*one);
  }
}

void SimRunner::give_up_kept() {
  for (const Run& run : std::exchange(claimed_, {})) ends_.push_back({.run = *run->kept});
  for (const sink::KeptRun& run : kept()) {
    lose(run);
    ends_.push_back({.run = run});
  }
}

}  // namespace outbox::sim
