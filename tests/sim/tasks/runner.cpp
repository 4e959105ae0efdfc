#include "sim/tasks/runner.hpp"

#include <algorithm>
#include <utility>

namespace outbox::sim {
namespace {

constexpr task::RunnerCore::Options kThreads{.threads = 4,
                                             .deadline_grace = std::chrono::milliseconds(60),
                                             .longest_wait = std::chrono::milliseconds(5),
                                             .wants = std::chrono::milliseconds(6)};
constexpr std::chrono::milliseconds kDeadline{150};

std::uint64_t dice_of(std::size_t number, std::uint64_t which) {
  return splitmix64(number * 61 + which);
}

/// Of the queue, not of a type apart.
constexpr task::Source kQueue = kSubscription - 1;

task::RunnerCore::Types types(std::size_t most) {
  Handlers::Options options{.deadline = kDeadline};
  const Handlers::Handler common{.type = "Happened", .run = {}, .options = options};
  options.max_running = most;
  const Handlers::Handler limited{.type = Catalog::kType, .run = {}, .options = options};
  return {std::make_shared<task::TaskType>(common, SimRunner::retries()),
          std::make_shared<task::TaskType>(limited, SimRunner::retries())};
}

/// The names of a queue's subscription and of that of the type, in this order.
std::array<std::string, kSubscriptions> names() {
  Catalog catalog(true);
  catalog.set_apart(false);
  return {catalog.rows().front().spec.name, catalog.rows().back().spec.name};
}

}  // namespace

const task::RetrySchedule& SimRunner::retries() {
  static_assert(kMostRuns == 3);
  static const task::RetrySchedule schedule(
      {std::chrono::milliseconds(3), std::chrono::milliseconds(9)}, 0);
  return schedule;
}

SimRunner::SimRunner(GroupShared& world, const EventId& worker,
                     const relay::TimePoint::duration& clock, std::size_t most)
    : world_(world),
      worker_(worker),
      clock_(clock),
      core_(std::make_shared<task::RunnerCore>(
          Catalog::kQueue, types(most), kThreads,
          task::RunnerCore::Actions{
              .wake = [this](std::size_t tasks) { wake(tasks); },
              .replace = [this](std::size_t place, const std::string&) { replace(place); }})) {
  const auto names = sim::names();
  for (task::Source source = 0; source < kSubscriptions; ++source) {
    const task::QueueOptions options{.threads = kThreads.threads,
                                     .row_after = kRowAfter,
                                     .of_type = source != kQueue,
                                     .limited_pause = std::chrono::milliseconds(4),
                                     .paused_pause = std::chrono::milliseconds(10),
                                     .long_without_thread = std::chrono::milliseconds(4),
                                     .now = [this] { return now(); }};
    sinks_[source] =
        std::make_unique<task::QueueSink>(core_, core_->add_source(names[source], 2), options,
                                          worker, std::make_shared<task::StoreClock>());
    sinks_[source]->on_ready([this, source] { rung_[source] = true; });
  }
  for (std::size_t place = 0; place < kThreads.threads; ++place)
    threads_.push_back({.slot = core_->slot(place)});
}

// ---- the sinks

bool SimRunner::take(task::Source source, const Message& message, std::int64_t generation) {
  if (sinks_[source]->send({&message, 1}) == 0) return false;
  sent_[{source, message.token}] = {.number = number_of(message.event->id),
                                    .generation = generation};
  return true;
}

std::vector<Outcome> SimRunner::receive(task::Source source) {
  rung_[source] = false;
  std::vector<Outcome> outcomes;
  sinks_[source]->receive(outcomes);
  for (const Outcome& outcome : outcomes) {
    const auto sent = sent_.find({source, outcome.token});
    if (sent == sent_.end()) {
      world_.checks.broke("an outcome that nobody waits for: reported before, given up, or kept");
      continue;
    }
    if (outcome.kind == Outcome::Kind::unknown) world_.runs.forgotten(sent->second.number);
    if (outcome.task.for_any_worker) ++world_.result.given_away;
    sent_.erase(sent);
  }
  return outcomes;
}

bool SimRunner::keep(task::Source source, Token token, const sink::KeptRun& run) {
  if (!sinks_[source]->keep(token, run)) return false;
  if (sent_.erase({source, token}) == 0)
    world_.checks.broke("a run is kept whose outcome was reported");
  ++world_.result.kept;
  world_.trace("worker ", +worker_.bytes[0], " keeps task ", number_of(run.id), ", token ",
               run.token);
  return true;
}

// ---- the threads

void SimRunner::wake(std::size_t tasks) {
  for (Thread& thread : threads_) {
    if (tasks == 0) return;
    if (std::exchange(thread.waits, false)) --tasks;
  }
}

/// A thread with a new slot; the old one ends with its handler.
void SimRunner::replace(std::size_t place) {
  for (const Thread& thread : threads_) {
    const bool is_it = thread.run && task::RunnerCore::is_replaced(*thread.slot);
    if (is_it && std::exchange(thread.run->counts, false)) {
      world_.trace("worker ", +worker_.bytes[0], " gives up the thread of task ",
                   thread.run->number);
      world_.runs.failed(thread.run->number, false);
    }
  }
  threads_.push_back({.slot = core_->slot(place)});
}

bool SimRunner::idle() const {
  return core_->free_threads() == kThreads.threads && threads_.size() == kThreads.threads;
}

void SimRunner::step() {
  for (Thread& thread : threads_) {
    step(thread);
    if (killed_) return;
  }
  std::erase_if(threads_, [](const Thread& thread) {
    return !thread.run && task::RunnerCore::is_replaced(*thread.slot);
  });
  check_bells();
}

void SimRunner::step(Thread& thread) {
  if (thread.run) return run(thread);
  if (thread.waits || world_.random.chance(10)) return;
  if (thread.batch) return begin(thread);
  thread.batch = core_->next_batch();
  thread.waits = !thread.batch;
}

void SimRunner::begin(Thread& thread) {
  const auto begun = core_->begin(*thread.slot, *thread.batch, now());
  if (!begun) return thread.batch.reset();
  const task::Batch::Job& job = *begun->job;
  const std::size_t number = number_of(job.id);
  const WrittenEvent& written = world_.database.event(number);
  const auto run = std::make_shared<SimRun>(SimRun{.slot = thread.slot,
                                                   .stop = begun->stop,
                                                   .source = thread.batch->source(),
                                                   .number = number,
                                                   .seq = job.seq,
                                                   .key = written.key,
                                                   .lane = written.lane,
                                                   .worker = worker_});
  if (run->stop.stop_requested())
    world_.checks.broke("a run begins that was told to stop before it began");
  if (!thread.batch->kept()) {
    const auto sent = sent_.find({run->source, job.token});
    if (sent == sent_.end()) return world_.checks.broke("a task begins that was given up");
    run->generation = sent->second.generation;
  }
  world_.runs.begins(run);
  decide(*run);
  world_.trace("worker ", +worker_.bytes[0], " begins task ", number, " (seq ", run->seq, ", k",
               run->key, "), attempt ", job.attempt);
  thread.run = run;
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
  if (is_noted(number)) run.end = TaskEnd::done("a result");
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

void SimRunner::run(Thread& thread) {
  SimRun& run = *thread.run;
  run.counts = run.counts && !run.state().dropped;
  // A handler that is told to stop may go on for a while.
  if (run.stop.stop_requested() && !std::exchange(run.hears, true) &&
      (run.way != SimRun::Way::ends || world_.random.chance(50)))
    run.left = static_cast<int>(world_.random.below(world_.random.chance(20) ? 150 : 20));
  if (run.way == SimRun::Way::hangs && !run.hears) return;
  if (world_.random.chance(50) || --run.left > 0) return;
  if (run.way == SimRun::Way::kills && !run.hears) {
    world_.trace("task ", run.number, " kills worker ", +worker_.bytes[0]);
    killed_ = true;
    return;
  }
  end(thread);
}

void SimRunner::end(Thread& thread) {
  const Run run = std::exchange(thread.run, {});
  world_.runs.over(run);
  world_.trace("worker ", +worker_.bytes[0], " ends task ", run->number,
               run->counts ? "" : ", which does not count");
  // Its effect; of one that stopped, perhaps.
  if (run->end.kind() == TaskEnd::Kind::done && (!run->hears || world_.random.chance(50)))
    world_.topic.arrive(static_cast<std::int64_t>(run->number));
  else if (run->end.kind() == TaskEnd::Kind::done)
    run->end = TaskEnd::failed("was told to stop");
  const TaskEnd::Kind kind = run->end.kind();
  const bool final = kind == TaskEnd::Kind::dead;
  if (run->counts && (final || kind == TaskEnd::Kind::failed))
    world_.runs.failed(run->number, final);
  if (run->counts && kind == TaskEnd::Kind::done) world_.runs.done(run->number);
  core_->end(*thread.slot, run->end, now());
}

/// Whoever has something to do was told. What is looked for here is taken only when the promise is
/// broken.
void SimRunner::check_bells() {
  const bool some_wait =
      std::any_of(threads_.begin(), threads_.end(), [](const auto& one) { return one.waits; });
  const bool some_look = std::any_of(threads_.begin(), threads_.end(),
                                     [](const auto& one) { return !one.run && !one.waits; });
  if (some_wait && !some_look && core_->next_batch())
    world_.checks.broke("a thread waits, and was not told of a task");
  for (task::Source source = 0; source < kSubscriptions; ++source) {
    std::vector<Outcome> outcomes;
    if (!rung_[source]) core_->collect(source, {}, outcomes);
    if (!outcomes.empty()) world_.checks.broke("outcomes wait, and the relay was not told");
  }
}

}  // namespace outbox::sim
