// What watches a relay in production, for benchmarks that measure its price: metrics that are
// scraped, and continuous verification. History is an option of the relay itself.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <outbox/relay.hpp>
#include <string>
#include <thread>

#include "bench/bench.hpp"
#include "http/monitor.hpp"
#include "verify/verify_job.hpp"

namespace outbox::bench {

/// How often each of them does something. The defaults are those of the product.
struct WatchOptions {
  std::chrono::milliseconds scrape_every{std::chrono::seconds(15)};
  std::chrono::milliseconds metrics_interval{std::chrono::seconds(15)};
  std::chrono::milliseconds verify_every{std::chrono::seconds(5)};
  std::chrono::milliseconds verify_after{std::chrono::minutes(1)};
};

/// Watches until it is destroyed.
class Watchers {
 public:
  /// `report` may be called by any thread as long as the object lives.
  Watchers(const BenchOptions& options, const WatchOptions& watch,
           std::function<RelayReport()> report);
  Watchers(const Watchers&) = delete;
  Watchers& operator=(const Watchers&) = delete;
  ~Watchers() = default;

  /// Where the metrics are.
  [[nodiscard]] int port() const { return monitor_->address().port; }
  /// The processor time that verification has used so far, in seconds.
  [[nodiscard]] double verify_seconds() const;

 private:
  std::unique_ptr<http::Monitor> monitor_;
  verify::VerifyJob verify_;
  std::jthread scraper_;
};

}  // namespace outbox::bench
