// settlements: what a relay's start, a takeover and `status` cost with the settlements of a busy
// month, and after most were removed. It runs by hand; --events 50000000 is a month at 20 rows a
// second.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "bench/bench.hpp"
#include "bench/postgres_fixture.hpp"
#include "relay/retention.hpp"
#include "store/store.hpp"
#include "support/failure.hpp"

namespace outbox::bench {
namespace {

using Clock = std::chrono::steady_clock;
using test::must;

constexpr const char* kBusyName = "busy";
constexpr std::int64_t kSettlementChunk = 1'000'000;
/// The time between two settlements.
constexpr std::chrono::milliseconds kEvery{50};

// {0} is the schema, {1} from, {2} to, {3} all.
constexpr const char* kFillSettlements = R"(
INSERT INTO {0}.settlement (subscription, kind, lanes, generation, config_version, s1, s2, l, acked, acked_total, at)
SELECT s.id, 'settle', -1, 1, 1, now.s, now.s, 0, 10, i * 10, clock_timestamp() - ({3} - i) * interval '{4} ms'
FROM {0}.subscription s CROSS JOIN (SELECT pg_current_snapshot() AS s OFFSET 0) now CROSS JOIN generate_series({1}, {2}) i)";

/// The time until a relay delivers.
double start_ms(const RelayOptions& options) {
  const auto relay = must(Relay::create(options));
  const auto start = Clock::now();
  must(relay->start());
  const double took = ms_since(start);
  if (!relay->report().owner)
    test::give_up(Errc::deadline_exceeded, "the relay has no lanes", relay->report().last_error);
  (void)relay->stop(std::chrono::seconds(10));
  return took;
}

struct Costs {
  double start_ms{0};
  double takeover_ms{0};
  double status_ms{0};
};

Costs measure(PostgresFixture& log, store::Store& store) {
  const RelayOptions options = log.relay_options({.name = kBusyName, .sink = "null"});
  Costs costs;
  costs.start_ms = start_ms(options);
  // The lanes belong to a dead relay of another machine, whose lease is over.
  log.admin().run(fmt::format(
      "INSERT INTO {0}.relay (id, name, groups, boot_id, pid_ns, pid, started, lease, heartbeat_at) "
      "VALUES (gen_random_uuid(), 'dead', '{{*}}', 'elsewhere', '', 1, 1, '1 s', clock_timestamp() - interval '1 h');"
      "UPDATE {0}.lane SET owner = (SELECT id FROM {0}.relay WHERE name = 'dead')",
      kSchema));
  costs.takeover_ms = start_ms(options);
  const auto start = Clock::now();
  must(store.check());
  (void)must(must(store.catalog())->overview(10'000));
  costs.status_ms = ms_since(start);
  return costs;
}

std::vector<Figure> figures(const std::string& when, const Costs& costs) {
  const auto figure = [&](const char* what, double ms) {
    return Figure(fmt::format("settlements.{}.{}", what, when), ms, "ms").at_most(1000);
  };
  return {figure("start", costs.start_ms), figure("takeover", costs.takeover_ms),
          figure("status", costs.status_ms)};
}

}  // namespace

std::vector<Figure> bench_settlements(const BenchOptions& options) {
  PostgresFixture log(options);
  const auto store = log.open_store();
  (void)must(must(store->catalog())->apply({.name = kBusyName, .sink = "null"}));
  log.say(fmt::format("writing {} settlements", options.events));
  log.admin().run("SET synchronous_commit = off");
  for (std::int64_t first = 1; first <= options.events; first += kSettlementChunk)
    log.admin().run(fmt::format(fmt::runtime(kFillSettlements), kSchema, first,
                                std::min(first + kSettlementChunk - 1, options.events),
                                options.events, kEvery.count()));
  std::vector<Figure> all = figures("before", measure(log, *store));
  log.say("removing 29 of 30 days");
  const relay::RetentionRules rules{.keep = options.events * kEvery / 30};
  const auto retention = must(store->retention());
  const auto start = Clock::now();
  const auto pass = must(relay::remove_history(*retention, EventId::generate(), rules,
                                               [](const auto&, const auto&) {}, {}));
  const double seconds = ms_since(start) / 1000;
  const auto after = figures("after", measure(log, *store));
  all.insert(all.end(), after.begin(), after.end());
  all.emplace_back("settlements.removal", static_cast<double>(pass.rows) / seconds, "rows/s");
  return all;
}

}  // namespace outbox::bench
