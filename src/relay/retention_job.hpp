// Removes delivered history while a relay delivers, on a thread of its own, which delivery never
// waits for.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <outbox/relay.hpp>
#include <stop_token>
#include <thread>
#include <vector>

#include "base/outage.hpp"
#include "relay/retention.hpp"
#include "store/store.hpp"

namespace outbox::relay {

class RetentionJob {
 public:
  /// Starts the thread. The destructor waits for the statement that is running. Both arguments must
  /// outlive this object.
  RetentionJob(store::Store& store, const RelayOptions& options);

  /// Any thread may call this. It returns at once.
  void request_stop() { thread_.request_stop(); }

 private:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// A subscription that holds history back is logged at once, then ever more rarely.
  struct Logged {
    TimePoint next{};
    std::chrono::hours pause{1};
  };

  void run(const std::stop_token& stop);
  [[nodiscard]] Result<RetentionPass> run_pass(const std::stop_token& stop);
  [[nodiscard]] Status prune_history(const std::stop_token& stop);
  void log_holds(const std::vector<store::LogPiece>& pieces);
  void note(const Result<RetentionPass>& pass);

  store::Store& store_;
  const RelayOptions& options_;
  const EventId id_{EventId::generate()};

  // Used by the thread only.
  std::map<std::int32_t, Logged> logged_;  ///< By subscription.
  TimePoint next_history_{};               ///< When rows of the history are removed next.
  OutageLog outage_{"delivered history cannot be removed, retries",
                    "delivered history can be removed again"};

  std::jthread thread_;
};

}  // namespace outbox::relay
