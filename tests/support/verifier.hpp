// Verifies a subscription again and again in a thread of its own while a test runs.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "base/mutex.hpp"
#include "store/store.hpp"
#include "verify/verify.hpp"

namespace outbox::test {

class Verifier {
 public:
  Verifier(std::string url, std::string subscription)
      : url_(std::move(url)), subscription_(std::move(subscription)), thread_([this] { work(); }) {}
  Verifier(const Verifier&) = delete;
  Verifier& operator=(const Verifier&) = delete;
  Verifier(Verifier&&) = delete;
  Verifier& operator=(Verifier&&) = delete;
  ~Verifier() { stop(); }

  void stop() {
    stopping_ = true;
    if (thread_.joinable()) thread_.join();
  }
  /// How often the subscription was verified.
  [[nodiscard]] int times() const { return times_; }
  /// The first fault that was found; empty if there was none.
  [[nodiscard]] std::string found() const {
    const MutexLock lock(mutex_);
    return found_;
  }

  /// Verifies the subscription once, and returns what was found; empty if nothing was. A
  /// subscription that does not exist yet has no fault.
  [[nodiscard]] static std::string verify(const std::string& url, const std::string& subscription,
                                          verify::LedgerWalk::Limits limits = {}) {
    const auto store =
        store::open_store({.url = url, .schema = "outbox", .application = "outbox test"});
    if (!store) return store.error().text();
    const auto catalog = (*store)->catalog();
    if (!catalog) return catalog.error().text();
    const auto rows = (*catalog)->subscriptions();
    if (!rows) return rows.error().text();
    const auto reader = (*store)->ledger_reader();
    if (!reader) return reader.error().text();
    for (const store::SubscriptionRow& row : *rows) {
      if (row.spec.name != subscription) continue;
      const auto found = verify::verify(**reader, row.id, {.limits = limits});
      if (!found) return found.error().text();
      if (!found->ok())
        return std::to_string(found->ledger.faults.front().settlement) + ": " +
               found->ledger.faults.front().text;
    }
    return {};
  }

 private:
  void work() {
    while (!stopping_) {
      // Every other time the windows are small, so that settlements are compared and forgotten all
      // the time.
      const verify::LedgerWalk::Limits small{.window = 8, .longest = 64, .tail = 256};
      std::string found =
          verify(url_, subscription_, times_ % 2 == 0 ? verify::LedgerWalk::Limits() : small);
      ++times_;
      if (found.empty()) continue;
      const MutexLock lock(mutex_);
      found_ = std::move(found);
      return;
    }
  }

  const std::string url_;
  const std::string subscription_;
  std::atomic<bool> stopping_{false};
  std::atomic<int> times_{0};
  mutable Mutex mutex_;
  std::string found_ OUTBOX_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace outbox::test
