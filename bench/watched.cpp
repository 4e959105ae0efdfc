// watched: what metrics, history and continuous verification cost a relay: drain and latency with
// all of them, far more often than in production, beside the same without them; and the processor
// time of verification while it has a backlog.
#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include "bench/bench.hpp"
#include "bench/latency.hpp"
#include "bench/postgres_fixture.hpp"
#include "bench/watchers.hpp"
#include "support/failure.hpp"

namespace outbox::bench {
namespace {

/// History is written, metrics are read and settlements are compared each second, where the
/// defaults are a minute, 15 s and 5 s.
constexpr std::chrono::milliseconds kOften{1000};
constexpr WatchOptions kWatchedOften{.scrape_every = kOften,
                                     .metrics_interval = kOften,
                                     .verify_every = kOften,
                                     .verify_after = kOften};

std::unique_ptr<Watchers> watch(const PostgresFixture& log, const Relay& relay) {
  return std::make_unique<Watchers>(log.options(), kWatchedOften,
                                    [&relay] { return relay.report(); });
}

double drain(PostgresFixture& log, bool watched) {
  RelayOptions options = log.relay_options({.name = "watched", .sink = "null"});
  options.history_interval = watched ? kOften : std::chrono::milliseconds(0);
  const auto relay = test::must(Relay::create(options));
  double rate = 0;
  {
    const auto watchers = watched ? watch(log, *relay) : nullptr;
    rate = log.measure(*relay, log.options().events).events_per_second;
  }
  log.drop_subscriptions();
  return rate;
}

double watched_latency(PostgresFixture& log, bool watched) {
  Beside beside{.history_interval = watched ? kOften : std::chrono::milliseconds(0)};
  if (watched) {
    beside.start = [&log](const Relay& relay) -> std::shared_ptr<void> {
      return watch(log, relay);
    };
  }
  const double p50 = quantile(measure_latencies(log, true, beside).event_ms, 0.5);
  log.drop_subscriptions();
  return p50;
}

/// The share of a core that verification uses while it compares a drained log.
double verify_share(PostgresFixture& log) {
  const auto relay =
      test::must(Relay::create(log.relay_options({.name = "watched", .sink = "null"})));
  (void)log.measure(*relay, log.options().events);
  const auto watchers = watch(log, *relay);
  std::this_thread::sleep_for(2 * kOften);  // The settlements get old enough.
  const double before = watchers->verify_seconds();
  const auto length = std::chrono::duration<double>(std::max(log.options().seconds, 10.0));
  std::this_thread::sleep_for(length);
  return (watchers->verify_seconds() - before) / length.count() * 100;
}

}  // namespace

std::vector<Figure> bench_watched(const BenchOptions& options) {
  std::vector<double> with;
  std::vector<double> without;
  double share = 0;
  {
    PostgresFixture log(options);
    log.fill(options.events);
    (void)drain(log, false);
    for (int i = 0; i < 2 * options.repeats; ++i) {
      // Each goes first in turn.
      for (const bool watched : {i % 2 == 0, i % 2 != 0})
        (watched ? with : without).push_back(drain(log, watched));
      log.say(fmt::format("watched: {:.0f} events/s, without {:.0f}", with.back(), without.back()));
    }
    share = verify_share(log);
  }
  std::vector<double> woken;
  std::vector<double> alone;
  PostgresFixture log(options);
  for (int i = 0; i < 2 * options.repeats; ++i) {
    for (const bool watched : {i % 2 == 0, i % 2 != 0}) {
      log.admin().run(fmt::format("TRUNCATE {}.event", kSchema));
      (watched ? woken : alone).push_back(watched_latency(log, watched));
    }
    log.say(fmt::format("watched: p50 {:.2f} ms, without {:.2f}", woken.back(), alone.back()));
  }
  return {
      Figure("watched.drain", median(with), "events/s")
          .beside(median(without))
          .ratio_at_least(0.97),
      Figure("watched.latency.p50", median(woken), "ms").beside(median(alone)).ratio_at_most(1.03),
      Figure("watched.verify.cpu", share, "% of a core").at_most(5)};
}

}  // namespace outbox::bench
