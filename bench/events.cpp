// events: what it costs to find an event by its id with its states, and what `status` costs, with
// 20 subscriptions.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>

#include "bench/bench.hpp"
#include "bench/postgres_fixture.hpp"
#include "store/store.hpp"
#include "support/failure.hpp"

namespace outbox::bench {
namespace {

using Clock = std::chrono::steady_clock;
using test::give_up;
using test::must;

constexpr int kEventSubscriptions = 20;
constexpr int kLooks = 31;
constexpr std::int64_t kEventChunk = 5000;

// One transaction writes events whose ids the benchmark makes, and settles the subscriptions that
// keep up. For the others everything is pending. {0} is the schema, {1} the number of events.
constexpr const char* kChunkSql = R"(
INSERT INTO {0}.event_in (id, aggregate_type, aggregate_id, event_type, payload, content_type, headers)
SELECT {0}.new_id(), 'order', (i % 10000)::text, 'OrderPlaced', convert_to(rpad('{{"text": "', 197, 'x') || '"}}', 'UTF8'),
       'application/json', '{{}}' FROM generate_series(1, {1}) i;
INSERT INTO {0}.settlement (subscription, kind, lanes, generation, config_version, s1, s2, l)
SELECT id, 'settle', -1, 1, 1, '3:3:', pg_current_snapshot(), currval('{0}.event_seq') FROM {0}.subscription WHERE id % 2 = 0)";

void fill(PostgresFixture& log) {
  const std::int64_t events = log.options().events;
  log.say(fmt::format("writing {} events", events));
  log.admin().run("SET synchronous_commit = off; SET outbox.wake = 'off'");
  for (std::int64_t written = 0; written < events; written += kEventChunk)
    log.admin().run(
        fmt::format(fmt::runtime(kChunkSql), kSchema, std::min(kEventChunk, events - written)));
  log.admin().run("CHECKPOINT");
}

/// The median of some runs, in milliseconds.
double median_ms(const std::function<void(int number)>& look) {
  std::vector<double> times;
  for (int i = 0; i < kLooks; ++i) {
    const auto start = Clock::now();
    look(i);
    times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
  }
  return median(times);
}

}  // namespace

std::vector<Figure> bench_events(const BenchOptions& options) {
  PostgresFixture log(options);
  const auto store = must(store::open_store(
      {.url = options.store_url, .schema = kSchema, .application = "outbox-bench"}));
  {
    const auto catalog = must(store->catalog());
    for (int i = 0; i < kEventSubscriptions; ++i) {
      SubscriptionSpec spec;
      spec.name = fmt::format("s{}", i);
      spec.sink = "null";
      (void)must(catalog->apply(spec));
    }
  }
  fill(log);
  std::vector<EventId> ids;
  for (int i = 0; i < kLooks; ++i) {
    const std::int64_t seq = 1 + options.events / kLooks * i;
    ids.push_back(must(EventId::parse(log.admin().value(fmt::format(
        "SELECT id FROM {}.event WHERE seq >= {} ORDER BY seq LIMIT 1", kSchema, seq)))));
  }
  log.say("looking");
  // Looks as the commands do, with connections of its own.
  const double by_id = median_ms([&](int i) {
    must(store->check());
    const auto page =
        must(must(store->events())->list({.id = ids[static_cast<std::size_t>(i)]}, 1, false));
    if (page.events.size() != 1 || page.events[0].subscriptions.size() != kEventSubscriptions)
      give_up(Errc::internal, "an event was not found", "");
  });
  const double status = median_ms([&](int) {
    must(store->check());
    if (must(must(store->catalog())->overview(10'000)).size() != kEventSubscriptions)
      give_up(Errc::internal, "a subscription was not found", "");
  });
  const double connect = median_ms([&](int) { Pg(options.store_url).run("SELECT 1"); });
  return {Figure("events.id", by_id, "ms").beside(connect).at_most(100),
          Figure("events.status", status, "ms").beside(connect).at_most(50)};
}

}  // namespace outbox::bench
