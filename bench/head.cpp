// head: what an idle poll costs beside many transactions in flight and many partitions.
#include <fmt/format.h>

#include <chrono>

#include "bench/bench.hpp"
#include "bench/postgres_fixture.hpp"
#include "store/delivery.hpp"
#include "store/store.hpp"
#include "support/failure.hpp"

namespace outbox::bench {
namespace {

using Clock = std::chrono::steady_clock;
using test::must;

constexpr int kInFlight = 100;
constexpr int kHeadPartitions = 90;
constexpr int kPolls = 400;

/// Makes as many partitions as a long history has, empty and ahead of the writers.
void many_partitions(Pg& pg) {
  pg.run(fmt::format(R"(
DO $$ DECLARE bound bigint;
BEGIN
  SELECT max(substring(pg_get_expr(c.relpartbound, c.oid) FROM 'TO \(''(\d+)''\)')::bigint) INTO bound
  FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = '{0}.event'::regclass;
  bound := coalesce(bound, pg_current_xact_id()::text::bigint + 1000000);
  FOR i IN 1 .. {1} - (SELECT count(*) FROM pg_inherits WHERE inhparent = '{0}.event'::regclass) LOOP
    EXECUTE format('CREATE TABLE {0}.bench_part_%s PARTITION OF {0}.event FOR VALUES FROM (%L) TO (%L)',
                   i, bound + (i - 1) * 1000, bound + i * 1000);
  END LOOP;
END $$)",
                     kSchema, kHeadPartitions));
}

/// Opens writers that have enqueued but not committed.
std::vector<Pg> open_writers(const BenchOptions& options) {
  std::vector<Pg> writers;
  for (int i = 0; i < kInFlight; ++i) {
    writers.emplace_back(options.store_url)
        .run(fmt::format(
            "BEGIN; INSERT INTO {}.event_in (id, aggregate_type, aggregate_id, event_type, payload, headers) "
            "VALUES (gen_random_uuid(), 'order', '{}', 'OrderPlaced', 'x', '{{}}')",
            kSchema, i));
  }
  return writers;
}

}  // namespace

std::vector<Figure> bench_head(const BenchOptions& options) {
  PostgresFixture log(options);
  log.write(5000);
  many_partitions(log.admin());
  log.say("opening transactions");
  const std::vector<Pg> writers = open_writers(options);
  const auto store = log.open_store();
  const auto reader = must(store->reader());
  const std::string snapshot = "SELECT pg_current_snapshot()";
  store::Cursor cursor{.s1 = log.admin().value(snapshot)};
  must(reader->begin(std::span(&cursor, 1)));
  std::vector<double> times;
  std::vector<double> round_trips;
  for (int i = 0; i < kPolls; ++i) {
    const auto before = Clock::now();
    (void)log.admin().value(snapshot);
    round_trips.push_back(ms_since(before));
    const auto start = Clock::now();
    must(reader->start({.cursor = cursor}));
    const store::Page page = must(reader->finish());
    times.push_back(ms_since(start));
    must(reader->wait_durable());
    cursor.s1 = page.pair->s2;
  }
  // The limit is the cheapest possible query, for the current snapshot.
  return {Figure("head", median(times), "ms/poll").beside(median(round_trips)).at_most(1),
          Figure("head.p99", quantile(times, 0.99), "ms/poll")};
}

}  // namespace outbox::bench
