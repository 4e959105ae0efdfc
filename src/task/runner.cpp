#include "task/runner.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/steady.hpp"
#include "base/thread.hpp"
#include "base/units.hpp"
#include "task/runner_state.hpp"

namespace outbox::task {
namespace {

/// After its deadline, for a handler that was told to stop.
constexpr std::chrono::seconds kDeadlineGrace{10};
/// At the end, for handlers that run. The relay's grace period is over by then.
constexpr std::chrono::milliseconds kLastGrace{500};
/// Taken for a thread that has not become free since: it goes back.
constexpr std::chrono::milliseconds kLongestWait{500};

}  // namespace

// ---- the threads

std::shared_ptr<Batch> Runner::Shared::wait_for_batch() {
  const MutexLock lock(mutex);
  while (true) {
    if (over) return nullptr;
    if (!claimed.empty()) {
      auto batch = std::move(claimed.front());
      claimed.pop_front();
      return batch;
    }
    for (Desk* const desk : by_priority) {
      if (auto batch = desk->front()) return batch;
    }
    changed.wait(mutex);
  }
}

void Runner::Shared::ring_keeper() {
  const MutexLock lock(work_mutex);
  if (work_ready) work_ready();
}

void Runner::Shared::add_kept_end(KeptEnd end) {
  {
    const MutexLock lock(ends_mutex);
    kept_ends.push_back(std::move(end));
  }
  ring_keeper();
}

void Runner::Shared::add_finished(FinishedRun run) {
  desks[run.source]->await(run.outcome.token);
  {
    const MutexLock lock(ends_mutex);
    finished.push_back(std::move(run));
  }
  ring_keeper();
}

/// To whom its run belongs.
void Runner::Shared::report(Slot& slot, const TaskEnd& end) {
  const Slot::Current& current = *slot.current;
  if (current.dropped) return;
  const Batch::Job& job = *current.job;
  Outcome outcome = outcome_of(job.token, end);
  job.type->retries().decide(outcome, job.attempt,
                             job.rules ? job.rules->max_attempts : std::nullopt, job.id);
  auto finish = finish_of(*current.batch, job, end);
  if (current.kept)
    return add_kept_end(
        {.run = *current.kept, .outcome = std::move(outcome), .finish = std::move(finish)});
  const Source source = current.batch->source();
  if (finish)
    return add_finished(
        {.source = source, .outcome = std::move(outcome), .finish = std::move(*finish)});
  slot.ended[source].push_back(std::move(outcome));
}

/// None: nothing is written about its end, or, of one that failed, with its row.
std::optional<store::TaskFinish> Runner::Shared::finish_of(const Batch& batch,
                                                           const Batch::Job& job,
                                                           const TaskEnd& end) const {
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
    finish.event = event::event_of(
        *told,
        {.id = job.id,
         .queue = queue,
         .type = job.type->handler().type,
         .key = batch.key_of(job),
         .attempts = job.attempt,
         .result = end.result() ? std::optional<std::string_view>(*end.result()) : std::nullopt});
  }
  return finish;
}

void Runner::Shared::work(Slot& slot) {
  while (const auto batch = wait_for_batch()) {
    while (run_next(slot, *batch)) {
    }
    const MutexLock lock(slot.mutex);
    if (slot.over) return;
  }
}

/// False: the batch has no more, or the thread is over.
bool Runner::Shared::run_next(Slot& slot, Batch& batch) {
  const Batch::Job* job = nullptr;
  std::stop_token stop;
  const TimePoint began = now_steady();
  {
    // With the mutex held: give_up() must see it as running, or cut it off before.
    const MutexLock lock(slot.mutex);
    if (slot.over) return false;
    job = batch.begin_next();
    if (job == nullptr) return false;
    slot.current = Slot::Current{.batch = &batch, .job = job, .began = began, .kept = batch.kept()};
    stop = slot.stop.get_token();
  }
  const TaskEnd end = run(batch, *job, slot, std::move(stop), began);
  job->type->took(now_steady() - began);
  {
    const MutexLock lock(slot.mutex);
    report(slot, end);
    // Who has told it to stop may do so only now: that must not reach the next run.
    if (slot.current->told) slot.stop = std::stop_source();
    slot.current.reset();
  }
  desks[batch.source()]->announce();
  return true;
}

