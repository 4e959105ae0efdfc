#include "task/run_tracker.hpp"

#include <map>
#include <utility>

#include "base/backoff.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "base/steady.hpp"
#include "base/thread.hpp"
#include "event/task_queue.hpp"
#include "store/parked.hpp"
#include "store/wait.hpp"

namespace outbox::task {
namespace {

constexpr BackoffPolicy kTrackerReconnect{.first = std::chrono::milliseconds(50),
                                          .longest = std::chrono::seconds(1)};

TimePoint after(TimePoint now, std::chrono::nanoseconds pause) {
  return now + std::chrono::duration_cast<TimePoint::duration>(pause);
}

}  // namespace

RunTracker::RunTracker(const EventId& worker, store::StoreOptions store, RunTrackerOptions options,
                       EventFd bell)
    : where_(std::move(store)),
      name_(options.name),
      bell_(std::move(bell)),
      core_(worker, std::move(options)) {}

RunTracker::~RunTracker() { (void)stop(std::chrono::milliseconds(0)); }

void RunTracker::add(const std::shared_ptr<RunnerCore>& queue) {
  queue->on_work([this] { bell_.signal(); });
  core_.add(queue);
  queues_.push_back(queue);
}

void RunTracker::report(RelayReport& into) const {
  for (const auto& queue : queues_) {
    for (const auto& type : queue->types()) {
      TaskTotals& totals = into.tasks.emplace_back();
      totals.queue = queue->queue();
      totals.type = type->handler().type;
      type->meter().add_to(totals);
    }
    into.tasks_recovered[queue->queue()];
  }
  const MutexLock lock(mutex_);
  for (const auto& [queue, tasks] : recovered_) into.tasks_recovered[queue] += tasks;
}

void RunTracker::start() {
  if (thread_.joinable()) return;
  core_.start();
  {
    const MutexLock lock(mutex_);
    stop_by_.reset();
  }
  thread_ = start_thread("ob-runs", [this](const std::stop_token&) { run(); });
}

std::size_t RunTracker::stop(std::chrono::milliseconds grace) {
  if (!thread_.joinable()) return 0;
  {
    const MutexLock lock(mutex_);
    stop_by_ = now_steady() + grace;
  }
  bell_.signal();
  thread_.join();
  return core_.given_back();
}

// ---- the thread

void RunTracker::run() {
  do {
    wait();
    const TimePoint now = now_steady();
    core_.begin_round(now);
    if (!again_at_ || now >= *again_at_) note(work());
  } while (!core_.is_over(rows_.get(), now_steady()));
  if (core_.unwritten() > 0)
    log::warn("tasks that ran could not be noted, they run again",
              {{"tasks", core_.unwritten()}, {"worker", name_}});
  rows_.reset();
}

void RunTracker::wait() {
  {
    const MutexLock lock(mutex_);
    if (stop_by_) core_.stop(*stop_by_);
  }
  const TimePoint until = core_.next_at(now_steady(), again_at_);
  auto told = rows_ ? rows_->wait(bell_, until) : store::wait_for(bell_, -1, until);
  if (!told) return note(pass(told));
  if (rows_ && *told) core_.told();
}

Status RunTracker::work() {
  OUTBOX_TRY(connect());
  while (true) {
    OUTBOX_TRY(const bool more, core_.step(*rows_, now_steady()));
    OUTBOX_TRY(follow(core_.news()));
    if (!more) return {};
  }
}

Status RunTracker::connect() {
  if (rows_) return {};
  OUTBOX_TRY(const auto store, store::open_store(where_));
  OUTBOX_TRY(rows_, store->task_runs());
  core_.connected();
  return {};
}

Status RunTracker::follow(const RunTrackerNews& news) {
  for (const EventId& task : news.cancelled) {
    log::info("a task was cancelled, its handler is told to stop",
              {{"task", task.str()}, {"worker", name_}});
  }
  for (const sink::KeptRun& run : news.lost) {
    log::warn("a task was taken from this worker, its handler is told to stop",
              {{"task", run.id.str()}, {"worker", name_}});
  }
  for (const auto& [dead, tasks] : news.recovered)
    log::warn("tasks of a dead worker run again", {{"worker", dead.str()}, {"tasks", tasks}});
  {
    const MutexLock lock(mutex_);
    for (const auto& [subscription, tasks] : news.recovered_in)
      recovered_[event::queue_of_subscription(subscription).value_or(subscription)] += tasks;
  }
  return news.replaced.empty() ? Status{} : remove(news.replaced);
}

/// The tasks are removed on a connection of its own, as if a person did it.
Status RunTracker::remove(const std::vector<store::ReplacedTask>& tasks) const {
  std::map<std::int32_t, std::vector<std::int64_t>> seqs;
  for (const store::ReplacedTask& task : tasks) seqs[task.subscription].push_back(task.seq);
  OUTBOX_TRY(const auto store, store::open_store(where_));
  OUTBOX_TRY(const auto parked, store->parked_events());
  for (const auto& [subscription, places] : seqs) {
    OUTBOX_TRY(parked->discard(subscription, places, "",
                               "a newer task with its unique key took its place"));
  }
  return {};
}

void RunTracker::note(const Status& status) {
  const TimePoint now = now_steady();
  if (status) {
    failures_ = 0;
    again_at_.reset();
  } else {
    rows_.reset();
    core_.disconnected();
    again_at_ = after(now, backoff(kTrackerReconnect, ++failures_, worker().bytes[15]));
  }
  outage_.note(status, now);
}

}  // namespace outbox::task
