// drain, backlog, pinned, wal: how fast the log is read and delivered to nothing, what that costs, and what does not
// change it.
#include <fmt/format.h>

#include "base/error.hpp"
#include "bench/bench.hpp"
#include "bench/postgres_fixture.hpp"

namespace outbox::bench {
namespace {

constexpr int kDrainsOfALog = 4;

SubscriptionSpec to_null(const std::string& name) {
  return SubscriptionSpec{.name = name, .sink = "null"};
}

/// Medians of several drains, each to a subscription of its own.
Result<PostgresFixture::Drain> median_drain(PostgresFixture& fixture, std::int64_t events,
                                            const std::string& name) {
  std::vector<double> rates;
  std::vector<double> cpu;
  PostgresFixture::Drain last;
  for (int i = 0; i < fixture.options().repeats; ++i) {
    auto drained = fixture.drain(to_null(fmt::format("{}-{}", name, i)), events);
    if (!drained) return pass(drained);
    fixture.say(fmt::format("{}: {:.0f} events/s", name, drained->events_per_second));
    rates.push_back(drained->events_per_second);
    cpu.push_back(drained->cpu_us_per_event);
    last = *drained;
  }
  last.events_per_second = median(rates);
  last.cpu_us_per_event = median(cpu);
  return last;
}

/// Rates of several drains of one log, which was written and is drained under the eyes of an idle snapshot, or not.
Result<std::vector<double>> drains_of_a_log(const BenchOptions& options, std::int64_t events,
                                            bool pinned) {
  auto fixture = PostgresFixture::create(options);
  if (!fixture) return pass(fixture);
  PostgresFixture& log = **fixture;
  auto idle = Pg::connect(options.store_url);
  if (!idle) return pass(idle);
  if (pinned) {
    if (Status status = idle->run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1"); !status)
      return pass(status);
  }
  if (Status status = log.fill(events); !status) return pass(status);
  if (Status status = log.warm_up(); !status) return pass(status);
  std::vector<double> rates;
  for (int i = 0; i < kDrainsOfALog; ++i) {
    auto drained = log.drain(to_null(fmt::format("pinned-{}", i)), events);
    if (!drained) return pass(drained);
    rates.push_back(drained->events_per_second);
  }
  return rates;
}

}  // namespace

Result<std::vector<Figure>> bench_drain(const BenchOptions& options) {
  auto fixture = PostgresFixture::create(options);
  if (!fixture) return pass(fixture);
  PostgresFixture& log = **fixture;
  if (Status status = log.fill(options.events); !status) return pass(status);
  if (Status status = log.warm_up(); !status) return pass(status);
  std::vector<double> bare;
  std::vector<double> ours;
  std::vector<double> cpu;
  double rss = 0;
  for (int i = 0; i < options.repeats; ++i) {
    auto limit = log.bare_drain();
    if (!limit) return pass(limit);
    auto drained = log.drain(to_null(fmt::format("drain-{}", i)), options.events);
    if (!drained) return pass(drained);
    log.say(fmt::format("drain: {:.0f} events/s, bare loop {:.0f}", drained->events_per_second,
                        *limit));
    bare.push_back(*limit);
    ours.push_back(drained->events_per_second);
    cpu.push_back(drained->cpu_us_per_event);
    rss = std::max(rss, drained->peak_rss_mib);
  }
  return std::vector<Figure>{against("drain", median(ours), "events/s", median(bare), 0.7),
                             at_most("drain.memory", rss, "MiB", 64),
                             stated("drain.cpu", median(cpu), "us/event")};
}

Result<std::vector<Figure>> bench_backlog(const BenchOptions& options) {
  const auto per_event = [&](std::int64_t events) -> Result<double> {
    auto fixture = PostgresFixture::create(options);
    if (!fixture) return pass(fixture);
    if (Status status = (*fixture)->fill(events); !status) return pass(status);
    if (Status status = (*fixture)->warm_up(); !status) return pass(status);
    auto drained = median_drain(**fixture, events, fmt::format("backlog-{}", events));
    if (!drained) return pass(drained);
    return 1e6 / drained->events_per_second;
  };
  auto small = per_event(options.events / 100);
  if (!small) return pass(small);
  auto large = per_event(options.events);
  if (!large) return pass(large);
  Figure figure = stated("backlog", *large, "us/event");
  figure.limit = *small;
  figure.ratio = *large / *small;
  figure.target = "ratio <= 1.15";
  figure.ok = *figure.ratio <= 1.15;
  return std::vector<Figure>{figure};
}

/// Small logs in turn, so that a machine that is slow for some seconds is so for both.
Result<std::vector<Figure>> bench_pinned(const BenchOptions& options) {
  const std::int64_t events = std::max<std::int64_t>(options.events / 8, 1000);
  std::vector<double> with;
  std::vector<double> without;
  for (int i = 0; i < 2 * options.repeats; ++i) {
    const bool pinned = i % 2 == 0;
    auto rates = drains_of_a_log(options, events, pinned);
    if (!rates) return pass(rates);
    auto& all = pinned ? with : without;
    all.insert(all.end(), rates->begin(), rates->end());
  }
  return std::vector<Figure>{against("pinned", median(with), "events/s", median(without), 0.95)};
}

Result<std::vector<Figure>> bench_wal(const BenchOptions& options) {
  auto fixture = PostgresFixture::create(options);
  if (!fixture) return pass(fixture);
  PostgresFixture& log = **fixture;
  const std::int64_t events = options.events;
  if (Status status = log.fill(events); !status) return pass(status);
  // The first read after a checkpoint may write hint bits; they are the reader's fault but not its settlements'.
  auto first = log.drain(to_null("wal-first"), events);
  if (!first) return pass(first);
  auto second = median_drain(log, events, "wal");
  if (!second) return pass(second);
  const auto n = static_cast<double>(events);
  return std::vector<Figure>{
      at_most("wal", second->wal_bytes / n, "bytes/event", 2),
      stated("wal.hint-bits", (first->wal_bytes - second->wal_bytes) / n, "bytes/event"),
      stated("wal.statements", second->statements / n * 1000, "per 1000 events"),
      stated("wal.settlements", second->settlements / n * 1000, "rows per 1000"),
  };
}

}  // namespace outbox::bench
