#include "task/runner.hpp"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/thread.hpp"
#include "base/units.hpp"

namespace outbox::task {
namespace {

/// After its deadline, for a handler that was told to stop.
constexpr std::chrono::seconds kDeadlineGrace{10};
/// At the end, for handlers that run. The relay's grace period is over by then.
constexpr std::chrono::milliseconds kLastGrace{500};
/// Taken for a thread that has not become free since: it goes back.
constexpr std::chrono::milliseconds kLongestWait{500};
/// An average follows each 16th run, and every one that takes much longer.
constexpr std::uint32_t kSampled = 16;

TimePoint now_steady() { return std::chrono::steady_clock::now(); }

Error error_of(std::string reason) {
  return fail(Errc::internal, Remedy::retry_call, std::move(reason)).value();
}

}  // namespace

Outcome outcome_of(Token token, const TaskEnd& end) {
  Outcome outcome{.token = token, .kind = Outcome::Kind::acked};
  if (end.kind() == TaskEnd::Kind::done) return outcome;
  outcome.kind =
      end.kind() == TaskEnd::Kind::snoozed ? Outcome::Kind::postponed : Outcome::Kind::rejected;
  outcome.error = error_of(end.reason());
  outcome.retry_after = end.pause();
  outcome.final = end.kind() == TaskEnd::Kind::dead;
  return outcome;
}

// ---- a type

void TaskType::took(std::chrono::nanoseconds time) {
  // Two threads may overwrite each other's: it is an average.
  const std::int64_t before = usual_ns_.load(std::memory_order_relaxed);
  const std::int64_t took = std::max<std::int64_t>(time.count(), 1);
  if (before == 0) return usual_ns_.store(took, std::memory_order_relaxed);
  const bool sampled =
      took > 2 * before || runs_.fetch_add(1, std::memory_order_relaxed) % kSampled == 0;
  if (sampled) usual_ns_.store(before + (took - before) / 8, std::memory_order_relaxed);
}

// ---- a batch

void Batch::add(TaskType& type, const Message& message) {
  Job job{.type = &type,
          .token = message.token,
          .id = message.event->id,
          .attempt = message.attempt,
          .payload = text_.size()};
  text_.append(message.body);
  job.key = text_.size();
  text_.append(message.event->aggregate_id);
  job.content_type = text_.size();
  text_.append(message.event->content_type);
  job.headers = text_.size();
  text_.append(message.event->headers);
  job.end = text_.size();
  usual_ +=
      std::clamp<std::chrono::nanoseconds>(type.usual(), std::chrono::microseconds(1), kQuick);
  jobs_.push_back(job);
}

void Batch::cut(const std::function<void(const Job&)>& each) {
  for (std::size_t place = next_.exchange(jobs_.size(), std::memory_order_relaxed);
       place < jobs_.size(); ++place)
    each(jobs_[place]);
}

// ---- the threads

/// A thread, and the run that it is busy with.
struct Runner::Slot final : TaskRun::Reporter {
  struct Current {
    const Batch::Job* job{nullptr};
    TimePoint began{};
    bool told{false};     ///< To stop.
    bool dropped{false};  ///< Its outcome was reported without it, or does not count.
    std::optional<sink::KeptRun> kept{};
    std::optional<RunProgress> progress{};  ///< Not asked for yet.
  };

  mutable Mutex mutex;
  std::optional<Current> current OUTBOX_GUARDED_BY(mutex);
  std::stop_source stop OUTBOX_GUARDED_BY(mutex);
  std::vector<Outcome> ended OUTBOX_GUARDED_BY(mutex);
  bool over OUTBOX_GUARDED_BY(mutex){false};  ///< The thread ends after its run.

  void progress(std::size_t percent, std::string_view text) override {
    const MutexLock lock(mutex);
    if (current)
      current->progress = RunProgress{
          .run = {}, .percent = std::min<std::size_t>(percent, 100), .text = std::string(text)};
  }
};

/// Outlives the runner as long as a handler does not return.
struct Runner::Shared {
  Shared(std::string name, Types all) : queue(std::move(name)), types(std::move(all)) {}

  const std::string queue;
  const Types types;
  std::atomic<bool> announced{false};  ///< Nothing was collected since ready() was called.
  std::atomic<bool> rows_changed{false};

  Mutex mutex;
  std::condition_variable_any changed;
  std::deque<std::shared_ptr<Batch>> batches OUTBOX_GUARDED_BY(mutex);
  bool over OUTBOX_GUARDED_BY(mutex){false};
  Mutex ready_mutex;
  std::function<void()> ready OUTBOX_GUARDED_BY(ready_mutex);
  std::function<void()> kept_ready OUTBOX_GUARDED_BY(ready_mutex);
  Mutex kept_mutex;
  std::vector<KeptEnd> kept_ends OUTBOX_GUARDED_BY(kept_mutex);