TaskEnd Runner::Shared::run(const Batch& batch, const Batch::Job& job, Slot& slot,
                            std::stop_token stop, TimePoint began) const {
  const Handlers::Handler& handler = job.type->handler();
  const TaskRun seen{.id = job.id,
                     .queue = queue,
                     .type = handler.type,
                     .key = batch.key_of(job),
                     .content_type = batch.part(job.content_type, job.headers),
                     .headers = batch.part(job.headers, job.end),
                     .attempt = job.attempt,
                     .seq = job.seq,
                     .created_at = std::chrono::sys_time<std::chrono::microseconds>(
                         std::chrono::microseconds(job.created_at_us)),
                     .deadline = began + handler.options.deadline,
                     .stop = std::move(stop),
                     .reporter = &slot};
  try {
    TaskEnd end = handler.run(batch.part(job.payload, job.key), seen);
    if (!end.result() || end.result()->size() <= options.result_bytes) return end;
    log::warn("a result is too large and is not kept", {{"task", job.id.str()},
                                                        {"type", handler.type},
                                                        {"bytes", end.result()->size()},
                                                        {"most", options.result_bytes}});
    return TaskEnd::done();
  } catch (const std::exception& error) {
    return TaskEnd::failed(error.what());
  } catch (...) {
    return TaskEnd::failed("the handler threw what is no std::exception");
  }
}

Runner::Runner(std::string queue, Types types, const Options& options)
    : shared_(std::make_shared<Shared>(std::move(queue), std::move(types), options)),
      slots_(options.threads),
      threads_(options.threads) {}

void Runner::start() {
  const MutexLock lock(places_mutex_);
  for (std::size_t place = 0; place < threads_.size(); ++place) {
    if (!slots_[place]) start_thread_of(place);
  }
}

void Runner::start_thread_of(std::size_t place) {
  slots_[place] = std::make_shared<Slot>();
  threads_[place] = start_thread(
      "ob-task-" + shared_->queue,
      [shared = shared_, slot = slots_[place]](const std::stop_token&) { shared->work(*slot); });
}

Runner::Slots Runner::slots() const {
  const MutexLock lock(places_mutex_);
  Slots started;
  for (const auto& slot : slots_) {
    if (slot) started.push_back(slot);
  }
  return started;
}

Runner::~Runner() {
  on_work({});
  for (Source source = 0; source < shared_->sources; ++source) {
    on_ready(source, {});
    std::vector<Outcome> unused;
    give_up(source, unused);
  }
  give_up_kept();
  {
    const MutexLock lock(shared_->mutex);
    shared_->over = true;
  }
  shared_->changed.notify_all();
  const TimePoint until = now_steady() + kLastGrace;
  const auto runs = [](const Slot& slot) {
    const MutexLock lock(slot.mutex);
    return slot.current.has_value();
  };
  const MutexLock lock(places_mutex_);
  for (std::size_t place = 0; place < threads_.size(); ++place) {
    if (!slots_[place]) continue;
    while (runs(*slots_[place]) && now_steady() < until)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (runs(*slots_[place])) threads_[place].detach();
  }
}

// ---- for the sinks

Source Runner::add_source(const std::string& subscription, std::size_t priority) {
  const MutexLock lock(shared_->mutex);
  auto& known = shared_->subscriptions;
  const auto found = std::find(known.begin(), known.end(), subscription);
  const auto source = static_cast<Source>(found - known.begin());
  if (found != known.end() || source == kMostSources) return source;
  shared_->desks[source] = std::make_unique<Desk>(priority);
  known.push_back(subscription);
  auto& order = shared_->by_priority;
  order.insert(
      std::upper_bound(order.begin(), order.end(), priority,
                       [](std::size_t p, const Desk* desk) { return p < desk->priority(); }),
      shared_->desks[source].get());
  shared_->sources.store(source + 1, std::memory_order_release);
  return source;
}

std::vector<std::string> Runner::subscriptions() const {
  const MutexLock lock(shared_->mutex);
  return shared_->subscriptions;
}

void Runner::on_ready(Source source, std::function<void()> ready) {
  shared_->desks[source]->on_ready(std::move(ready));
}

void Runner::add(std::shared_ptr<Batch> batch) {
  const bool one = batch->size() == 1;
  shared_->desks[batch->source()]->add(std::move(batch));
  // A thread that has just found nothing waits by now.
  { const MutexLock lock(shared_->mutex); }
  one ? shared_->changed.notify_one() : shared_->changed.notify_all();
}

void Runner::add_unique(std::shared_ptr<Batch> batch) {
  shared_->desks[batch->source()]->add_unique(std::move(batch));
  shared_->ring_keeper();
}

