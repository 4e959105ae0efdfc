#include "task/runner_core.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/units.hpp"
#include "event/arena.hpp"
#include "event/task.hpp"

namespace outbox::task {
namespace {

bool is_same(const sink::KeptRun& a, const sink::KeptRun& b) {
  return a.subscription == b.subscription && a.seq == b.seq && a.token == b.token;
}

/// Whether the batch has tasks that no thread has begun.
bool is_left(const std::shared_ptr<Batch>& batch) { return batch->left() > 0; }

RunEnd run_end(const TaskEnd& end, const Outcome& decided) {
  switch (end.kind()) {
    case TaskEnd::Kind::done: return RunEnd::completed;
    case TaskEnd::Kind::cancelled: return RunEnd::cancelled;
    case TaskEnd::Kind::snoozed: return RunEnd::snoozed;
    case TaskEnd::Kind::failed:
    case TaskEnd::Kind::dead: break;
  }
  return decided.final ? RunEnd::dead : RunEnd::failed;
}

void drop_begun(std::deque<std::shared_ptr<Batch>>& batches) {
  std::erase_if(batches, [](const auto& batch) { return !is_left(batch); });
}

}  // namespace

RunnerCore::RunnerCore(std::string queue, Types types, const Options& options, Actions actions)
    : queue_(std::move(queue)),
      types_(std::move(types)),
      options_(options),
      actions_(std::move(actions)),
      slots_(options.threads) {
  for (auto& slot : slots_) slot = std::make_shared<Slot>();
}

void RunnerCore::Slot::report(std::size_t percent, std::string_view text) {
  const MutexLock lock(mutex);
  if (!run) return;
  run->progress = RunProgress{
      .run = {}, .percent = std::min<std::size_t>(percent, 100), .text = std::string(text)};
}

RunnerCore::Slots RunnerCore::slots() const {
  const MutexLock lock(slots_mutex_);
  return slots_;
}

// ---- the threads

std::shared_ptr<RunnerCore::Slot> RunnerCore::slot(std::size_t place) const {
  const MutexLock lock(slots_mutex_);
  return slots_[place];
}

std::shared_ptr<Batch> RunnerCore::next_batch() {
  const MutexLock lock(mutex_);
  drop_begun(claimed_);
  if (!claimed_.empty()) return claimed_.front();
  for (SourceQueue* const source_queue : by_priority_) {
    if (auto batch = source_queue->front()) return batch;
  }
  return nullptr;
}

std::optional<RunnerCore::Begun> RunnerCore::begin(Slot& slot, Batch& batch, TimePoint now) {
  // A task begins with the mutex held: whoever gives it up must see it as running, or cut it off
  // before.
  const MutexLock lock(slot.mutex);
  if (slot.replaced) return std::nullopt;
  const Batch::Job* const job = batch.begin_next();
  if (job == nullptr) return std::nullopt;
  slot.run = Run{.batch = &batch, .job = job, .began = now, .kept = batch.kept()};
  return Begun{.job = job, .stop = slot.stop.get_token()};
}

void RunnerCore::end(Slot& slot, const TaskEnd& end, TimePoint now) {
  Source source = 0;
  bool for_tracker = false;
  {
    const MutexLock lock(slot.mutex);
    source = slot.run->batch->source();
    slot.run->job->type->took(now - slot.run->began);
    for_tracker = report(slot, end, now);
    // Whoever has chosen this run to be stopped may request the stop only now: that must not reach
    // the next run.
    if (slot.run->told) slot.stop = std::stop_source();
    slot.run.reset();
  }
  if (for_tracker) tracker_bell_.ring();
  source_queues_[source]->announce();
}

bool RunnerCore::is_replaced(const Slot& slot) {
  const MutexLock lock(slot.mutex);
  return slot.replaced;
}

std::optional<RunnerCore::Run> RunnerCore::run_of(const Slot& slot) {
  const MutexLock lock(slot.mutex);
  return slot.run;
}

/// Reports an end to the one to whom the run belongs. Returns true if that is the tracker, which
/// has to be told.
bool RunnerCore::report(Slot& slot, const TaskEnd& end, TimePoint now) {
  const Run& run = *slot.run;
  if (run.dropped) return false;
  const Batch::Job& job = *run.job;
  Outcome outcome = to_outcome(job.token, end);
  job.type->retries().decide(outcome, job.attempt,
                             job.rules ? job.rules->max_attempts : std::nullopt, job.id);
  job.type->meter().ended(run_end(end, outcome), now - run.began);
  auto finish = make_finish(run, end);
  const Source source = run.batch->source();
  if (!run.kept && !finish) {
    slot.ended[source].push_back(std::move(outcome));
    return false;
  }
  if (!run.kept) source_queues_[source]->await(job.token);
  const MutexLock lock(ends_mutex_);
  if (run.kept) {
    kept_ends_.push_back(
        {.run = *run.kept, .outcome = std::move(outcome), .finish = std::move(finish)});
  } else {
    finished_.push_back(
        {.source = source, .outcome = std::move(outcome), .finish = std::move(*finish)});
  }
  return true;
}

/// What is written about the end of a run; nullopt if nothing is. The end of a run that failed is
/// written with its row.
std::optional<store::TaskFinish> RunnerCore::make_finish(const Run& run, const TaskEnd& end) const {
  const Batch::Job& job = *run.job;
  const bool cancelled = end.kind() == TaskEnd::Kind::cancelled;
  if (!cancelled && end.kind() != TaskEnd::Kind::done) return std::nullopt;
  const TaskEvent* const told =
      job.rules && job.rules->on_done && !cancelled ? &*job.rules->on_done : nullptr;
  const bool has_key = job.rules && !job.rules->unique_key.empty();
  if (!cancelled && !end.result() && told == nullptr && !has_key) return std::nullopt;
  store::TaskFinish finish;
  finish.id = job.id;
  finish.outcome =
      cancelled ? store::TaskFinish::Outcome::cancelled : store::TaskFinish::Outcome::done;
  finish.result = end.result();
  finish.reason = end.reason();
  if (has_key) finish.unique_key = job.rules->unique_key;
  if (told != nullptr) {
    finish.event = event::make_event(
        *told,
        {.id = job.id,
         .queue = queue_,
         .type = job.type->handler().type,
         .key = run.batch->key_of(job),
         .attempts = job.attempt,
         .result = end.result() ? std::optional<std::string_view>(*end.result()) : std::nullopt});
  }
  return finish;
}

// ---- for the sinks

Source RunnerCore::add_source(const std::string& subscription, std::size_t priority) {
  const MutexLock lock(mutex_);
  const auto found = std::find(subscriptions_.begin(), subscriptions_.end(), subscription);
  const auto source = static_cast<Source>(found - subscriptions_.begin());
  if (found != subscriptions_.end() || source == kMostSources) return source;
  source_queues_[source] = std::make_unique<SourceQueue>(priority);
  subscriptions_.push_back(subscription);
  by_priority_.insert(std::upper_bound(by_priority_.begin(), by_priority_.end(), priority,
                                       [](std::size_t p, const SourceQueue* source_queue) {
                                         return p < source_queue->priority();
                                       }),
                      source_queues_[source].get());
  sources_.store(source + 1, std::memory_order_release);
  return source;
}

std::vector<std::string> RunnerCore::subscriptions() const {
  const MutexLock lock(mutex_);
  return subscriptions_;
}

void RunnerCore::on_ready(Source source, std::function<void()> ready) {
  source_queues_[source]->on_ready(std::move(ready));
}

void RunnerCore::add(std::shared_ptr<Batch> batch) {
  const std::size_t tasks = batch->size();
  source_queues_[batch->source()]->add(std::move(batch));
  actions_.wake(tasks);
}

void RunnerCore::add_unique(std::shared_ptr<Batch> batch) {
  source_queues_[batch->source()]->add_unique(std::move(batch));
  tracker_bell_.ring();
}

Load RunnerCore::load(Source source, TimePoint now) const {
  Load load;
  for (const auto& slot : slots()) {
    const MutexLock lock(slot->mutex);
    if (!slot->run) continue;
    ++load.running;
    if (now - slot->run->began > kQuick) ++load.long_running;
  }
  const std::size_t priority = source_queues_[source]->priority();
  for (const auto& source_queue : all_source_queues()) {
    if (source_queue->priority() > priority) continue;
    if (source_queue->priority() < priority && source_queue->wants(now)) load.urgent_wants = true;
    const Waiting waiting = source_queue->waiting();
    load.waiting += waiting.tasks;
    load.work_waiting += waiting.work;
  }
  return load;
}

void RunnerCore::want(Source source, bool more, TimePoint now) {
  source_queues_[source]->want(more ? now + options_.wants : TimePoint());
}

void RunnerCore::take_ended(Source source, std::vector<Outcome>& outcomes) {
  for (const auto& slot : slots()) {
    const MutexLock lock(slot->mutex);
    for (Outcome& outcome : slot->ended[source]) outcomes.push_back(std::move(outcome));
    slot->ended[source].clear();
  }
}

void RunnerCore::collect(Source source, TimePoint now, std::vector<Outcome>& outcomes) {
  SourceQueue& source_queue = *source_queues_[source];
  source_queue.collected();
  take_ended(source, outcomes);
  source_queue.collect(outcomes);
  source_queue.return_late(now - options_.longest_wait, outcomes);
}

void RunnerCore::give_up(Source source, std::vector<Outcome>& outcomes) {
  // The waiting tasks are given up first, so that none of them begins any more.
  source_queues_[source]->give_up_waiting(outcomes);
  stop_runs([&](const auto& /*slot*/, Run& run) {
    if (run.kept || run.batch->source() != source || std::exchange(run.dropped, true)) return false;
    outcomes.push_back(
        {.token = run.job->token,
         .kind = Outcome::Kind::unknown,
         .error = fail(Errc::internal, Remedy::retry_call, "the worker stopped while the task ran")
                      .value()});
    return true;
  });
  // The ends are taken last, so that what ended meanwhile is among them.
  take_ended(source, outcomes);
  source_queues_[source]->give_up_ended(outcomes);
}

std::size_t RunnerCore::given_up(Source source) const {
  const Slots all = slots();
  return static_cast<std::size_t>(std::count_if(all.begin(), all.end(), [&](const auto& slot) {
    // The batch belongs to the thread, which may drop it once the run has ended.
    const MutexLock lock(slot->mutex);
    const std::optional<Run>& run = slot->run;
    return run && run->dropped && !run->kept && run->batch->source() == source;
  }));
}

bool RunnerCore::keep(Source source, Token token, const sink::KeptRun& run) {
  for (const auto& slot : slots()) {
    const MutexLock lock(slot->mutex);
    if (!slot->run || slot->run->dropped || slot->run->job->token != token ||
        slot->run->batch->source() != source)
      continue;
    slot->run->kept = run;
    return true;
  }
  return false;
}

bool RunnerCore::take_elsewhere() {
  std::size_t left = elsewhere_;
  while (left > 0 && !elsewhere_.compare_exchange_weak(left, left - 1)) {
  }
  return left > 0;
}

/// Tells the chosen runs to stop. No mutex is held meanwhile, since a request to stop calls what
/// the handlers have registered.
void RunnerCore::stop_runs(const std::function<bool(const std::shared_ptr<Slot>&, Run&)>& choose) {
  for (const auto& slot : slots()) {
    std::optional<std::stop_source> stop;
    {
      const MutexLock lock(slot->mutex);
      if (!slot->run || !choose(slot, *slot->run)) continue;
      slot->run->told = true;
      stop = slot->stop;
    }
    stop->request_stop();
  }
}

// ---- deadlines

void RunnerCore::watch(TimePoint now) {
  Slots stuck;
  stop_runs([&](const auto& slot, const Run& run) {
    if (is_stuck(run, now)) stuck.push_back(slot);
    return now >= run.deadline() && !run.told;
  });
  for (const auto& slot : stuck) replace(slot, now);
}

bool RunnerCore::is_stuck(const Run& run, TimePoint now) const {
  return now >= run.deadline() + options_.deadline_grace;
}

/// Replaces the thread of a slot whose handler does not return. If the handler has returned while
/// other handlers were told to stop, the thread may have begun another run since, and stays. The
/// outcomes of earlier runs of the thread are kept.
void RunnerCore::replace(const std::shared_ptr<Slot>& stuck, TimePoint now) {
  std::size_t place = 0;
  Source source = 0;
  std::string type;
  bool for_tracker = false;
  {
    const MutexLock places(slots_mutex_);
    const auto found = std::find(slots_.begin(), slots_.end(), stuck);
    if (found == slots_.end()) return;
    const MutexLock lock(stuck->mutex);
    if (!stuck->run || !is_stuck(*stuck->run, now)) return;
    const Handlers::Handler& handler = stuck->run->job->type->handler();
    type = handler.type;
    for_tracker = report(*stuck,
                         TaskEnd::failed("did not end within its deadline of " +
                                         format_duration(handler.options.deadline)),
                         now);
    stuck->run->dropped = true;
    stuck->replaced = true;
    source = stuck->run->batch->source();
    place = static_cast<std::size_t>(found - slots_.begin());
    *found = std::make_shared<Slot>(std::exchange(stuck->ended, {}));
  }
  if (for_tracker) tracker_bell_.ring();
  source_queues_[source]->announce();
  actions_.replace(place, type);
}

// ---- for the tracker: unique tasks, and ends that are noted

void RunnerCore::announce() {
  for (const auto& source_queue : all_source_queues()) {
    source_queue->collected();
    source_queue->announce();
  }
}

void RunnerCore::announce_changed_rows() {
  for (const auto& source_queue : all_source_queues()) source_queue->announce_changed_rows();
}

std::vector<std::shared_ptr<Batch>> RunnerCore::to_begin() const {
  std::vector<std::shared_ptr<Batch>> all;
  const MutexLock lock(mutex_);
  for (const SourceQueue* const source_queue : by_priority_) {
    for (auto& batch : source_queue->to_begin()) all.push_back(std::move(batch));
  }
  return all;
}

void RunnerCore::begin_unique(const std::shared_ptr<Batch>& batch) {
  if (source_queues_[batch->source()]->begin_unique(batch)) actions_.wake(1);
}

bool RunnerCore::refuse(const std::shared_ptr<Batch>& batch) {
  return source_queues_[batch->source()]->refuse_unique(batch);
}

void RunnerCore::postpone(const std::shared_ptr<Batch>& batch) {
  SourceQueue& source_queue = *source_queues_[batch->source()];
  if (source_queue.postpone_unique(batch)) source_queue.announce();
}

std::vector<FinishedRun> RunnerCore::finished() {
  const MutexLock lock(ends_mutex_);
  return std::exchange(finished_, {});
}

void RunnerCore::noted(const FinishedRun& run) {
  SourceQueue& source_queue = *source_queues_[run.source];
  if (source_queue.note(run.outcome)) source_queue.announce();
}

// ---- for the tracker: runs with a row

/// A claimed run that begins meanwhile may be in the list twice, but is never left out.
std::vector<sink::KeptRun> RunnerCore::kept() const {
  std::vector<sink::KeptRun> all;
  {
    const MutexLock lock(mutex_);
    for (const auto& batch : claimed_) {
      if (is_left(batch)) all.push_back(*batch->kept());
    }
  }
  for (const auto& slot : slots()) {
    const MutexLock lock(slot->mutex);
    if (slot->run && slot->run->kept && !slot->run->dropped) all.push_back(*slot->run->kept);
  }
  return all;
}

std::vector<EventId> RunnerCore::unkept() const {
  std::vector<EventId> all;
  for (const auto& slot : slots()) {
    const MutexLock lock(slot->mutex);
    if (slot->run && !slot->run->kept && !slot->run->dropped) all.push_back(slot->run->job->id);
  }
  return all;
}

std::vector<KeptEnd> RunnerCore::kept_ends() {
  const MutexLock lock(ends_mutex_);
  return std::exchange(kept_ends_, {});
}

void RunnerCore::add_kept_end(KeptEnd end) {
  {
    const MutexLock lock(ends_mutex_);
    kept_ends_.push_back(std::move(end));
  }
  tracker_bell_.ring();
}

std::vector<RunProgress> RunnerCore::progress() {
  std::vector<RunProgress> all;
  for (const auto& slot : slots()) {
    const MutexLock lock(slot->mutex);
    if (!slot->run || !slot->run->kept || !slot->run->progress) continue;
    all.push_back(*std::exchange(slot->run->progress, {}));
    all.back().run = *slot->run->kept;
  }
  return all;
}

/// Returns false if the run has begun, or is not here.
bool RunnerCore::take_claimed(const sink::KeptRun& run) {
  bool taken = false;
  const MutexLock lock(mutex_);
  for (const auto& batch : claimed_) {
    if (is_same(*batch->kept(), run)) batch->cut([&](const Batch::Job&) { taken = true; });
  }
  drop_begun(claimed_);
  return taken;
}

void RunnerCore::lose(const sink::KeptRun& run) {
  if (take_claimed(run)) return;
  stop_runs([&](const auto& /*slot*/, Run& one) {
    if (!one.kept || !is_same(*one.kept, run)) return false;
    return one.dropped = true;
  });
}

bool RunnerCore::cancel(const sink::KeptRun& run) {
  if (take_claimed(run)) {
    add_kept_end({.run = run});
    return true;
  }
  bool told = false;
  stop_runs([&](const auto& /*slot*/, const Run& one) {
    const bool is_it = one.kept && is_same(*one.kept, run) && !one.dropped && !one.told;
    told = told || is_it;
    return is_it;
  });
  return told;
}

void RunnerCore::give_up_kept() {
  for (const sink::KeptRun& run : kept()) {
    lose(run);
    add_kept_end({.run = run});
  }
}

void RunnerCore::close() {
  on_work({});
  for (Source source = 0; source < sources_; ++source) {
    on_ready(source, {});
    std::vector<Outcome> unused;
    give_up(source, unused);
  }
  give_up_kept();
}

// ---- tasks for any worker

std::size_t RunnerCore::free_threads() const {
  std::size_t busy = 0;
  for (const auto& slot : slots()) {
    const MutexLock lock(slot->mutex);
    if (slot->run) ++busy;
  }
  for (const auto& source_queue : all_source_queues()) busy += source_queue->waiting().tasks;
  const MutexLock lock(mutex_);
  busy += static_cast<std::size_t>(std::count_if(claimed_.begin(), claimed_.end(), is_left));
  return options_.threads - std::min(busy, options_.threads);
}

bool RunnerCore::is_starved(TimePoint now) const {
  const auto source_queues = all_source_queues();
  return std::any_of(source_queues.begin(), source_queues.end(),
                     [now](const auto& source_queue) { return source_queue->wants(now); }) &&
         free_threads() == 0;
}

std::vector<std::string> RunnerCore::types_to_claim() const {
  std::vector<std::string> names;
  for (const auto& type : types_) names.push_back(type->handler().type);
  return names;
}

TaskType* RunnerCore::find_type(std::string_view name) const {
  const auto found = std::find_if(types_.begin(), types_.end(),
                                  [&](const auto& type) { return type->handler().type == name; });
  return found == types_.end() ? nullptr : found->get();
}

void RunnerCore::add_claimed(const store::ClaimedTasks& claimed, TimePoint now) {
  for (const store::ClaimedTask& task : claimed.tasks) {
    const sink::KeptRun run{.subscription = task.subscription,
                            .seq = task.event.seq,
                            .id = task.event.id,
                            .attempts = task.attempts,
                            .token = task.token};
    // A task that goes back is due at the owner of its lane.
    if (!add_claimed(task, run, now)) add_kept_end({.run = run});
  }
  if (!claimed.tasks.empty()) actions_.wake(claimed.tasks.size());
}

/// Returns false if the task cannot run here. It may have been given away when its type had no
/// limit.
bool RunnerCore::add_claimed(const store::ClaimedTask& task, const sink::KeptRun& run,
                             TimePoint now) {
  const std::vector<std::string> known = subscriptions();
  const auto found = std::find(known.begin(), known.end(), task.subscription_name);
  TaskType* const type = find_type(task.event.event_type);
  if (found == known.end() || type == nullptr) return false;
  Permit permit = type->limit() != nullptr ? type->limit()->take(now) : nullptr;
  if (type->limit() != nullptr && !permit) return false;
  const auto batch = std::make_shared<Batch>(static_cast<Source>(found - known.begin()), now);
  batch->hold(std::move(permit));
  event::Arena arena;
  auto rules = event::parse_task_rules(task.event.headers, arena);
  Message message;
  message.event = &task.event;
  message.body = task.event.payload;
  message.attempt = task.attempts + 1;
  batch->add(*type, message,
             rules ? std::make_shared<const event::TaskRules>(std::move(*rules)) : nullptr);
  batch->keep(run);
  const MutexLock lock(mutex_);
  claimed_.push_back(batch);
  return true;
}

}  // namespace outbox::task