  [[nodiscard]] std::shared_ptr<Batch> wait_for_batch();
  void announce();
  void add_kept_end(KeptEnd end);
  void report(Slot& slot, const TaskEnd& end) OUTBOX_REQUIRES(slot.mutex);
  void work(Slot& slot);
  [[nodiscard]] bool run_next(Slot& slot, Batch& batch);
  [[nodiscard]] TaskEnd run(const Batch& batch, const Batch::Job& job, Slot& slot,
                            std::stop_token stop, TimePoint began) const;
};

std::shared_ptr<Batch> Runner::Shared::wait_for_batch() {
  const MutexLock lock(mutex);
  while (true) {
    while (!batches.empty() && batches.front()->left() == 0) batches.pop_front();
    if (over) return nullptr;
    if (!batches.empty()) return batches.front();
    changed.wait(mutex);
  }
}

void Runner::Shared::announce() {
  if (announced.exchange(true)) return;
  const MutexLock lock(ready_mutex);
  if (ready) ready();
}

void Runner::Shared::add_kept_end(KeptEnd end) {
  {
    const MutexLock lock(kept_mutex);
    kept_ends.push_back(std::move(end));
  }
  const MutexLock lock(ready_mutex);
  if (kept_ready) kept_ready();
}

/// To whom its run belongs.
void Runner::Shared::report(Slot& slot, const TaskEnd& end) {
  const Slot::Current& current = *slot.current;
  if (current.dropped) return;
  if (current.kept) return add_kept_end({.run = *current.kept, .end = end});
  slot.ended.push_back(outcome_of(current.job->token, end));
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
    slot.current = Slot::Current{.job = job, .began = began};
    stop = slot.stop.get_token();
  }
  const TaskEnd end = run(batch, *job, slot, std::move(stop), began);
  job->type->took(now_steady() - began);
  {
    const MutexLock lock(slot.mutex);
    report(slot, end);
    slot.current.reset();
    if (slot.stop.stop_requested()) slot.stop = std::stop_source();
  }
  announce();
  return true;
}

TaskEnd Runner::Shared::run(const Batch& batch, const Batch::Job& job, Slot& slot,
                            std::stop_token stop, TimePoint began) const {
  const Handlers::Handler& handler = job.type->handler();
  const TaskRun seen{.id = job.id,
                     .queue = queue,
                     .type = handler.type,
                     .key = batch.part(job.key, job.content_type),
                     .content_type = batch.part(job.content_type, job.headers),
                     .headers = batch.part(job.headers, job.end),
                     .attempt = job.attempt,
                     .deadline = began + handler.deadline,
                     .stop = std::move(stop),
                     .reporter = &slot};
  try {
    return handler.run(batch.part(job.payload, job.key), seen);
  } catch (const std::exception& error) {
    return TaskEnd::failed(error.what());
  } catch (...) {
    return TaskEnd::failed("the handler threw what is no std::exception");
  }
}

Runner::Runner(std::string queue, Types types, std::size_t threads)
    : shared_(std::make_shared<Shared>(std::move(queue), std::move(types))),
      slots_(threads),
      threads_(threads) {}

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
  on_ready({});
  on_kept_end({});
  std::vector<Outcome> unused;
  give_up(unused);
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

// ---- for the sink

void Runner::on_ready(std::function<void()> ready) {
  const MutexLock lock(shared_->ready_mutex);
  shared_->ready = std::move(ready);
}

void Runner::add(std::shared_ptr<Batch> batch) {
  const bool one = batch->size() == 1;
  {
    const MutexLock lock(shared_->mutex);
    shared_->batches.push_back(std::move(batch));
  }
  one ? shared_->changed.notify_one() : shared_->changed.notify_all();
}

Load Runner::load(TimePoint now) const {
  Load load;
  for (const auto& slot : slots()) {
    const MutexLock lock(slot->mutex);
    if (!slot->current) continue;
    ++load.running;
    if (now - slot->current->began > kQuick) ++load.long_running;
  }
  const MutexLock lock(shared_->mutex);
  for (const auto& batch : shared_->batches) {
    load.waiting += batch->left();
    load.work_waiting += batch->work_left();
  }
  return load;
}

void Runner::collect(TimePoint now, std::vector<Outcome>& outcomes) {
  shared_->announced = false;
  for (const auto& slot : slots()) {
    const MutexLock lock(slot->mutex);
    for (Outcome& outcome : slot->ended) outcomes.push_back(std::move(outcome));
    slot->ended.clear();
  }
  const MutexLock lock(shared_->mutex);
  for (const auto& batch : shared_->batches) {
    if (now - batch->taken() < kLongestWait) break;
    batch->cut([&](const Batch::Job& job) {
      outcomes.push_back({.token = job.token,
                          .kind = Outcome::Kind::postponed,
                          .error = error_of("no thread was free for it"),
                          .retry_after = Duration::zero()});
    });
  }
}

