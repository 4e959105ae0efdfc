// What the keeper of runs asks of a runner and tells it: runs with a row, ends to be noted, tasks for any worker.
#include <algorithm>
#include <utility>

#include "task/runner_state.hpp"

namespace outbox::task {

const std::string& Runner::queue() const { return shared_->queue; }
const Runner::Types& Runner::types() const { return shared_->types; }

const TaskType* Runner::find_type(std::string_view name) const {
  const auto found = std::find_if(shared_->types.begin(), shared_->types.end(),
                                  [&](const auto& type) { return type->handler().type == name; });
  return found == shared_->types.end() ? nullptr : found->get();
}

void Runner::announce() {
  for (const auto& desk : shared_->all_desks()) {
    desk->collected();
    desk->announce();
  }
}

void Runner::announce_changed_rows() {
  for (const auto& desk : shared_->all_desks()) desk->announce_changed_rows();
}

void Runner::on_work(std::function<void()> ready) {
  const MutexLock lock(shared_->work_mutex);
  shared_->work_ready = std::move(ready);
}

std::vector<std::shared_ptr<Batch>> Runner::to_begin() const {
  std::vector<std::shared_ptr<Batch>> all;
  const MutexLock lock(shared_->mutex);
  for (const Desk* const desk : shared_->by_priority) {
    for (auto& batch : desk->to_begin()) all.push_back(std::move(batch));
  }
  return all;
}

void Runner::begin(const std::shared_ptr<Batch>& batch) {
  if (shared_->desks[batch->source()]->take_unique(batch)) add(batch);
}

bool Runner::refuse(const std::shared_ptr<Batch>& batch) {
  Desk& desk = *shared_->desks[batch->source()];
  if (!desk.take_unique(batch)) return false;
  desk.await(batch->job(0).token);
  return true;
}

void Runner::postpone(const std::shared_ptr<Batch>& batch) {
  Desk& desk = *shared_->desks[batch->source()];
  if (desk.postpone_unique(batch)) desk.announce();
}

std::vector<FinishedRun> Runner::finished() {
  const MutexLock lock(shared_->ends_mutex);
  return std::exchange(shared_->finished, {});
}

void Runner::noted(const FinishedRun& run) {
  Desk& desk = *shared_->desks[run.source];
  if (desk.note(run.outcome)) desk.announce();
}

std::vector<sink::KeptRun> Runner::kept() const {
  std::vector<sink::KeptRun> all;
  {
    const MutexLock lock(shared_->mutex);
    for (const auto& batch : shared_->claimed) all.push_back(*batch->kept());
  }
  for (const auto& slot : slots()) {
    const MutexLock lock(slot->mutex);
    if (slot->current && slot->current->kept && !slot->current->dropped)
      all.push_back(*slot->current->kept);
  }
  return all;
}

std::vector<EventId> Runner::unkept() const {
  std::vector<EventId> all;
  for (const auto& slot : slots()) {
    const MutexLock lock(slot->mutex);
    if (slot->current && !slot->current->kept && !slot->current->dropped)
      all.push_back(slot->current->job->id);
  }
  return all;
}

std::vector<KeptEnd> Runner::kept_ends() {
  const MutexLock lock(shared_->ends_mutex);
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
  {
    const MutexLock lock(shared_->mutex);
    std::erase_if(shared_->claimed, [&](const auto& batch) {
      return batch->kept()->seq == run.seq && batch->kept()->token == run.token;
    });
  }
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

bool Runner::cancel(const sink::KeptRun& run) {
  const auto is_it = [&](const sink::KeptRun& kept) {
    return kept.subscription == run.subscription && kept.seq == run.seq && kept.token == run.token;
  };
  bool had_not_begun = false;
  {
    const MutexLock lock(shared_->mutex);
    had_not_begun = std::erase_if(shared_->claimed,
                                  [&](const auto& batch) { return is_it(*batch->kept()); }) > 0;
  }
  if (had_not_begun) {
    shared_->add_kept_end({.run = run});
    return true;
  }
  for (const auto& slot : slots()) {
    std::optional<std::stop_source> stop;
    {
      const MutexLock lock(slot->mutex);
      if (!slot->current || !slot->current->kept || !is_it(*slot->current->kept)) continue;
      if (slot->current->dropped || std::exchange(slot->current->told, true)) return false;
      stop = slot->stop;
    }
    stop->request_stop();
    return true;
  }
  return false;
}

void Runner::give_up_kept() {
  std::deque<std::shared_ptr<Batch>> claimed;
  {
    const MutexLock lock(shared_->mutex);
    claimed.swap(shared_->claimed);
  }
  for (const auto& batch : claimed) shared_->add_kept_end({.run = *batch->kept()});
  for (const sink::KeptRun& run : kept()) {
    lose(run);
    shared_->add_kept_end({.run = run});
  }
}

// ---- tasks for any worker

bool Runner::take_elsewhere() {
  std::size_t left = shared_->elsewhere;
  while (left > 0 && !shared_->elsewhere.compare_exchange_weak(left, left - 1)) {
  }
  return left > 0;
}

void Runner::set_elsewhere(std::size_t threads) { shared_->elsewhere = threads; }

std::size_t Runner::free_threads() const {
  std::size_t busy = 0;
  for (const auto& slot : slots()) {
    const MutexLock lock(slot->mutex);
    if (slot->current) ++busy;
  }
  for (const auto& desk : shared_->all_desks()) busy += desk->waiting().tasks;
  const MutexLock lock(shared_->mutex);
  busy += shared_->claimed.size();
  return shared_->options.threads - std::min(busy, shared_->options.threads);
}

bool Runner::is_starved(TimePoint now) const {
  const auto desks = shared_->all_desks();
  return std::any_of(desks.begin(), desks.end(),
                     [now](const auto& desk) { return desk->wants(now); }) &&
         free_threads() == 0;
}

std::vector<std::string> Runner::types_to_claim() const {
  std::vector<std::string> names;
  for (const auto& type : shared_->types) names.push_back(type->handler().type);
  return names;
}

void Runner::add_claimed(const store::ClaimedTasks& claimed) {
  start();
  const TimePoint now = std::chrono::steady_clock::now();
  const std::vector<std::string> known = subscriptions();
  for (const store::ClaimedTask& task : claimed.tasks) {
    const auto found = std::find(known.begin(), known.end(), task.subscription_name);
    const auto type =
        std::find_if(shared_->types.begin(), shared_->types.end(),
                     [&](const auto& one) { return one->handler().type == task.event.event_type; });
    const sink::KeptRun run{.subscription = task.subscription,
                            .seq = task.event.seq,
                            .id = task.event.id,
                            .attempts = task.attempts,
                            .token = task.token};
    const bool is_known = found != known.end() && type != shared_->types.end();
    // It was given away when its type had no limit. What goes back is due, at the owner of its lane.
    TypeLimit* const limit = is_known ? (*type)->limit() : nullptr;
    Permit permit = limit != nullptr ? limit->take(now) : nullptr;
    if (!is_known || (limit != nullptr && !permit)) {
      shared_->add_kept_end({.run = run});
      continue;
    }
    const auto batch = std::make_shared<Batch>(static_cast<Source>(found - known.begin()), now);
    batch->hold(std::move(permit));
    event::Arena arena;
    auto rules = event::rules_of(task.event.headers, arena);
    Message message;
    message.event = &task.event;
    message.body = task.event.payload;
    message.attempt = task.attempts + 1;
    batch->add(**type, message,
               rules ? std::make_shared<const event::TaskRules>(std::move(*rules)) : nullptr);
    batch->keep(run);
    const MutexLock lock(shared_->mutex);
    shared_->claimed.push_back(batch);
  }
  shared_->changed.notify_all();
}

}  // namespace outbox::task
