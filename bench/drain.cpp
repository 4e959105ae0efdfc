// drain, backlog, pinned, wal: how fast the log is delivered to the null sink, and what that costs.
#include <fmt/format.h>

#include "bench/bench.hpp"
#include "bench/postgres_fixture.hpp"
#include "support/failure.hpp"

namespace outbox::bench {
namespace {

constexpr int kEventDrains = 4;

SubscriptionSpec to_null(const std::string& name, int number) {
  return SubscriptionSpec{.name = fmt::format("{}-{}", name, number), .sink = "null"};
}

/// Delivers the log to a new subscription each time.
Drain drain_to_null(PostgresFixture& log, std::int64_t events, const std::string& name) {
  return median_drain(log.options().repeats, [&](int number) {
    const Drain drain = log.drain(to_null(name, number), events);
    log.say(fmt::format("{}: {:.0f} events/s", name, drain.events_per_second));
    return drain;
  });
}

/// Appends the rates of several drains of one log. With `pinned`, a transaction holds a snapshot
/// from before the events.
void drain_a_log(const BenchOptions& options, std::int64_t events, bool pinned,
                 std::vector<double>& rates) {
  PostgresFixture log(options);
  Pg idle(options.store_url);
  if (pinned) idle.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1");
  log.fill(events);
  for (int i = 0; i < kEventDrains; ++i)
    rates.push_back(log.drain(to_null("pinned", i), events).events_per_second);
}

}  // namespace

std::vector<Figure> bench_drain(const BenchOptions& options) {
  PostgresFixture log(options);
  log.fill(options.events);
  const Drain all = median_drain(options.repeats, [&](int number) {
    const double bare = log.bare_drain();
    Drain drain = log.drain(to_null("drain", number), options.events);
    drain.bare = bare;
    log.say(fmt::format("drain: {:.0f} events/s, bare loop {:.0f}", drain.events_per_second, bare));
    return drain;
  });
  return {Figure("drain", all.events_per_second, "events/s").beside(all.bare).ratio_at_least(0.7),
          Figure("drain.memory", all.peak_rss_mib, "MiB").at_most(64),
          Figure("drain.cpu", all.cpu_us_per_event, "us/event")};
}

std::vector<Figure> bench_cold(const BenchOptions& options) {
  if (options.between.empty())
    test::give_up(Errc::invalid_argument, "benchmark cold needs --between",
                  "a command that restarts the server and drops the caches");
  PostgresFixture log(options);
  log.fill(options.events);
  std::vector<double> cold;
  std::vector<double> warm;
  for (int i = 0; i < options.repeats; ++i) {
    log.run_between();
    cold.push_back(log.drain(to_null("cold", i), options.events).events_per_second);
    warm.push_back(log.drain(to_null("warm", i), options.events).events_per_second);
    log.say(fmt::format("cold {:.0f} events/s, warm {:.0f}", cold.back(), warm.back()));
  }
  return {Figure("cold", median(cold), "events/s").beside(median(warm)).ratio_at_least(0.8)};
}

std::vector<Figure> bench_backlog(const BenchOptions& options) {
  const auto us_per_event = [&](std::int64_t events) {
    PostgresFixture log(options);
    log.fill(events);
    return 1e6 / drain_to_null(log, events, fmt::format("backlog-{}", events)).events_per_second;
  };
  const double small = us_per_event(options.events / 100);
  return {Figure("backlog", us_per_event(options.events), "us/event")
              .beside(small)
              .ratio_at_most(1.15)};
}

/// Drains many small logs in turn, so that a slow phase of the machine affects both.
std::vector<Figure> bench_pinned(const BenchOptions& options) {
  const std::int64_t events = std::max<std::int64_t>(options.events / 8, 1000);
  std::vector<double> with;
  std::vector<double> without;
  for (int i = 0; i < options.repeats; ++i) {
    drain_a_log(options, events, true, with);
    drain_a_log(options, events, false, without);
  }
  return {Figure("pinned", median(with), "events/s").beside(median(without)).ratio_at_least(0.95)};
}

std::vector<Figure> bench_wal(const BenchOptions& options) {
  PostgresFixture log(options);
  log.write(options.events);
  // The first read after a checkpoint may write hint bits, which are not part of the settlements.
  const Drain first = log.drain(to_null("wal-first", 0), options.events);
  const Drain second = drain_to_null(log, options.events, "wal");
  const auto n = static_cast<double>(options.events);
  return {
      Figure("wal", second.wal_bytes / n, "bytes/event").at_most(2),
      Figure("wal.hint-bits", (first.wal_bytes - second.wal_bytes) / n, "bytes/event"),
      Figure("wal.statements", second.statements / n * 1000, "per 1000 events"),
      Figure("wal.settlements", second.settlements / n * 1000, "rows per 1000"),
  };
}

}  // namespace outbox::bench
