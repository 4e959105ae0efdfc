// What the store knows, as metrics: a thread asks it now and then, so that a scrape costs the store
// nothing and never waits for it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <optional>
#include <outbox/error.hpp>
#include <thread>

#include "base/mutex.hpp"
#include "health/health.hpp"
#include "metrics/families.hpp"
#include "store/store.hpp"

namespace outbox::http {

/// Adds what was seen of the store at this time. Unit of the time: microseconds since 1970, UTC.
void add_store(const health::Deliveries& seen, std::int64_t at_us, metrics::Families& into);

/// Adds how large the store is and how far it reaches.
void add_figures(const store::StoreFigures& figures, metrics::Families& into);

class StoreMetrics {
 public:
  struct Options {
    store::StoreOptions store;
    std::chrono::milliseconds interval{std::chrono::seconds(15)};
    std::chrono::milliseconds retention{};  ///< As of the relay; what is held back depends on it.
  };

  explicit StoreMetrics(Options options);
  StoreMetrics(const StoreMetrics&) = delete;
  StoreMetrics& operator=(const StoreMetrics&) = delete;
  StoreMetrics(StoreMetrics&&) = delete;
  StoreMetrics& operator=(StoreMetrics&&) = delete;
  ~StoreMetrics() = default;

  // Any thread.
  /// Adds what was seen last. While the store does not answer that is outbox_store_up alone, so
  /// that nobody takes old numbers for new ones.
  void add_to(metrics::Families& into) const;
  /// Whether the store answered the last time, and why it did not.
  [[nodiscard]] Status ready() const;

 private:
  struct Seen {
    health::Deliveries deliveries;
    Result<store::StoreFigures> figures;
  };

  void run(const std::stop_token& stop);
  [[nodiscard]] Result<Seen> look();

  const Options options_;
  std::unique_ptr<store::Store> store_;  ///< The thread's only.

  mutable Mutex mutex_;
  std::condition_variable_any stopped_;
  Result<Seen> seen_ OUTBOX_GUARDED_BY(mutex_);
  std::int64_t at_us_ OUTBOX_GUARDED_BY(mutex_){0};

  std::jthread thread_;
};

}  // namespace outbox::http
