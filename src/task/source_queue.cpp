#include "task/source_queue.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace outbox::task {
namespace {

Outcome outcome(Token token, Outcome::Kind kind, std::string reason) {
  return {.token = token,
          .kind = kind,
          .error = fail(Errc::internal, Remedy::retry_call, std::move(reason)).value()};
}

/// The pause of a task that has replaced one that still runs.
constexpr std::chrono::seconds kWhileItRuns{1};

Outcome postponed(const Batch::Job& job, Duration pause, std::string reason) {
  Outcome back = outcome(job.token, Outcome::Kind::postponed, std::move(reason));
  back.retry_after = pause;
  return back;
}

Outcome late(const Batch::Job& job) {
  return postponed(job, Duration::zero(), "no thread was free for it");
}

}  // namespace

void SourceQueue::add(std::shared_ptr<Batch> batch) {
  const MutexLock lock(mutex_);
  batches_.push_back(std::move(batch));
}

std::shared_ptr<Batch> SourceQueue::front() {
  const MutexLock lock(mutex_);
  while (!batches_.empty() && batches_.front()->left() == 0) batches_.pop_front();
  return batches_.empty() ? nullptr : batches_.front();
}

Waiting SourceQueue::waiting() const {
  const MutexLock lock(mutex_);
  Waiting waiting{.tasks = to_begin_.size(), .work = {}};
  for (const auto& batch : batches_) {
    waiting.tasks += batch->left();
    waiting.work += batch->work_left();
  }
  return waiting;
}

void SourceQueue::add_unique(std::shared_ptr<Batch> batch) {
  const MutexLock lock(mutex_);
  to_begin_.push_back(std::move(batch));
}

std::vector<std::shared_ptr<Batch>> SourceQueue::to_begin() const {
  const MutexLock lock(mutex_);
  return to_begin_;
}

bool SourceQueue::begin_unique(const std::shared_ptr<Batch>& batch) {
  const MutexLock lock(mutex_);
  if (std::erase(to_begin_, batch) == 0) return false;
  batches_.push_back(batch);
  return true;
}

bool SourceQueue::refuse_unique(const std::shared_ptr<Batch>& batch) {
  const MutexLock lock(mutex_);
  if (std::erase(to_begin_, batch) == 0) return false;
  awaited_.insert(batch->job(0).token);
  return true;
}

bool SourceQueue::postpone_unique(const std::shared_ptr<Batch>& batch) {
  const MutexLock lock(mutex_);
  if (std::erase(to_begin_, batch) == 0) return false;
  noted_.push_back(
      postponed(batch->job(0), kWhileItRuns,
                "the task that it has replaced, with the same unique key, still runs"));
  return true;
}

void SourceQueue::return_late(TimePoint before, std::vector<Outcome>& outcomes) {
  const MutexLock lock(mutex_);
  for (const auto& batch : batches_) {
    if (batch->taken() >= before) break;
    batch->cut([&](const Batch::Job& job) { outcomes.push_back(late(job)); });
  }
  std::erase_if(to_begin_, [&](const auto& batch) {
    if (batch->taken() >= before) return false;
    outcomes.push_back(late(batch->job(0)));
    return true;
  });
}

void SourceQueue::await(Token token) {
  const MutexLock lock(mutex_);
  awaited_.insert(token);
}

bool SourceQueue::note(const Outcome& outcome) {
  const MutexLock lock(mutex_);
  if (awaited_.erase(outcome.token) == 0) return false;
  noted_.push_back(outcome);
  return true;
}

void SourceQueue::collect(std::vector<Outcome>& outcomes) {
  const MutexLock lock(mutex_);
  for (Outcome& outcome : noted_) outcomes.push_back(std::move(outcome));
  noted_.clear();
}

void SourceQueue::give_up_waiting(std::vector<Outcome>& outcomes) {
  const MutexLock lock(mutex_);
  const auto give_back = [&](const Batch::Job& job) {
    outcomes.push_back(
        outcome(job.token, Outcome::Kind::retry, "it had not begun when the worker stopped"));
  };
  for (const auto& batch : batches_) batch->cut(give_back);
  batches_.clear();
  for (const auto& batch : to_begin_) give_back(batch->job(0));
  to_begin_.clear();
}

void SourceQueue::give_up_ended(std::vector<Outcome>& outcomes) {
  collect(outcomes);
  const MutexLock lock(mutex_);
  for (const Token token : awaited_) {
    outcomes.push_back(
        outcome(token, Outcome::Kind::unknown, "its end was not noted when the worker stopped"));
  }
  awaited_.clear();
}

}  // namespace outbox::task