Load Runner::load(Source source, TimePoint now) const {
  Load load;
  for (const auto& slot : slots()) {
    const MutexLock lock(slot->mutex);
    if (!slot->current) continue;
    ++load.running;
    if (now - slot->current->began > kQuick) ++load.long_running;
  }
  const std::size_t priority = shared_->desks[source]->priority();
  for (const auto& desk : shared_->all_desks()) {
    if (desk->priority() > priority) continue;
    if (desk->priority() < priority && desk->wants(now)) load.urgent_wants = true;
    const Waiting waiting = desk->waiting();
    load.waiting += waiting.tasks;
    load.work_waiting += waiting.work;
  }
  return load;
}

void Runner::want(Source source, bool more, TimePoint now) {
  shared_->desks[source]->want(more, now);
}

void Runner::collect(Source source, TimePoint now, std::vector<Outcome>& outcomes) {
  Desk& desk = *shared_->desks[source];
  desk.collected();
  for (const auto& slot : slots()) {
    const MutexLock lock(slot->mutex);
    for (Outcome& outcome : slot->ended[source]) outcomes.push_back(std::move(outcome));
    slot->ended[source].clear();
  }
  desk.collect(outcomes);
  desk.return_late(now - kLongestWait, outcomes);
}

void Runner::give_up(Source source, std::vector<Outcome>& outcomes) {
  shared_->desks[source]->give_up(outcomes);
  for (const auto& slot : slots()) {
    std::optional<std::stop_source> stop;
    {
      const MutexLock lock(slot->mutex);
      for (Outcome& outcome : slot->ended[source]) outcomes.push_back(std::move(outcome));
      slot->ended[source].clear();
      if (!slot->current || slot->current->kept || slot->current->batch->source() != source)
        continue;
      if (std::exchange(slot->current->dropped, true)) continue;
      slot->current->told = true;
      stop = slot->stop;
      outcomes.push_back(
          {.token = slot->current->job->token,
           .kind = Outcome::Kind::unknown,
           .error =
               fail(Errc::internal, Remedy::retry_call, "it ran when the worker stopped").value()});
    }
    stop->request_stop();
  }
  // What ended in between.
  shared_->desks[source]->give_up(outcomes);
}

std::size_t Runner::given_up(Source source) const {
  const Slots all = slots();
  return static_cast<std::size_t>(std::count_if(all.begin(), all.end(), [&](const auto& slot) {
    const MutexLock lock(slot->mutex);
    return slot->current && slot->current->dropped && !slot->current->kept &&
           slot->current->batch->source() == source;
  }));
}

bool Runner::keep(Source source, Token token, const sink::KeptRun& run) {
  for (const auto& slot : slots()) {
    const MutexLock lock(slot->mutex);
    if (!slot->current || slot->current->dropped || slot->current->job->token != token ||
        slot->current->batch->source() != source)
      continue;
    slot->current->kept = run;
    return true;
  }
  return false;
}

bool Runner::rows_changed(Source source) { return shared_->desks[source]->rows_changed(); }

// ---- deadlines

void Runner::watch(TimePoint now) {
  for (const auto& slot : slots()) {
    std::optional<std::stop_source> stop;
    bool stuck = false;
    {
      const MutexLock lock(slot->mutex);
      if (!slot->current) continue;
      const TimePoint deadline =
          slot->current->began + slot->current->job->type->handler().options.deadline;
      if (now < deadline) continue;
      stuck = now >= deadline + kDeadlineGrace;
      if (std::exchange(slot->current->told, true) && !stuck) continue;
      stop = slot->stop;
    }
    stop->request_stop();  // calls the handler's callbacks
    if (stuck) replace(slot);
  }
}

/// Its handler does not return. What other runs of the thread ended with is kept.
void Runner::replace(const std::shared_ptr<Slot>& stuck) {
  const MutexLock places(places_mutex_);
  const auto found = std::find(slots_.begin(), slots_.end(), stuck);
  if (found == slots_.end()) return;
  std::map<Source, std::vector<Outcome>> ended;
  {
    const MutexLock lock(stuck->mutex);
    if (!stuck->current) return;
    const Batch::Job& job = *stuck->current->job;
    stuck->over = true;
    const std::string deadline = format_duration(job.type->handler().options.deadline);
    shared_->report(*stuck, TaskEnd::failed("did not end within its deadline of " + deadline));
    stuck->current->dropped = true;
    ended = std::exchange(stuck->ended, {});
    log::error("a handler does not return, its thread is replaced",
               {{"queue", shared_->queue}, {"type", job.type->handler().type}});
  }
  const auto place = static_cast<std::size_t>(found - slots_.begin());
  threads_[place].detach();
  start_thread_of(place);
  const MutexLock lock(slots_[place]->mutex);
  slots_[place]->ended = std::move(ended);
}

}  // namespace outbox::task
