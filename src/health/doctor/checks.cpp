#include "health/doctor/checks.hpp"

#include <algorithm>
#include <exception>
#include <optional>
#include <utility>

#include "base/thread.hpp"

namespace outbox::health {
namespace {

Finding unfinished(const std::string& name, const std::string& subject, std::string what) {
  return {.severity = Severity::error,
          .check = name,
          .subject = subject,
          .what = std::move(what),
          .reason = "whether it can be used is not known; a relay waits as this check did",
          .command = "give a longer --timeout; is the network or the name server slow?"};
}

std::string failed(const std::string& why) {
  return "the check failed" + (why.empty() ? ", and does not say why" : ": " + why);
}

}  // namespace

void Checks::start(const std::string& name, const std::string& subject, Check check) {
  const MutexLock lock(mutex_);
  Running& running = checks_.emplace_back(Running{.name = name, .subject = subject});
  threads_.push_back(start_thread("doctor", [this, &running, check = std::move(check)](
                                                const std::stop_token&) { run(running, check); }));
}

void Checks::run(Running& running, const Check& check) {
  std::optional<std::string> failure;
  try {
    check([this](Findings findings) { report(std::move(findings)); });
  } catch (const std::exception& error) {
    failure = error.what();
  } catch (...) {
    failure = "";
  }
  const MutexLock lock(mutex_);
  if (failure) findings_.add(unfinished(running.name, running.subject, failed(*failure)));
  running.ended = true;
  changed_.notify_all();
}

void Checks::report(Findings findings) {
  const MutexLock lock(mutex_);
  findings_.append(std::move(findings));
}

Findings Checks::wait(TimePoint until) {
  const MutexLock lock(mutex_);
  const auto all_ended = [this]() OUTBOX_REQUIRES(mutex_) {
    return std::all_of(checks_.begin(), checks_.end(), [](const auto& one) { return one.ended; });
  };
  changed_.wait_until(mutex_, until, all_ended);
  Findings found = findings_;
  for (const Running& one : checks_) {
    if (!one.ended) found.add(unfinished(one.name, one.subject, "did not answer in time"));
  }
  return found;
}

bool Checks::hangs() {
  const MutexLock lock(mutex_);
  return std::any_of(checks_.begin(), checks_.end(), [](const auto& one) { return !one.ended; });
}

}  // namespace outbox::health
