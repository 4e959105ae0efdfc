#include "task/run_keeper.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "base/backoff.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "base/steady.hpp"
#include "base/thread.hpp"
#include "event/task_queue.hpp"
#include "store/parked.hpp"
#include "store/tasks.hpp"
#include "store/text.hpp"
#include "store/wait.hpp"

namespace outbox::task {
namespace {

/// Others are looked at twice in a heartbeat. With the silence that makes one dead, of two heartbeats, and the first look at it, the runs
/// of a dead worker begin again within three heartbeats of its last one.
constexpr int kLooks = 2;
constexpr std::chrono::seconds kProgress{1};
/// Deadlines are looked at this often while something runs.
constexpr std::chrono::milliseconds kWatch{100};
/// At a stop, for the last ends to be written.
constexpr std::chrono::seconds kLastWrite{2};
constexpr std::size_t kMostRows = 1000;
/// Of its own rows: more than it has threads.
constexpr std::size_t kAllRows = 1'000'000;
/// Somebody else has locked the row of a unique key.
constexpr std::chrono::milliseconds kAskAgain{50};
constexpr BackoffPolicy kKeeperReconnect{.first = std::chrono::milliseconds(50),
                                         .longest = std::chrono::seconds(1)};

/// A task that never begins.
FinishedRun replaced(const Batch& batch) {
  const Batch::Job& job = batch.job(0);
  FinishedRun run{.source = batch.source(),
                  .outcome = {.token = job.token, .kind = Outcome::Kind::acked},
                  .finish = {}};
  run.finish.id = job.id;
  run.finish.outcome = store::TaskFinish::Outcome::cancelled;
  run.finish.reason = "a newer task with its unique key took its place";
  run.finish.unique_key = job.rules->unique_key;
  return run;
}

TimePoint after(TimePoint now, std::chrono::nanoseconds pause) {
  return now + std::chrono::duration_cast<TimePoint::duration>(pause);
}

}  // namespace

RunKeeper::RunKeeper(const EventId& worker, std::string name, store::StoreOptions store,
                     KeeperOptions options, EventFd bell)
    : worker_(worker),
      name_(std::move(name)),
      where_(std::move(store)),
      options_(std::move(options)),
      exchange_(worker, {.heartbeat = options_.heartbeat}),
      bell_(std::move(bell)) {}

RunKeeper::~RunKeeper() { (void)stop(std::chrono::milliseconds(0)); }

void RunKeeper::add(std::shared_ptr<Runner> queue) {
  queue->on_work([this] { ring(); });
  exchange_.add(queue);
  queues_.push_back(std::move(queue));
}

void RunKeeper::start() {
  if (thread_.joinable()) return;
  {
    const MutexLock lock(mutex_);
    stop_.reset();
    given_back_ = 0;
    claims_ = true;
  }
  thread_ = start_thread("ob-runs", [this](const std::stop_token&) { run(); });
}

std::size_t RunKeeper::stop(std::chrono::milliseconds grace) {
  if (!thread_.joinable()) return 0;
  {
    const MutexLock lock(mutex_);
    stop_ = Stop{.by = now_steady() + grace};
  }
  ring();
  thread_.join();
  const MutexLock lock(mutex_);
  return given_back_;
}

void RunKeeper::ring() const { bell_.signal(); }

// ---- the thread

void RunKeeper::run() {
  do {
    wait();
    const TimePoint now = now_steady();
    watch(now);
    take_ends();
    if (now >= again_at_) note(work(now));
  } while (!is_over());
  rows_.reset();
}

void RunKeeper::wait() {
  const TimePoint now = now_steady();
  TimePoint until = std::min(beat_at_, look_at_);
  if (failures_ > 0) until = again_at_;
  if (runs_something()) until = std::min({until, now + kWatch});
  if (some_are_busy_) until = std::min({until, now + kAskAgain});
  if (failures_ == 0 && claims_) until = std::min(until, exchange_.next_at());
  {
    const MutexLock lock(mutex_);
    if (stop_) until = std::min(until, stop_->given_up ? now + kWatch : stop_->by);
  }
  auto told = rows_ ? rows_->wait(bell_, until) : store::wait_for(bell_, -1, until);
  if (!told) return note(pass(told));
  if (rows_ && *told) exchange_.told();
}

bool RunKeeper::runs_something() const {
  return std::any_of(queues_.begin(), queues_.end(),
                     [](const auto& queue) { return !queue->kept().empty(); });
}

void RunKeeper::watch(TimePoint now) {
  for (const auto& queue : queues_) {
    if (!queue->kept().empty()) queue->watch(now);
  }
}

void RunKeeper::take_ends() {
  for (const auto& queue : queues_) {
    for (const KeptEnd& kept : queue->kept_ends())
      ends_.push_back({.end = end_of(kept, worker_), .runner = queue.get()});
    for (FinishedRun& run : queue->finished())
      finished_.push_back({.run = std::move(run), .runner = queue.get()});
  }
}

/// The relay may have written the row of a run that it gave up when it stopped: nobody else gives it back. True: there are such rows.
bool RunKeeper::finds_last_rows() {
  {
    const MutexLock lock(mutex_);
    if (!rows_ || std::exchange(stop_->compared, true)) return false;
  }
  // Twice: see OwnRows.
  for (int i = 0; i < 2; ++i) {
    if (!compare_own_rows()) return false;
  }
  if (is_written()) return false;
  ring();  // They are written now, not at the end of the grace period.
  return true;
}

/// Stopping, and nothing is left to do or to wait for.
bool RunKeeper::is_over() {
  const TimePoint now = now_steady();
  // In this order: a run that ends in between is among the ends.
  const bool runs = runs_something();
  take_ends();
  {
    const MutexLock lock(mutex_);
    if (!stop_) return false;
    if (stop_->given_up && now >= stop_->by + kLastWrite) {
      if (!is_written())
        log::warn("tasks that ran could not be noted, they run again",
                  {{"tasks", ends_.size() + finished_.size()}, {"worker", name_}});
      return true;
    }
    if (now < stop_->by || stop_->given_up) {
      if (!is_written() || runs) return false;
    }
  }
  if (is_written() && !runs) {
    if (finds_last_rows()) return false;
    if (rows_) (void)rows_->leave(worker_);
    return true;
  }
  give_up_runs();
  return false;
}

void RunKeeper::give_up_runs() {
  std::size_t given_up = 0;
  for (const auto& queue : queues_) {
    given_up += queue->kept().size();
    queue->give_up_kept();
  }
  const MutexLock lock(mutex_);
  stop_->given_up = true;
  given_back_ += given_up;
  ring();
}

Status RunKeeper::work(TimePoint now) {
  if (Status status = connect(); !status) return status;
  if (now >= beat_at_) {
    Status status = beat();
    if (status) status = compare_own_rows();
    if (!status) return status;
    beat_at_ = now + options_.heartbeat;
  }
  if (Status status = begin_unique(); !status) return status;
  if (Status status = write(); !status) return status;
  if (claims_) {
    if (Status status = exchange_.turn(*rows_, now); !status) return status;
  }
  if (now >= look_at_) {
    Status status = look_for_the_dead(now);
    if (status) status = remove_replaced();
    if (!status) return status;
    look_at_ = now + options_.heartbeat / kLooks;
  }
  if (now < progress_at_) return {};
  progress_at_ = now + kProgress;
  return report_progress();
}

Status RunKeeper::connect() {
  if (rows_) return {};
  OUTBOX_TRY(const auto store, store::open_store(where_));
  OUTBOX_TRY(rows_, store->task_runs());
  exchange_.start_over();
  return {};
}

void RunKeeper::note(const Status& status) {
  const TimePoint now = now_steady();
  if (status) {
    failures_ = 0;
    if (const auto over = outage_.works(now))
      log::info("the runs of tasks are written again",
                {{"down_seconds", in_seconds(over->lasted)}});
    return;
  }
  rows_.reset();
  again_at_ = after(now, backoff(kKeeperReconnect, ++failures_, worker_.bytes[15]));
  const std::string reason = status.error().text();
  if (const auto repeats = outage_.failed(reason, now)) {
    log::warn("the runs of tasks cannot be written, retries",
              {{"repeats", *repeats}, {"reason", reason}});
  }
}

// ---- what is written

const RetrySchedule& RunKeeper::retries_of(const store::TaskRunRow& row) const {
  for (const auto& queue : queues_) {
    if (event::queue_of_subscription(row.queue) != queue->queue()) continue;
    if (const TaskType* const type = queue->find_type(row.type)) return type->retries();
  }
  return options_.retries;
}

/// Those with a unique key begin once that is written: from then on one that takes their place begins after them.
Status RunKeeper::begin_unique() {
  some_are_busy_ = false;
  for (const auto& queue : queues_) {
    auto batches = queue->to_begin();
    if (batches.size() > kMostRows) batches.resize(kMostRows);
    if (batches.empty()) continue;
    std::vector<store::UniqueTask> tasks;
    for (const auto& batch : batches) {
      tasks.push_back({.id = batch->job(0).id,
                       .queue = queue->queue(),
                       .unique_key = batch->job(0).rules->unique_key});
    }
    OUTBOX_TRY(const auto answers, rows_->begin_unique(tasks));
    for (std::size_t i = 0; i < answers.size(); ++i) {
      if (answers[i] == store::MayBegin::begin) queue->begin(batches[i]);
      if (answers[i] == store::MayBegin::busy) some_are_busy_ = true;
      if (answers[i] == store::MayBegin::later) queue->postpone(batches[i]);
      if (answers[i] == store::MayBegin::replaced && queue->refuse(batches[i]))
        finished_.push_back({.run = replaced(*batches[i]), .runner = queue.get()});
    }
  }
  return {};
}

Status RunKeeper::write() {
  while (!is_written()) {
    const std::size_t count = std::min(ends_.size(), kMostRows);
    const std::size_t more = std::min(finished_.size(), kMostRows);
    std::vector<store::TaskRunEnd> some;
    for (std::size_t i = 0; i < count; ++i) some.push_back(ends_[i].end);
    std::vector<store::TaskFinish> finishes;
    for (std::size_t i = 0; i < more; ++i) finishes.push_back(finished_[i].run.finish);
    if (Status status = rows_->end(some, finishes); !status) return status;
    std::set<Runner*> changed;
    for (std::size_t i = 0; i < count; ++i) changed.insert(ends_[i].runner);
    for (std::size_t i = 0; i < more; ++i) finished_[i].runner->noted(finished_[i].run);
    ends_.erase(ends_.begin(), ends_.begin() + static_cast<std::ptrdiff_t>(count));
    finished_.erase(finished_.begin(), finished_.begin() + static_cast<std::ptrdiff_t>(more));
    for (Runner* runner : changed) {
      if (runner != nullptr) runner->announce_changed_rows();
    }
  }
  return {};
}

Status RunKeeper::report_progress() {
  std::vector<store::TaskProgress> all;
  for (const auto& queue : queues_) {
    for (RunProgress& one : queue->progress()) {
      all.push_back({.subscription = one.run.subscription,
                     .seq = one.run.seq,
                     .token = one.run.token,
                     .percent = one.percent,
                     .text = store::storable_text(one.text)});
    }
  }
  return all.empty() ? Status{} : rows_->report(worker_, all);
}

// ---- who is alive

Status RunKeeper::beat() {
  OUTBOX_TRY(const std::int64_t store_us, rows_->beat(worker_, name_, note_of_types()));
  const TimePoint now = now_steady();
  const bool first = !clock_->now_us(now);
  clock_->set(store_us, now);
  if (!first) return {};
  for (const auto& queue : queues_) queue->announce();
  return {};
}

std::vector<std::string> RunKeeper::subscriptions() const {
  std::vector<std::string> all;
  for (const auto& queue : queues_) {
    auto names = queue->subscriptions();
    all.insert(all.end(), std::make_move_iterator(names.begin()),
               std::make_move_iterator(names.end()));
  }
  return all;
}

Status RunKeeper::compare_own_rows() {
  std::vector<EventId> unkept;
  for (const auto& queue : queues_) {
    for (const EventId& id : queue->unkept()) unkept.push_back(id);
  }
  std::vector<sink::KeptRun> kept;
  std::vector<Runner*> runners;  // of those
  for (const auto& queue : queues_) {
    for (const sink::KeptRun& run : queue->kept()) {
      kept.push_back(run);
      runners.push_back(queue.get());
    }
  }
  take_ends();
  OUTBOX_TRY(const auto rows, rows_->runs_of(worker_, subscriptions(), kAllRows));
  std::vector<store::TaskRunEnd> ended;
  for (const End& one : ends_) ended.push_back(one.end);
  const OwnRows::Difference difference = own_rows_.compare(unkept, kept, ended, rows);
  for (const store::TaskRunRow& row : difference.runless) {
    store::TaskRunEnd back = end_of({.run = {.subscription = row.subscription,
                                             .seq = row.seq,
                                             .id = row.id,
                                             .attempts = row.attempts,
                                             .token = row.token}},
                                    worker_);
    back.result.error = "its worker lost the connection to the store";
    ends_.push_back({.end = std::move(back)});
  }
  const auto runner_of = [&](const sink::KeptRun& run) -> Runner& {
    const auto same = [&](const sink::KeptRun& one) {
      return one.subscription == run.subscription && one.seq == run.seq && one.token == run.token;
    };
    return *runners[static_cast<std::size_t>(std::find_if(kept.begin(), kept.end(), same) -
                                             kept.begin())];
  };
  for (const sink::KeptRun& run : difference.cancelled) {
    if (!runner_of(run).cancel(run)) continue;
    log::info("a task was cancelled, its handler is told to stop",
              {{"task", run.id.str()}, {"worker", name_}});
  }
  for (const sink::KeptRun& run : difference.lost) {
    log::warn("a task was taken from this worker, its handler is told to stop",
              {{"task", run.id.str()}, {"worker", name_}});
    runner_of(run).lose(run);
  }
  return {};
}

Status RunKeeper::look_for_the_dead(TimePoint now) {
  OUTBOX_TRY(const auto others, rows_->others(worker_, subscriptions()));
  for (const EventId& dead : others_.silent(others, now, options_.heartbeat)) {
    if (Status status = recover(dead); !status) return status;
  }
  return {};
}

Status RunKeeper::recover(const EventId& dead) {
  while (true) {
    OUTBOX_TRY(const auto rows, rows_->runs_of(dead, subscriptions(), kMostRows));
    if (rows.empty()) break;
    std::vector<store::TaskRunEnd> ends;
    for (const store::TaskRunRow& row : rows)
      ends.push_back(end_of_dead(row, dead, retries_of(row)));
    if (Status status = rows_->end(ends, {}); !status) return status;
    log::warn("tasks of a dead worker run again", {{"worker", dead.str()}, {"tasks", rows.size()}});
    for (const auto& queue : queues_) queue->announce_changed_rows();
  }
  others_.forget(dead);
  return rows_->leave(dead);
}

/// Parked tasks that others with their unique keys have replaced: they would hold their keys until it is their turn. Rarely any: a
/// connection of its own does it, as for a person.
Status RunKeeper::remove_replaced() {
  OUTBOX_TRY(const auto tasks, rows_->replaced(subscriptions()));
  if (tasks.empty()) return {};
  std::map<std::int32_t, std::vector<std::int64_t>> seqs;
  for (const store::ReplacedTask& task : tasks) seqs[task.subscription].push_back(task.seq);
  OUTBOX_TRY(const auto store, store::open_store(where_));
  OUTBOX_TRY(const auto parked, store->parked_events());
  for (const auto& [subscription, places] : seqs) {
    OUTBOX_TRY([[maybe_unused]] const std::size_t removed,
               parked->discard(subscription, places, "",
                               "a newer task with its unique key took its place"));
  }
  return {};
}

/// For people: `outbox status`.
std::string RunKeeper::note_of_types() const {
  store::WorkerNote note{.heartbeat = options_.heartbeat};
  for (const auto& queue : queues_) {
    for (const auto& type : queue->types()) {
      type->durations().turn(now_steady());
      note.types.push_back({.queue = queue->queue(),
                            .name = type->handler().type,
                            .runs = type->durations().counts()});
    }
  }
  return store::to_json(note);
}

}  // namespace outbox::task
