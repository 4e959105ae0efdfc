#include "cli/ending.hpp"

#include <condition_variable>
#include <cstdlib>
#include <string>

#include "base/log.hpp"
#include "base/mutex.hpp"
#include "base/thread.hpp"
#include "base/units.hpp"
#include "cli/exit.hpp"

namespace outbox::cli {
namespace {

/// How long the lanes may take to be given back after the grace period.
constexpr std::chrono::seconds kBeyondGrace{5};

constexpr std::chrono::seconds kRetry{1};

}  // namespace

bool start_when_possible(bool wait, const Signals& signals, const Supervisor& supervisor,
                         const std::function<void()>& start) {
  std::string logged;
  while (true) {
    try {
      start();
      return true;
    } catch (const Failure& failure) {
      if (!wait || failure.code() != kNotNow) throw;
      if (logged != failure.what())
        log::warn("the store cannot be used yet, retries",
                  {{"reason", std::string(failure.what())}});
      logged = failure.what();
    }
    // Other services must not wait for a database that may come hours later.
    supervisor.ready("waiting for the store: " + logged);
    supervisor.alive();
    if (signals.wait_for(kRetry)) return false;
  }
}

void log_warnings(const config::Loaded& loaded) {
  for (const auto& warning : loaded.warnings)
    log::warn("the configuration looks wrong", {{"reason", warning}});
}

std::jthread limit_stop(std::chrono::milliseconds grace) {
  return start_thread("ob-stop-limit", [grace](const std::stop_token& over) {
    Mutex mutex;
    std::condition_variable_any wait;
    const MutexLock lock(mutex);
    (void)wait.wait_for(mutex, over, grace + kBeyondGrace, [] { return false; });
    if (over.stop_requested()) return;
    log::error(
        "the store or a sink does not answer, so this ends without waiting for it; "
        "what was in flight will be delivered again",
        {{"grace", format_duration(grace)}});
    std::_Exit(kInterrupted);
  });
}

int stop_in_order(const std::function<StopReport(std::chrono::milliseconds)>& stop,
                  std::chrono::milliseconds grace, const LastWords& words) {
  log::info("stopping, a second signal ends it at once", {{"grace", format_duration(grace)}});
  const StopReport report = stop(grace);
  if (report.drained) {
    log::info(words.drained);
    return kOk;
  }
  log::warn(words.abandoned, {{"abandoned", report.abandoned}});
  return kInterrupted;
}

}  // namespace outbox::cli
