#include "relay/settler.hpp"

#include <utility>

#include "base/error.hpp"
#include "base/thread.hpp"

namespace outbox::relay {
namespace {

/// A crash of the database loses at most the settlements since the last flushed commit.
constexpr std::chrono::milliseconds kFlushEvery{100};
constexpr std::chrono::milliseconds kRetryAfter{50};

}  // namespace

Settler::Settler(std::unique_ptr<store::Progress> progress, Totals& totals,
                 std::function<void(const Error&)> failed)
    : progress_(std::move(progress)), totals_(totals), failed_(std::move(failed)) {}

void Settler::start() {
  thread_ = start_thread("ob-settle", [this](const std::stop_token& stop) { run(stop); });
}

void Settler::settle(Work work, WrittenCall written) {
  {
    const MutexLock lock(mutex_);
    jobs_.push_back({std::move(work), std::move(written)});
  }
  changed_.notify_one();
}

void Settler::read_due(DueQuestion question) { ask(std::move(question)); }

void Settler::read_keys(KeysQuestion question) { ask(std::move(question)); }

void Settler::ask(Question question) {
  {
    const MutexLock lock(mutex_);
    questions_.push_back(std::move(question));
  }
  changed_.notify_one();
}

void Settler::run(const std::stop_token& stop) {
  while (true) {
    std::vector<Job> jobs;
    std::vector<Question> questions;
    {
      const MutexLock lock(mutex_);
      changed_.wait(mutex_, stop, [this]() OUTBOX_REQUIRES(mutex_) {
        return !jobs_.empty() || !questions_.empty();
      });
      jobs.swap(jobs_);
      questions.swap(questions_);
    }
    if (jobs.empty() && stop.stop_requested()) return;  // everything is written
    if (!jobs.empty() && !write(std::move(jobs), stop)) return;
    for (const Question& question : questions) {
      if (stop.stop_requested()) break;
      const Status status = std::visit([this](const auto& one) { return answer(one); }, question);
      statements_.store(progress_->statements(), std::memory_order_relaxed);
      if (!status) return failed_(status.error());
    }
  }
}

bool Settler::write(std::vector<Job> jobs, const std::stop_token& stop) {
  Work all;
  for (Job& job : jobs) all.add(std::move(job.work));
  auto released = append(all);
  // If another connection holds the write lock for long, nothing is written, and a retry is safe.
  while (!released && released.error().remedy == Remedy::retry_call &&
         released.error().effect == Effect::none && !stop.stop_requested()) {
    sleep_for(kRetryAfter, stop);
    released = append(all);
  }
  statements_.store(progress_->statements(), std::memory_order_relaxed);
  if (!released) {
    failed_(released.error());
    return false;
  }
  has_written_.store(true, std::memory_order_relaxed);
  for (const Job& job : jobs) job.written(*released);
  return true;
}

Status Settler::answer(const DueQuestion& question) {
  store::DueLimits limits;
  limits.events += question.besides;
  limits.keys += question.besides;
  OUTBOX_TRY(auto due,
             progress_->due(question.subscription, question.holding, limits, question.asked));
  question.read(std::move(due));
  return {};
}

Status Settler::answer(const KeysQuestion& question) {
  // Keys that a dead event blocks are left as they are. They are released, if at all, when the
  // subscription starts.
  OUTBOX_TRY(auto keys,
             progress_->parked_keys(question.subscription, question.holding.lanes, true));
  question.read(std::move(keys));
  return {};
}

Result<std::vector<store::ReleasedKey>> Settler::append(const Work& work) {
  const auto now = std::chrono::steady_clock::now();
  const store::ProgressBatch batch{.settlements = work.rows,
                                   .parked = work.parked,
                                   .results = work.results,
                                   .replays = work.replays};
  const bool flush = now - flushed_at_ >= kFlushEvery || store::begins_runs(batch);
  auto released =
      progress_->append(batch, flush ? store::Durability::flushed : store::Durability::eventual);
  if (released && flush) flushed_at_ = now;
  if (released) totals_.add(batch);
  return released;
}

}  // namespace outbox::relay
