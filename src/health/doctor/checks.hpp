// Runs checks beside each other, and does not wait for one that hangs: clients of foreign libraries
// have time limits of their own, and a name server may have none.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <list>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.hpp"
#include "health/finding.hpp"

namespace outbox::health {

class Checks {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  /// Each group of findings that the check has, as soon as it has it. Any thread, until the check
  /// ends.
  using Report = std::function<void(Findings)>;
  using Check = std::function<void(const Report&)>;

  Checks() = default;
  Checks(const Checks&) = delete;
  Checks& operator=(const Checks&) = delete;
  Checks(Checks&&) = delete;
  Checks& operator=(Checks&&) = delete;
  /// Waits for all of them.
  ~Checks() = default;

  /// Any thread, also from a check. `name` and `subject` are those of the finding if it does not
  /// end.
  void start(const std::string& name, const std::string& subject, Check check);

  /// All findings until the last check ends, or until then. One that has not ended is a finding
  /// itself, as is one that throws.
  [[nodiscard]] Findings wait(TimePoint until);
  /// Some had not ended: their threads cannot be ended, only the process.
  [[nodiscard]] bool hangs();

 private:
  struct Running {
    std::string name;
    std::string subject;
    bool ended{false};
  };

  void run(Running& running, const Check& check);
  void report(Findings findings);

  Mutex mutex_;
  std::condition_variable_any changed_;
  std::list<Running> checks_ OUTBOX_GUARDED_BY(mutex_);
  Findings findings_ OUTBOX_GUARDED_BY(mutex_);
  std::vector<std::jthread> threads_ OUTBOX_GUARDED_BY(mutex_);
};

}  // namespace outbox::health