void Runner::give_up(std::vector<Outcome>& outcomes) {
  std::deque<std::shared_ptr<Batch>> batches;
  {
    const MutexLock lock(shared_->mutex);
    batches.swap(shared_->batches);
  }
  for (const auto& batch : batches) {
    batch->cut([&](const Batch::Job& job) {
      outcomes.push_back({.token = job.token,
                          .kind = Outcome::Kind::retry,
                          .error = error_of("it had not begun when the worker stopped")});
    });
  }
  for (const auto& slot : slots()) {
    std::optional<std::stop_source> stop;
    {
      const MutexLock lock(slot->mutex);
      for (Outcome& outcome : slot->ended) outcomes.push_back(std::move(outcome));
      slot->ended.clear();
      if (!slot->current || slot->current->kept) continue;
      if (std::exchange(slot->current->dropped, true)) continue;
      slot->current->told = true;
      stop = slot->stop;
      outcomes.push_back({.token = slot->current->job->token,
                          .kind = Outcome::Kind::unknown,
                          .error = error_of("it ran when the worker stopped")});
    }
    stop->request_stop();
  }
}

std::size_t Runner::given_up() const {
  const Slots all = slots();
  return static_cast<std::size_t>(std::count_if(all.begin(), all.end(), [](const auto& slot) {
    const MutexLock lock(slot->mutex);
    return slot->current && slot->current->dropped && !slot->current->kept;
  }));
}

bool Runner::keep(Token token, const sink::KeptRun& run) {
  for (const auto& slot : slots()) {
    const MutexLock lock(slot->mutex);
    if (!slot->current || slot->current->job->token != token || slot->current->dropped) continue;
    slot->current->kept = run;
    return true;
  }
  return false;
}

bool Runner::rows_changed() { return shared_->rows_changed.exchange(false); }

// ---- for the keeper

void Runner::on_kept_end(std::function<void()> ready) {
  const MutexLock lock(shared_->ready_mutex);
  shared_->kept_ready = std::move(ready);
}

std::vector<sink::KeptRun> Runner::kept() const {
  std::vector<sink::KeptRun> all;
  for (const auto& slot : slots()) {
    const MutexLock lock(slot->mutex);
    if (slot->current && slot->current->kept && !slot->current->dropped)
      all.push_back(*slot->current->kept);
  }
  return all;
}

std::vector<KeptEnd> Runner::kept_ends() {
  const MutexLock lock(shared_->kept_mutex);
  return std::exchange(shared_->kept_ends, {});
}

std::vector<RunProgress> Runner::progress() {
  std::vector<RunProgress> all;
  for (const auto& slot : slots()) {
    const MutexLock lock(slot->mutex);
    if (!slot->current || !slot->current->kept || !slot->current->progress) continue;
    all.push_back(*std::exchange(slot->current->progress, {}));
    all.back().run = *slot->current->kept;
  }
  return all;
}

void Runner::lose(const sink::KeptRun& run) {
  for (const auto& slot : slots()) {
    std::optional<std::stop_source> stop;
    {
      const MutexLock lock(slot->mutex);
      if (!slot->current || !slot->current->kept || slot->current->kept->seq != run.seq ||
          slot->current->kept->token != run.token)
        continue;
      slot->current->dropped = slot->current->told = true;
      stop = slot->stop;
    }
    stop->request_stop();
  }
}

void Runner::give_up_kept() {
  for (const sink::KeptRun& run : kept()) {
    lose(run);
    shared_->add_kept_end({.run = run, .end = {}});
  }
}

void Runner::announce_changed_rows() {
  shared_->rows_changed = true;
  shared_->announced = false;
  shared_->announce();
}

// ---- deadlines

void Runner::watch(TimePoint now) {
  for (const auto& slot : slots()) {
    std::optional<std::stop_source> stop;
    bool stuck = false;
    {
      const MutexLock lock(slot->mutex);
      if (!slot->current) continue;
      const TimePoint deadline =
          slot->current->began + slot->current->job->type->handler().deadline;
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
  std::vector<Outcome> ended;
  {
    const MutexLock lock(stuck->mutex);
    if (!stuck->current) return;
    const Batch::Job& job = *stuck->current->job;
    stuck->over = true;
    const std::string deadline = format_duration(job.type->handler().deadline);
    shared_->report(*stuck, TaskEnd::failed("did not end within its deadline of " + deadline));
    stuck->current->dropped = true;
    ended.swap(stuck->ended);
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
