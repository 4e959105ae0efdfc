// drain, backlog, pinned, wal: how fast the log is delivered to the null sink, and what that costs.
#include <fmt/format.h>

#include <optional>

#include "bench/bench.hpp"
#include "bench/postgres_fixture.hpp"

namespace outbox::bench {
namespace {

constexpr int kDrainsOfALog = 4;

SubscriptionSpec to_null(const std::string& name) {
  return SubscriptionSpec{.name = name, .sink = "null"};
}

/// Medians of several drains, each to a subscription of its own.
PostgresFixture::Drain median_drain(PostgresFixture& log, std::int64_t events,
                                    const std::string& name) {
  std::vector<double> rates;
  std::vector<double> cpu;
  PostgresFixture::Drain last;
  for (int i = 0; i < log.options().repeats; ++i) {
    last = log.drain(to_null(fmt::format("{}-{}", name, i)), events);
    log.say(fmt::format("{}: {:.0f} events/s", name, last.events_per_second));
    rates.push_back(last.events_per_second);
    cpu.push_back(last.cpu_us_per_event);
  }
  last.events_per_second = median(rates);
  last.cpu_us_per_event = median(cpu);
  return last;
}

/// Appends the rates of several drains of one log. `pinned`: an idle transaction holds a snapshot all the time.
void drain_a_log(const BenchOptions& options, std::int64_t events, bool pinned,
                 std::vector<double>& rates) {
  PostgresFixture log(options);
  Pg idle(options.store_url);
  if (pinned) idle.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1");
  log.fill(events);
  for (int i = 0; i < kDrainsOfALog; ++i)
    rates.push_back(log.drain(to_null(fmt::format("pinned-{}", i)), events).events_per_second);
}

}  // namespace

std::vector<Figure> bench_drain(const BenchOptions& options) {
  PostgresFixture log(options);
  log.fill(options.events);
  std::vector<double> bare;
  std::vector<double> ours;
  std::vector<double> cpu;
  double rss = 0;
  for (int i = 0; i < options.repeats; ++i) {
    bare.push_back(log.bare_drain());
    const auto drained = log.drain(to_null(fmt::format("drain-{}", i)), options.events);
    log.say(fmt::format("drain: {:.0f} events/s, bare loop {:.0f}", drained.events_per_second,
                        bare.back()));
    ours.push_back(drained.events_per_second);
    cpu.push_back(drained.cpu_us_per_event);
    rss = std::max(rss, drained.peak_rss_mib);
  }
  return {against("drain", median(ours), "events/s", median(bare), 0.7),
          at_most("drain.memory", rss, "MiB", 64), stated("drain.cpu", median(cpu), "us/event")};
}

std::vector<Figure> bench_backlog(const BenchOptions& options) {
  const auto us_per_event = [&](std::int64_t events) {
    PostgresFixture log(options);
    log.fill(events);
    return 1e6 / median_drain(log, events, fmt::format("backlog-{}", events)).events_per_second;
  };
  const double small = us_per_event(options.events / 100);
  Figure figure = beside("backlog", us_per_event(options.events), "us/event", small);
  figure.target = "ratio <= 1.15";
  figure.ok = *figure.ratio <= 1.15;
  return {figure};
}

/// Many small logs in turn, so that a slow phase of the machine affects both.
std::vector<Figure> bench_pinned(const BenchOptions& options) {
  const std::int64_t events = std::max<std::int64_t>(options.events / 8, 1000);
  std::vector<double> with;
  std::vector<double> without;
  for (int i = 0; i < options.repeats; ++i) {
    drain_a_log(options, events, true, with);
    drain_a_log(options, events, false, without);
  }
  return {against("pinned", median(with), "events/s", median(without), 0.95)};
}

std::vector<Figure> bench_wal(const BenchOptions& options) {
  PostgresFixture log(options);
  log.write(options.events);
  // The first read after a checkpoint may write hint bits, which are not part of the settlements.
  const auto first = log.drain(to_null("wal-first"), options.events);
  const auto second = median_drain(log, options.events, "wal");
  const auto n = static_cast<double>(options.events);
  return {
      at_most("wal", second.wal_bytes / n, "bytes/event", 2),
      stated("wal.hint-bits", (first.wal_bytes - second.wal_bytes) / n, "bytes/event"),
      stated("wal.statements", second.statements / n * 1000, "per 1000 events"),
      stated("wal.settlements", second.settlements / n * 1000, "rows per 1000"),
  };
}

}  // namespace outbox::bench
