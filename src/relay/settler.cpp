#include "relay/settler.hpp"

#include <utility>

#include "base/thread.hpp"

namespace outbox::relay {
namespace {

/// A crash of the database loses at most the settlements since the last flushed commit.
constexpr std::chrono::milliseconds kFlushEvery{100};
constexpr std::chrono::milliseconds kRetryAfter{50};

}  // namespace

Settler::Settler(std::unique_ptr<store::Progress> progress,
                 std::function<void(const Error&)> failed)
    : progress_(std::move(progress)), failed_(std::move(failed)) {}

void Settler::start() {
  thread_ = start_thread("ob-settle", [this](const std::stop_token& stop) { run(stop); });
}

void Settler::settle(std::vector<store::Settlement> rows, std::function<void()> written) {
  {
    const MutexLock lock(mutex_);
    jobs_.push_back({std::move(rows), std::move(written)});
  }
  changed_.notify_one();
}

void Settler::run(const std::stop_token& stop) {
  while (true) {
    std::vector<Job> jobs;
    {
      const MutexLock lock(mutex_);
      changed_.wait(mutex_, stop, [this]() OUTBOX_REQUIRES(mutex_) { return !jobs_.empty(); });
      if (jobs_.empty()) return;  // a stop was requested, and everything is written
      jobs.swap(jobs_);
    }
    if (!write(std::move(jobs), stop)) return;
  }
}

bool Settler::write(std::vector<Job> jobs, const std::stop_token& stop) {
  std::vector<store::Settlement> rows;
  for (Job& job : jobs) {
    rows.insert(rows.end(), std::make_move_iterator(job.rows.begin()),
                std::make_move_iterator(job.rows.end()));
  }
  Status status = append(rows);
  // Another connection holds the write lock for long: nothing is written, and a retry is safe.
  while (!status && status.error().remedy == Remedy::retry_call &&
         status.error().effect == Effect::none && !stop.stop_requested()) {
    pause(stop);
    status = append(rows);
  }
  statements_.store(progress_->statements(), std::memory_order_relaxed);
  if (!status) {
    failed_(status.error());
    return false;
  }
  has_written_.store(true, std::memory_order_relaxed);
  for (const Job& job : jobs) job.written();
  return true;
}

void Settler::pause(const std::stop_token& stop) {
  const MutexLock lock(mutex_);
  (void)changed_.wait_for(mutex_, stop, kRetryAfter, [] { return false; });
}

Status Settler::append(std::span<const store::Settlement> rows) {
  const auto now = std::chrono::steady_clock::now();
  const bool flush = now - flushed_at_ >= kFlushEvery;
  Status status = progress_->append(
      {.settlements = rows}, flush ? store::Durability::flushed : store::Durability::eventual);
  if (status && flush) flushed_at_ = now;
  return status;
}

}  // namespace outbox::relay
