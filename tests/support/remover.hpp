// A thread that removes delivered history all the time while a test runs.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

#include "base/mutex.hpp"
#include "relay/retention.hpp"
#include "store/store.hpp"

namespace outbox::test {

/// Removes everything that may go.
[[nodiscard]] inline Result<relay::RetentionPass> prune(store::Store& store,
                                                        const relay::RetentionRules& rules = {}) {
  auto retention = store.retention();
  if (!retention) return tl::unexpected(retention.error());
  return relay::remove_history(**retention, EventId::generate(), rules,
                               [](const auto&, const auto&) {}, {});
}

class Remover {
 public:
  explicit Remover(const std::string& url)
      : store_(store::open_store({.url = url}).value()),
        thread_([this](const std::stop_token& stop) { run(stop); }) {}

  [[nodiscard]] std::int64_t removed() const { return removed_.load(); }
  void stop() {
    thread_.request_stop();
    if (thread_.joinable()) thread_.join();
  }

 private:
  void run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      const auto pass = prune(*store_);
      if (pass) removed_ += pass->events;
      const MutexLock lock(mutex_);
      (void)stopped_.wait_for(mutex_, stop, std::chrono::milliseconds(20), [] { return false; });
    }
  }

  std::unique_ptr<store::Store> store_;
  std::atomic<std::int64_t> removed_{0};
  Mutex mutex_;
  std::condition_variable_any stopped_;
  std::jthread thread_;
};

}  // namespace outbox::test
