// All checks of `outbox doctor`: of the configuration, of the store, of what is delivered from it,
// of each destination, of what consumers read. No check changes anything. Only the checks that need
// the store wait for another one.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <outbox/subscription.hpp>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "config/load.hpp"
#include "health/doctor/checks.hpp"
#include "health/doctor/sinks.hpp"
#include "health/doctor/store.hpp"
#include "health/finding.hpp"
#include "sink/inspection.hpp"
#include "store/subscriptions.hpp"

namespace outbox::health {

/// What the doctor examines.
struct Patient {
  config::Loaded loaded;
  StoreName store;
};

/// The problems of a configuration that cannot be used as it is.
[[nodiscard]] Findings judge_problems(const config::Problems& problems);
/// The warnings of a configuration that can be used.
[[nodiscard]] Findings judge_configuration(const config::Loaded& loaded);
/// Finds how the store differs from the subscriptions of the configuration. The command that
/// applies them names `file`, unless it is empty.
void judge_difference(const std::vector<SubscriptionSpec>& wanted,
                      const std::vector<store::SubscriptionOverview>& subscriptions,
                      const std::string& file, Findings& findings);

class Doctor {
 public:
  /// `patient` must outlive the doctor.
  Doctor(const Patient& patient, std::chrono::milliseconds timeout);

  /// Starts all checks and waits for them, not longer than the time limit.
  [[nodiscard]] Findings examine();
  /// Whether some checks have not ended. Then this object cannot be destroyed, and the process has
  /// to be ended.
  [[nodiscard]] bool hangs() { return checks_.hangs(); }

 private:
  using TimePoint = std::chrono::steady_clock::time_point;

  void look_at_store(const Checks::Report& report);
  void look_at_deliveries(const Checks::Report& report);
  void start_sink(const SubscriptionSpec& spec);
  void start_consumer(const ConsumerSpec& spec);
  void note_sizes(const store::Diagnosis& diagnosis);
  void compare_sizes(Findings& findings);

  const Patient& patient_;
  const TimePoint until_;
  /// When the last question about the store may begin. The rest of the time is for what follows
  /// from the answers.
  const TimePoint last_question_;
  Mutex mutex_;
  /// The inspections of sinks by the names of their subscriptions.
  std::map<std::string, std::pair<SubscriptionSpec, sink::Inspection>> inspected_
      OUTBOX_GUARDED_BY(mutex_);
  PayloadSizes sizes_ OUTBOX_GUARDED_BY(mutex_);
  Checks checks_;  ///< The last member, since its threads use the others.
};

}  // namespace outbox::health
