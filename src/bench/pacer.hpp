// Latencies of events that are written at a steady rate, and the figures made of them.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <outbox/sink.hpp>
#include <outbox/subscription.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.hpp"
#include "bench/figure.hpp"
#include "bench/postgres_fixture.hpp"

namespace outbox::bench {

/// Takes the time when each event arrives. Its payload begins with the time just before its COMMIT, in ns of the steady clock; 0
/// while warming up: such an event is counted, its latency is not.
class Arrivals {
 public:
  /// Any thread.
  void arrived(std::string_view body);
  /// False: they did not arrive in time.
  [[nodiscard]] bool wait_for(std::int64_t count);
  [[nodiscard]] std::vector<double> latencies_ms();

 private:
  Mutex mutex_;
  std::condition_variable_any changed_;
  std::int64_t count_ OUTBOX_GUARDED_BY(mutex_){0};
  std::vector<double> latencies_ms_ OUTBOX_GUARDED_BY(mutex_);
};

/// A payload that begins with this time of the steady clock, padded to the 200 bytes of all benchmarks.
[[nodiscard]] std::string stamped_payload(std::int64_t sent_ns);
[[nodiscard]] std::int64_t now_ns();

struct Latencies {
  std::vector<double> event_ms;   ///< From just before COMMIT to the arrival.
  std::vector<double> commit_ms;  ///< Of COMMIT alone: no latency can be shorter.
};

/// Starts a relay with this subscription (to this sink if it is custom) and writes one-event transactions with synchronous
/// commit on two connections, 1,000 a second in total, for the length of the benchmark, after one second of warm-up, in which
/// relay, client and consumer connect. Waits for all to arrive.
[[nodiscard]] Latencies measure_latencies(PostgresFixture& log, SubscriptionSpec spec, bool wake_up,
                                          Arrivals& arrivals, std::unique_ptr<Sink> sink = nullptr);

struct LatencyTargets {
  double p50_ms;
  double p99_ms;
};

/// Runs `measure` with wake-up and by polling alone in turn; medians over the repeats. The log is emptied before each run, since
/// a new relay starts at its beginning. The limit is what `bare` measures, the same path without the outbox; without `bare` it is
/// the COMMIT alone.
[[nodiscard]] std::vector<Figure> latency_figures(
    PostgresFixture& log, const std::string& name, LatencyTargets targets,
    const std::function<Latencies(bool wake_up)>& measure,
    const std::function<std::vector<double>()>& bare = {});

}  // namespace outbox::bench
