// Writers at a steady rate, the times at which their events arrived somewhere, and the figures made of both.
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

/// The payload of a paced event begins with the time just before its COMMIT was sent, in ns of the steady clock; 0 while
/// warming up: such an event is counted, its latency is not.
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

/// From a time of the steady clock, as a payload begins with it: padded to the benchmarks' 200 bytes.
[[nodiscard]] std::string stamped_payload(std::int64_t sent_ns);
[[nodiscard]] std::int64_t now_ns();

struct Latencies {
  std::vector<double> event_ms;   ///< From just before COMMIT was sent to the arrival.
  std::vector<double> commit_ms;  ///< Of COMMIT alone: no latency can be shorter.
};

/// Starts a relay with this subscription (to this sink if it is custom) and writes one-event transactions with synchronous
/// commit from two connections, 1,000 a second in all, for the length of the benchmark; before that one second to warm up,
/// in which relay, client and consumer still connect and learn where to send. Waits for all to arrive.
[[nodiscard]] Latencies measure_latencies(PostgresFixture& log, SubscriptionSpec spec, bool wake_up,
                                          Arrivals& arrivals, std::unique_ptr<Sink> sink = nullptr);

struct LatencyTargets {
  double p50_ms;
  double p99_ms;
};

/// `measure` with wake-up and by polling alone in turn, medians over the repeats; each time with an empty log, since a relay
/// that starts at the beginning would first see the other's events. `bare`, if there is one, measures the same way of a
/// message without us in between, in each repeat: the limit. Without one it is the COMMIT alone.
[[nodiscard]] std::vector<Figure> latency_figures(
    PostgresFixture& log, const std::string& name, LatencyTargets targets,
    const std::function<Latencies(bool wake_up)>& measure,
    const std::function<std::vector<double>()>& bare = {});

}  // namespace outbox::bench
