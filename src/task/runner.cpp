#include "task/runner.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "base/mutex.hpp"
#include "base/steady.hpp"
#include "base/thread.hpp"

namespace outbox::task {
namespace {

/// How long the end waits for handlers that run. The relay's grace period is over by then.
constexpr std::chrono::milliseconds kLastGrace{500};

/// The threads share it, so it lives as long as a handler does not return.
/// How long the task was due. The clock of the store may be ahead of this one.
std::chrono::nanoseconds waited(const Batch::Job& job, std::chrono::system_clock::time_point now) {
  Timestamp due = job.created_at;
  if (job.rules && job.rules->execute_at_us)
    due = std::max(due, Timestamp(std::chrono::microseconds(*job.rules->execute_at_us)));
  return std::max(std::chrono::nanoseconds(now - due), std::chrono::nanoseconds(0));
}

struct Runner : std::enable_shared_from_this<Runner> {
  Runner(std::string queue, RunnerCore::Types types, const RunnerCore::Options& options,
         RunnerSettings its_settings)
      : core(std::move(queue), std::move(types), options,
             {.wake = [this](std::size_t tasks) { wake(tasks); },
              .replace = [this](std::size_t place,
                                const std::string& type) { replace(place, type); }}),
        settings(std::move(its_settings)),
        threads(options.threads) {}

  RunnerCore core;
  const RunnerSettings settings;
  Mutex mutex;
  std::condition_variable_any changed;
  bool over OUTBOX_GUARDED_BY(mutex){false};
  std::atomic<bool> started{false};
  Mutex threads_mutex;
  std::vector<std::jthread> threads OUTBOX_GUARDED_BY(threads_mutex);

  void wake(std::size_t tasks);
  void stop();
  void replace(std::size_t place, const std::string& type);
  void start_thread_for(std::size_t place) OUTBOX_REQUIRES(threads_mutex);
  [[nodiscard]] std::shared_ptr<Batch> wait_for_batch();
  void work(RunnerCore::Slot& slot);
  [[nodiscard]] bool run_next(RunnerCore::Slot& slot, Batch& batch);
  [[nodiscard]] TaskEnd run(const Batch& batch, RunnerCore::Begun begun, RunnerCore::Slot& slot,
                            TimePoint began) const;
  [[nodiscard]] bool is_busy(std::size_t place) const {
    return RunnerCore::run_of(*core.slot(place)).has_value();
  }
};

void Runner::wake(std::size_t tasks) {
  if (!started.exchange(true)) {
    const MutexLock lock(threads_mutex);
    for (std::size_t place = 0; place < threads.size(); ++place) start_thread_for(place);
  }
  // The mutex is taken so that a thread which has just found nothing already waits, and is
  // notified.
  { const MutexLock lock(mutex); }
  tasks == 1 ? changed.notify_one() : changed.notify_all();
}

void Runner::replace(std::size_t place, const std::string& type) {
  log::error("a handler does not return, its thread is replaced",
             {{"queue", core.queue()}, {"type", type}});
  const MutexLock lock(threads_mutex);
  threads[place].detach();
  start_thread_for(place);
}

void Runner::start_thread_for(std::size_t place) {
  threads[place] = start_thread("ob-task-" + core.queue(),
                                [runner = shared_from_this(), slot = core.slot(place)](
                                    const std::stop_token&) { runner->work(*slot); });
}

std::shared_ptr<Batch> Runner::wait_for_batch() {
  const MutexLock lock(mutex);
  while (!over) {
    if (auto batch = core.next_batch()) return batch;
    changed.wait(mutex);
  }
  return nullptr;
}

void Runner::work(RunnerCore::Slot& slot) {
  while (!RunnerCore::is_replaced(slot)) {
    const auto batch = wait_for_batch();
    if (!batch) return;
    while (run_next(slot, *batch)) {
    }
  }
}

/// Returns false if the batch has no more tasks, or if the thread was replaced.
bool Runner::run_next(RunnerCore::Slot& slot, Batch& batch) {
  const TimePoint began = now_steady();
  auto begun = core.begin(slot, batch, began);
  if (!begun) return false;
  if (begun->job->attempt == 1)
    begun->job->type->meter().picked_up(waited(*begun->job, std::chrono::system_clock::now()));
  const TaskEnd end = run(batch, std::move(*begun), slot, began);
  core.end(slot, end, now_steady());
  return true;
}

TaskEnd Runner::run(const Batch& batch, RunnerCore::Begun begun, RunnerCore::Slot& slot,
                    TimePoint began) const {
  const Batch::Job& job = *begun.job;
  const Handlers::Handler& handler = job.type->handler();
  const TaskRun seen{.id = job.id,
                     .queue = core.queue(),
                     .type = handler.type,
                     .key = batch.key_of(job),
                     .content_type = batch.part(job.content_type, job.headers),
                     .headers = batch.part(job.headers, job.end),
                     .attempt = job.attempt,
                     .seq = job.seq,
                     .created_at = job.created_at,
                     .deadline = began + handler.options.deadline,
                     .stop = std::move(begun.stop),
                     .store_url = settings.store_url,
                     .schema = settings.schema,
                     .report_progress = [&slot](std::size_t percent, std::string_view text) {
                       slot.report(percent, text);
                     }};
  try {
    TaskEnd end = handler.run(batch.part(job.payload, job.key), seen);
    if (!end.result() || end.result()->size() <= settings.result_bytes) return end;
    log::warn("a result is too large and is not kept", {{"task", job.id.str()},
                                                        {"type", handler.type},
                                                        {"bytes", end.result()->size()},
                                                        {"most", settings.result_bytes}});
    return TaskEnd::done();
  } catch (const std::exception& error) {
    return TaskEnd::failed(error.what());
  } catch (...) {
    return TaskEnd::failed("the handler threw something that is not a std::exception");
  }
}

void Runner::stop() {
  core.close();
  {
    const MutexLock lock(mutex);
    over = true;
  }
  changed.notify_all();
  std::vector<std::jthread> all;
  {
    const MutexLock lock(threads_mutex);
    all.swap(threads);
  }
  const TimePoint until = now_steady() + kLastGrace;
  for (std::size_t place = 0; place < all.size(); ++place) {
    if (!all[place].joinable()) continue;
    while (is_busy(place) && now_steady() < until)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (is_busy(place)) all[place].detach();
  }
}

}  // namespace

std::shared_ptr<RunnerCore> make_runner(std::string queue, RunnerCore::Types types,
                                        const RunnerCore::Options& options,
                                        RunnerSettings settings) {
  const auto runner =
      std::make_shared<Runner>(std::move(queue), std::move(types), options, std::move(settings));
  return {&runner->core, [runner](RunnerCore*) { runner->stop(); }};
}

}  // namespace outbox::task
