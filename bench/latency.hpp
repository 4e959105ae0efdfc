// Latencies of events that are written at a steady rate, and the figures made of them.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <outbox/relay.hpp>
#include <outbox/sink.hpp>
#include <outbox/subscription.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.hpp"
#include "bench/figure.hpp"
#include "bench/postgres_fixture.hpp"

namespace outbox::bench {

struct Pace {
  std::int64_t messages{0};
  std::int64_t per_second{1000};
  std::int64_t unmeasured{1000};  ///< The first messages, while relay, client and consumer connect.
};
/// The pace for the length of the benchmark.
[[nodiscard]] Pace choose_pace(const BenchOptions& options);
/// Calls `send` for each message on time, or with `step` for every step-th message from `first` on.
void send_at(const Pace& pace, const std::function<void(std::int64_t number, bool measured)>& send,
             std::int64_t first = 0, std::int64_t step = 1);

/// The steady clock's time, in nanoseconds.
[[nodiscard]] std::int64_t now_ns();
/// A payload that begins with this time, padded to the 200 bytes of all benchmarks. With 0 its
/// latency is not measured.
[[nodiscard]] std::string stamped_payload(std::int64_t sent_ns);

/// Notes when each such payload arrives.
class Arrivals {
 public:
  /// May be called by any thread.
  void arrived(std::string_view body);
  /// Waits for this many arrivals, and throws if they take too long. Returns what was measured.
  [[nodiscard]] std::vector<double> latencies_ms(std::int64_t count);

 private:
  std::atomic<std::int64_t> count_{0};
  Mutex mutex_;
  std::vector<double> latencies_ms_ OUTBOX_GUARDED_BY(mutex_);
};

struct Latencies {
  std::vector<double> event_ms;   ///< From just before COMMIT to the arrival.
  std::vector<double> commit_ms;  ///< The time of COMMIT alone: no latency can be shorter.
};

/// What runs beside the relay while latencies are measured.
struct Beside {
  std::chrono::milliseconds history_interval{std::chrono::minutes(1)};
  /// Called with the relay that was started; the result is released before the relay ends.
  std::function<std::shared_ptr<void>(const Relay& relay)> start{};
  Feed feed{Feed::poll};
  std::optional<Pace> pace{};  ///< That of choose_pace() if it is not set.
};

/// Starts a relay with this subscription (to this sink if it is custom) and writes one-event
/// transactions with synchronous commit on two connections. Waits for all to arrive.
[[nodiscard]] Latencies measure_latencies(PostgresFixture& log, SubscriptionSpec spec, bool wake_up,
                                          Arrivals& arrivals, std::unique_ptr<Sink> sink = nullptr,
                                          const Beside& beside = {});
/// The same to a sink that only notes when each event arrives.
[[nodiscard]] Latencies measure_latencies(PostgresFixture& log, bool wake_up,
                                          const Beside& beside = {});

/// The quantiles of several runs.
struct Quantiles {
  std::vector<double> p50;
  std::vector<double> p99;

  void add(const std::vector<double>& latencies_ms) {
    p50.push_back(quantile(latencies_ms, 0.5));
    p99.push_back(quantile(latencies_ms, 0.99));
  }
};

struct LatencyTargets {
  std::optional<double> p50_ms{};
  double p99_ms{0};
};

/// Runs `measure` with wake-up and by polling alone, in turn, and returns medians over the repeats.
/// The log is emptied before each run, since a new relay starts at its beginning. The limit is what
/// `bare` measures, the same path without the outbox, or else the COMMIT alone.
[[nodiscard]] std::vector<Figure> latency_figures(
    PostgresFixture& log, const std::string& name, LatencyTargets targets,
    const std::function<Latencies(bool wake_up)>& measure,
    const std::function<std::vector<double>()>& bare = {});

}  // namespace outbox::bench
