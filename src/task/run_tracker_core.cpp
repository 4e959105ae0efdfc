#include "task/run_tracker_core.hpp"

#include <algorithm>
#include <iterator>
#include <set>

#include "base/error.hpp"
#include "event/task_queue.hpp"
#include "store/text.hpp"

namespace outbox::task {
namespace {

/// Other workers are looked at twice in a heartbeat. A worker is dead after a silence of two
/// heartbeats since it was first looked at, so its runs begin again within three heartbeats of its
/// last one.
constexpr int kLooks = 2;
constexpr std::chrono::seconds kProgress{1};
/// Deadlines are looked at this often while something runs.
constexpr std::chrono::milliseconds kWatch{100};
constexpr std::size_t kMostRows = 1000;
/// The most rows of its own that are read: more than it has threads.
constexpr std::size_t kAllRows = 1'000'000;
/// The pause before a task is asked for again while somebody else has locked the row of its unique
/// key.
constexpr std::chrono::milliseconds kAskAgain{50};

/// The end of a task that never begins.
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

}  // namespace

RunTrackerCore::RunTrackerCore(const EventId& worker, RunTrackerOptions options)
    : worker_(worker), options_(std::move(options)), exchange_(worker, options_.sharing) {}

void RunTrackerCore::add(std::shared_ptr<RunnerCore> queue) {
  exchange_.add(queue);
  queues_.push_back(std::move(queue));
}

void RunTrackerCore::start() {
  stop_.reset();
  given_back_ = 0;
  claims_ = true;
}

void RunTrackerCore::stop(TimePoint by) {
  if (!stop_) stop_ = Stop{.by = by};
}

TimePoint RunTrackerCore::next_at(TimePoint now, std::optional<TimePoint> reconnect_at) const {
  if (comparison_ || (stop_ && !stop_->looked)) return now;
  TimePoint until = reconnect_at.value_or(std::min(beat_at_, look_at_));
  if (runs_something()) until = std::min(until, now + kWatch);
  if (some_are_busy_) until = std::min(until, now + kAskAgain);
  if (!reconnect_at && claims_) until = std::min(until, exchange_.next_at());
  if (stop_) until = std::min(until, stop_->given_up ? now + kWatch : stop_->by);
  return until;
}

void RunTrackerCore::disconnected() {
  part_ = kRound.size();
  store_us_.reset();
  comparison_.reset();
  dead_.clear();
  rows_of_dead_.clear();
}

void RunTrackerCore::begin_round(TimePoint now) {
  for (const auto& queue : queues_) {
    if (!queue->kept().empty()) queue->watch(now);
  }
  take_ends();
  part_ = asked_queues_ = 0;
  some_are_busy_ = shared_ = looked_ = false;
}

Result<bool> RunTrackerCore::step(store::TaskRuns& rows, TimePoint now) {
  note_store_time(now);
  for (; part_ < kRound.size(); ++part_) {
    OUTBOX_TRY(const bool asked, (this->*kRound[part_])(rows, now));
    if (asked) return true;
  }
  return false;
}

// ---- the stop

bool RunTrackerCore::is_over(store::TaskRuns* rows, TimePoint now) {
  // The runs are looked at before the ends: a run that ends in between is among the ends.
  const bool runs = runs_something();
  take_ends();
  if (!stop_) return false;
  stop_->looked = true;
  if (stop_->given_up && now >= stop_->by + options_.last_write) return true;
  if (comparison_) return false;
  if (unwritten() > 0 || runs) {
    if (now >= stop_->by && !stop_->given_up) give_up_runs();
    return false;
  }
  if (rows == nullptr) return true;
  if (!std::exchange(stop_->compared, true)) {
    // When the relay stopped, it may have written the row of a run that it gave up: nobody else
    // gives that back. The rows are compared twice, which OwnRows needs.
    begin_comparison(1, beat_at_);
    return false;
  }
  (void)rows->leave(worker_);
  return true;
}

void RunTrackerCore::give_up_runs() {
  stop_->given_up = true;
  for (const auto& queue : queues_) {
    given_back_ += queue->kept().size();
    queue->give_up_kept();
  }
}

bool RunTrackerCore::runs_something() const {
  return std::any_of(queues_.begin(), queues_.end(),
                     [](const auto& queue) { return !queue->kept().empty(); });
}

// ---- what is written

void RunTrackerCore::take_ends() {
  for (const auto& queue : queues_) {
    for (const KeptEnd& kept : queue->kept_ends())
      ends_.push_back({.end = make_run_end(kept, worker_), .runner = queue.get()});
    for (FinishedRun& run : queue->finished())
      finished_.push_back({.run = std::move(run), .runner = queue.get()});
  }
}

/// A task with a unique key begins once its beginning is written: from then on a task that takes
/// its place begins after it.
Result<bool> RunTrackerCore::begin_unique(store::TaskRuns& rows, TimePoint /*now*/) {
  while (asked_queues_ < queues_.size()) {
    RunnerCore& queue = *queues_[asked_queues_++];
    auto batches = queue.to_begin();
    if (batches.size() > kMostRows) batches.resize(kMostRows);
    if (batches.empty()) continue;
    std::vector<store::UniqueTask> tasks;
    for (const auto& batch : batches) {
      tasks.push_back({.id = batch->job(0).id,
                       .queue = queue.queue(),
                       .unique_key = batch->job(0).rules->unique_key});
    }
    OUTBOX_TRY(const auto answers, rows.begin_unique(tasks));
    for (std::size_t i = 0; i < answers.size(); ++i) {
      if (answers[i] == store::MayBegin::begin) queue.begin_unique(batches[i]);
      if (answers[i] == store::MayBegin::busy) some_are_busy_ = true;
      if (answers[i] == store::MayBegin::later) queue.postpone(batches[i]);
      if (answers[i] == store::MayBegin::replaced && queue.refuse(batches[i]))
        finished_.push_back({.run = replaced(*batches[i]), .runner = &queue});
    }
    return true;
  }
  return false;
}

Result<bool> RunTrackerCore::write(store::TaskRuns& rows, TimePoint /*now*/) {
  if (unwritten() == 0) return false;
  const std::size_t count = std::min(ends_.size(), kMostRows);
  const std::size_t more = std::min(finished_.size(), kMostRows);
  std::vector<store::TaskRunEnd> some;
  for (std::size_t i = 0; i < count; ++i) some.push_back(ends_[i].end);
  std::vector<store::TaskFinish> finishes;
  for (std::size_t i = 0; i < more; ++i) finishes.push_back(finished_[i].run.finish);
  OUTBOX_TRY(rows.end(some, finishes));
  std::set<RunnerCore*> changed;
  for (std::size_t i = 0; i < count; ++i) changed.insert(ends_[i].runner);
  for (std::size_t i = 0; i < more; ++i) finished_[i].runner->noted(finished_[i].run);
  ends_.erase(ends_.begin(), ends_.begin() + static_cast<std::ptrdiff_t>(count));
  finished_.erase(finished_.begin(), finished_.begin() + static_cast<std::ptrdiff_t>(more));
  for (RunnerCore* runner : changed) {
    if (runner != nullptr) runner->announce_changed_rows();
  }
  return true;
}

Result<bool> RunTrackerCore::report_progress(store::TaskRuns& rows, TimePoint now) {
  if (now < progress_at_) return false;
  progress_at_ = now + kProgress;
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
  if (all.empty()) return false;
  OUTBOX_TRY(rows.report(worker_, all));
  return true;
}

Result<bool> RunTrackerCore::share(store::TaskRuns& rows, TimePoint now) {
  if (!claims_ || std::exchange(shared_, true)) return false;
  OUTBOX_TRY(exchange_.turn(rows, now));
  return true;
}

// ---- this worker is alive, and its rows are compared with its runs

Result<bool> RunTrackerCore::beat(store::TaskRuns& rows, TimePoint now) {
  if (comparison_ || now < beat_at_) return false;
  OUTBOX_TRY(store_us_, rows.beat(worker_, options_.name, note_of_types(now)));
  begin_comparison(0, now + options_.sharing.heartbeat);
  return true;
}

void RunTrackerCore::note_store_time(TimePoint now) {
  if (!store_us_) return;
  const bool first = !clock_->now_us(now);
  clock_->set(*std::exchange(store_us_, {}), now);
  if (!first) return;
  for (const auto& queue : queues_) queue->announce();
}

void RunTrackerCore::begin_comparison(int more, TimePoint beat_at) {
  Comparison& comparison = comparison_.emplace();
  comparison.more = more;
  comparison.beat_at = beat_at;
  // The unkept runs are collected first: a run that becomes kept in between is among both.
  for (const auto& queue : queues_) {
    for (const EventId& id : queue->unkept()) comparison.unkept.push_back(id);
  }
  for (const auto& queue : queues_) {
    for (const sink::KeptRun& run : queue->kept()) comparison.kept.push_back(run);
  }
  take_ends();
}

Result<bool> RunTrackerCore::compare_own_rows(store::TaskRuns& rows, TimePoint /*now*/) {
  if (!comparison_) return false;
  OUTBOX_TRY(const auto own, rows.runs_of(worker_, subscriptions(), kAllRows));
  const Comparison comparison = *std::exchange(comparison_, {});
  std::vector<store::TaskRunEnd> ended;
  for (const End& one : ends_) ended.push_back(one.end);
  follow(own_rows_.compare(comparison.unkept, comparison.kept, ended, own));
  beat_at_ = comparison.beat_at;
  if (comparison.more > 0) begin_comparison(comparison.more - 1, beat_at_);
  return true;
}

/// Every runner is asked: the one that has the run knows it, the others ignore it.
void RunTrackerCore::follow(const OwnRows::Difference& difference) {
  for (const store::TaskRunRow& row : difference.runless) {
    store::TaskRunEnd back = make_run_end({.run = {.subscription = row.subscription,
                                                   .seq = row.seq,
                                                   .id = row.id,
                                                   .attempts = row.attempts,
                                                   .token = row.token}},
                                          worker_);
    back.result.error = "its worker lost the connection to the store";
    ends_.push_back({.end = std::move(back)});
    news_.runless.push_back(row);
  }
  for (const auto& queue : queues_) {
    for (const sink::KeptRun& run : difference.cancelled) {
      if (queue->cancel(run)) news_.cancelled.push_back(run.id);
    }
    for (const sink::KeptRun& run : difference.lost) queue->lose(run);
  }
  news_.lost = difference.lost;
}

std::vector<std::string> RunTrackerCore::subscriptions() const {
  std::vector<std::string> all;
  for (const auto& queue : queues_) {
    auto names = queue->subscriptions();
    all.insert(all.end(), std::make_move_iterator(names.begin()),
               std::make_move_iterator(names.end()));
  }
  return all;
}

/// The note about the types of this worker that `outbox status` shows.
std::string RunTrackerCore::note_of_types(TimePoint now) const {
  store::WorkerNote note{.heartbeat = options_.sharing.heartbeat};
  for (const auto& queue : queues_) {
    for (const auto& type : queue->types()) {
      type->durations().turn(now);
      note.types.push_back({.queue = queue->queue(),
                            .name = type->handler().type,
                            .runs = type->durations().counts()});
    }
  }
  return store::to_json(note);
}

// ---- other workers

Result<bool> RunTrackerCore::look_for_the_dead(store::TaskRuns& rows, TimePoint now) {
  if (looked_ || now < look_at_) return false;
  OUTBOX_TRY(const auto others, rows.others(worker_, subscriptions()));
  dead_ = others_.silent(others, now, options_.sharing.heartbeat);
  news_.dead = dead_;
  return looked_ = true;
}

/// Reads what a dead worker has left and then writes its ends, until nothing is left.
Result<bool> RunTrackerCore::recover(store::TaskRuns& rows, TimePoint /*now*/) {
  if (dead_.empty()) return false;
  const EventId dead = dead_.back();
  if (!rows_of_dead_.empty()) {
    std::vector<store::TaskRunEnd> ends;
    for (const store::TaskRunRow& row : rows_of_dead_)
      ends.push_back(end_of_dead(row, dead, find_retries(row)));
    OUTBOX_TRY(rows.end(ends, {}));
    for (const store::TaskRunRow& row : rows_of_dead_) ++news_.recovered_in[row.queue];
    news_.recovered.emplace_back(dead, ends.size());
    rows_of_dead_.clear();
    for (const auto& queue : queues_) queue->announce_changed_rows();
    return true;
  }
  OUTBOX_TRY(rows_of_dead_, rows.runs_of(dead, subscriptions(), kMostRows));
  if (!rows_of_dead_.empty()) return true;
  dead_.pop_back();
  others_.forget(dead);
  OUTBOX_TRY(rows.leave(dead));
  return true;
}

const RetrySchedule& RunTrackerCore::find_retries(const store::TaskRunRow& row) const {
  for (const auto& queue : queues_) {
    if (event::queue_of_subscription(row.queue) != queue->queue()) continue;
    if (const TaskType* const type = queue->find_type(row.type)) return type->retries();
  }
  return options_.retries;
}

/// Looks for parked tasks that others with their unique keys have replaced: they would hold their
/// keys until it is their turn. There are rarely any.
Result<bool> RunTrackerCore::look_for_replaced(store::TaskRuns& rows, TimePoint now) {
  if (!std::exchange(looked_, false)) return false;
  OUTBOX_TRY(news_.replaced, rows.replaced(subscriptions()));
  look_at_ = now + options_.sharing.heartbeat / kLooks;
  return true;
}

}  // namespace outbox::task
