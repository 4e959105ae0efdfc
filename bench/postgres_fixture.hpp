// The schema of the benchmarks in the database that --store names. It is made anew, and dropped at
// the end. Throws Exception.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <outbox/relay.hpp>
#include <string>
#include <thread>

#include "bench/bench.hpp"
#include "store/store.hpp"
#include "support/pg.hpp"

namespace outbox::bench {

using test::Pg;

inline constexpr const char* kSchema = "outbox_bench";
/// The longest time for a drain, or until tasks that should run have run.
inline constexpr std::chrono::minutes kDrainLimit{10};

/// What a drain of the log cost.
struct Drain {
  double events_per_second{0};
  double bare{0};              ///< The rate without the outbox, where it was measured.
  double cpu_us_per_event{0};  ///< The CPU time of this process, which includes the relay.
  double peak_rss_mib{0};
  double wal_bytes{0};  ///< Bytes that the server wrote during the drain.
  double statements{0};
  double settlements{0};
};

/// Returns the medians of this many drains; of the memory it returns the maximum.
[[nodiscard]] Drain median_drain(int repeats, const std::function<Drain(int number)>& drain);

/// Throws Exception, since only this many tasks ran within kDrainLimit.
[[noreturn]] void too_few_tasks(std::int64_t runs, std::int64_t enough);
/// Looks again and again, with this pause, until enough tasks have run; `looked_at` returns their
/// number. Throws Exception after kDrainLimit: a task that never runs must not block the others.
template <class LookedAt>
void wait_for_tasks(std::int64_t enough, std::chrono::microseconds pause,
                    const LookedAt& looked_at) {
  const auto deadline = std::chrono::steady_clock::now() + kDrainLimit;
  for (std::int64_t runs = looked_at(); runs < enough; runs = looked_at()) {
    if (std::chrono::steady_clock::now() > deadline) too_few_tasks(runs, enough);
    std::this_thread::sleep_for(pause);
  }
}

/// The peak of the memory of this process, or of the one with this id.
void reset_peak_rss();
[[nodiscard]] double peak_rss_mib(const std::string& process = "self");
/// The CPU time of this process, user and system, in microseconds.
[[nodiscard]] double cpu_us();
/// The processor time, in seconds, of the process or thread with this folder in /proc.
[[nodiscard]] double cpu_seconds(const std::filesystem::path& folder);

/// SQL expressions that fill a log, in which `i` counts.
struct Rows {
  std::string aggregate_type{"'order'"};
  std::string aggregate_id{"(i % 10000)::text"};
  std::string event_type{"'OrderPlaced'"};
  std::string headers{"'{}'"};
};

class PostgresFixture {
 public:
  /// Replaces what an earlier run left.
  explicit PostgresFixture(const BenchOptions& options, std::string schema = kSchema);
  PostgresFixture(const PostgresFixture&) = delete;
  PostgresFixture& operator=(const PostgresFixture&) = delete;
  ~PostgresFixture();

  /// Writes events, each in its own transaction: 200-byte payloads, 10,000 keys. Then reads all of
  /// them once, to set hint bits and warm the cache.
  void fill(std::int64_t events, const Rows& rows = {});
  /// Writes events without reading them.
  void write(std::int64_t events, const Rows& rows = {});
  /// The rate of a bare loop that pages the same rows by seq, from the row after `after` on, one
  /// page after the other, and does nothing.
  [[nodiscard]] double bare_drain(std::uint64_t after = 0) const;
  /// Drains the log to a new subscription, and removes the subscription.
  [[nodiscard]] Drain drain(SubscriptionSpec spec, std::int64_t events);
  /// Drains the log to a new subscription, and leaves the subscription.
  [[nodiscard]] Drain deliver(SubscriptionSpec spec, std::int64_t events);
  /// Drains the log with whatever delivers: a relay or a worker.
  template <class Deliverer>
  [[nodiscard]] Drain measure(Deliverer& deliverer, std::int64_t events) {
    return measure({.start = [&] { return deliverer.start(); },
                    .report = [&] { return deliverer.report(); },
                    .stop = [&] { (void)deliverer.stop(std::chrono::seconds(10)); }},
                   events);
  }

  /// The options of a relay with this subscription.
  [[nodiscard]] RelayOptions relay_options(SubscriptionSpec spec) const;
  /// A store with connections of its own.
  [[nodiscard]] std::unique_ptr<store::Store> open_store() const;
  void drop_subscriptions();
  /// Runs the command of the options, and connects again.
  void run_between();
  [[nodiscard]] Pg& admin() { return admin_; }
  [[nodiscard]] const BenchOptions& options() const { return options_; }
  void say(const std::string& line) const {
    if (options_.progress) options_.progress(line);
  }

 private:
  struct Calls {
    std::function<Status()> start;
    std::function<RelayReport()> report;
    std::function<void()> stop;
  };

  [[nodiscard]] Drain measure(const Calls& calls, std::int64_t events);
  [[nodiscard]] double wal_position();

  const BenchOptions& options_;
  const std::string schema_;
  Pg admin_;
};

}  // namespace outbox::bench
