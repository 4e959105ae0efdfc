// Verifies all subscriptions of a store all the time, on a thread of its own
// (docs/design/verify.md, "All the time"). Of several relays one at a time verifies a subscription.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <outbox/error.hpp>
#include <string>
#include <thread>

#include "base/mutex.hpp"
#include "base/outage.hpp"
#include "store/store.hpp"
#include "verify/follower.hpp"

namespace outbox::verify {

struct VerifyJobOptions {
  store::StoreOptions store;
  std::string verifier;  ///< The name of this relay.
  /// Settlements are compared when they are this old. A shorter time than the lease would show
  /// settlements of a relay that is about to lose its lanes.
  std::chrono::milliseconds after{std::chrono::minutes(1)};
  std::chrono::milliseconds every{std::chrono::seconds(5)};
  /// The share of a core that the thread may use.
  double most_cpu{0.05};
};

class VerifyJob {
 public:
  explicit VerifyJob(VerifyJobOptions options);
  VerifyJob(const VerifyJob&) = delete;
  VerifyJob& operator=(const VerifyJob&) = delete;
  VerifyJob(VerifyJob&&) = delete;
  VerifyJob& operator=(VerifyJob&&) = delete;
  /// Waits for the statement that is running.
  ~VerifyJob() = default;

 private:
  using TimePoint = std::chrono::steady_clock::time_point;
  struct Followed {
    std::int64_t revision{0};  ///< Of the row that this relay has read or written last.
    Follower follower;
  };
  struct Parts {
    std::unique_ptr<store::Store> store;
    std::unique_ptr<store::Catalog> catalog;
    std::unique_ptr<store::Verified> verified;
    std::unique_ptr<store::LedgerReader> reader;
    std::string outbox;
  };

  void run(const std::stop_token& stop);
  [[nodiscard]] Status run_pass(const std::stop_token& stop);
  [[nodiscard]] Status connect();
  [[nodiscard]] Status verify(const store::VerifiedRow& row, const std::stop_token& stop);
  /// Null: another relay verifies the subscription.
  [[nodiscard]] Followed* find_or_begin(const store::VerifiedRow& row);
  void log_faults(const store::VerifiedRow& row, const Follower::Progress& progress);
  /// Waits as long as the share of the processor says. Returns false if a stop is requested.
  [[nodiscard]] bool rest(const std::stop_token& stop);
  void note(const Status& status);

  const VerifyJobOptions options_;

  // Used by the thread only.
  std::unique_ptr<Parts> parts_;
  std::map<std::int32_t, Followed> followed_;  ///< By subscription.
  std::chrono::nanoseconds cpu_used_{0};       ///< At the end of the last rest.
  std::chrono::milliseconds pause_{0};         ///< Between the last pass and the next one.
  bool found_something_{false};                ///< In the last pass.
  bool more_{false};                           ///< The last pass has left something to compare.
  Outage outage_;

  Mutex mutex_;
  std::condition_variable_any stopped_;
  std::jthread thread_;
};

}  // namespace outbox::verify
