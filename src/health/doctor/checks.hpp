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
  /// A check passes each group of its findings to this function as soon as it has them. Any thread
  /// may call it until the check ends.
  using Report = std::function<void(Findings)>;
  using Check = std::function<void(const Report&)>;

  Checks() = default;
  Checks(const Checks&) = delete;
  Checks& operator=(const Checks&) = delete;
  Checks(Checks&&) = delete;
  Checks& operator=(Checks&&) = delete;
  /// Waits for all checks.
  ~Checks() = default;

  /// Any thread may call it, also a check. If the check does not end, the finding about that has
  /// this `name` and `subject`.
  void start(const std::string& name, const std::string& subject, Check check);

  /// Returns all findings once the last check has ended, or at `until`. A check that has not ended,
  /// or that threw, is itself a finding.
  [[nodiscard]] Findings wait(TimePoint until);
  /// Whether some checks have not ended. Their threads cannot be ended; only the process can.
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
