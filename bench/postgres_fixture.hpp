// The schema of the benchmarks in the database that --store names: made anew, dropped at the end. Throws Exception.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <outbox/relay.hpp>
#include <string>

#include "bench/bench.hpp"
#include "testkit/pg.hpp"

namespace outbox::bench {

using testkit::Pg;

inline constexpr const char* kSchema = "outbox_bench";

/// What a drain of the log cost.
struct Drain {
  double events_per_second{0};
  double bare{0};              ///< Rate of the same without the outbox, where it was measured.
  double cpu_us_per_event{0};  ///< Of this process, which includes the relay.
  double peak_rss_mib{0};
  double wal_bytes{0};  ///< Written by the server during the drain.
  double statements{0};
  double settlements{0};
};

/// Medians of so many drains; of the memory the most.
[[nodiscard]] Drain median_drain(int repeats, const std::function<Drain(int number)>& drain);

/// Of this process.
void reset_peak_rss();
[[nodiscard]] double peak_rss_mib();

/// What a log is filled with: SQL expressions, in which `i` counts.
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

  /// Writes events, each in a transaction of its own: 200-byte payloads, 10,000 keys. Then reads all of them once, so that
  /// hint bits are set and the cache is warm.
  void fill(std::int64_t events, const Rows& rows = {});
  /// The same without reading.
  void write(std::int64_t events, const Rows& rows = {});
  /// Rate of a bare loop that pages the same rows by seq, one page after the other, and does nothing. From the row after `after` on.
  [[nodiscard]] double bare_drain(std::uint64_t after = 0) const;
  /// Drains the log to a new subscription, and removes the subscription.
  [[nodiscard]] Drain drain(SubscriptionSpec spec, std::int64_t events);
  /// The same, and leaves the subscription.
  [[nodiscard]] Drain deliver(SubscriptionSpec spec, std::int64_t events);
  /// The same with whatever delivers: a relay or a worker.
  template <class Deliverer>
  [[nodiscard]] Drain measure(Deliverer& deliverer, std::int64_t events) {
    return measure({.start = [&] { return deliverer.start(); },
                    .report = [&] { return deliverer.report(); },
                    .stop = [&] { (void)deliverer.stop(std::chrono::seconds(10)); }},
                   events);
  }

  /// Of a relay with this subscription.
  [[nodiscard]] RelayOptions relay_options(SubscriptionSpec spec) const;
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
