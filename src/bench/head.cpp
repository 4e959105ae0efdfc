// head: what a poll costs when there is nothing to do, with many transactions in flight and many partitions.
#include <fmt/format.h>

#include <chrono>

#include "base/error.hpp"
#include "bench/bench.hpp"
#include "bench/postgres_fixture.hpp"
#include "store/store.hpp"

namespace outbox::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kInFlight = 100;
constexpr int kPartitions = 90;
constexpr int kPolls = 400;

/// Narrow partitions ahead of the writers, as a long history at a high rate would leave them.
Status many_partitions(Pg& pg) {
  return pg.run(fmt::format(R"(
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
                            kSchema, kPartitions));
}

/// Writers that have enqueued and not committed.
Result<std::vector<Pg>> open_writers(const BenchOptions& options) {
  std::vector<Pg> writers;
  for (int i = 0; i < kInFlight; ++i) {
    auto pg = Pg::connect(options.store_url);
    if (!pg) return pass(pg);
    const Status status = pg->run(fmt::format(
        "BEGIN; INSERT INTO {}.event_in (id, aggregate_type, aggregate_id, event_type, payload, headers) "
        "VALUES (gen_random_uuid(), 'order', '{}', 'OrderPlaced', 'x', '{{}}')",
        kSchema, i));
    if (!status) return fail(status.error());
    writers.push_back(std::move(*pg));
  }
  return writers;
}

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

Result<store::Page> poll(store::LogReader& reader, const store::Cursor& cursor) {
  if (Status status = reader.start({.cursor = cursor}); !status) return pass(status);
  return reader.finish();
}

}  // namespace

Result<std::vector<Figure>> bench_head(const BenchOptions& options) {
  auto fixture = PostgresFixture::create(options);
  if (!fixture) return pass(fixture);
  PostgresFixture& log = **fixture;
  if (Status status = log.fill(5000); !status) return pass(status);
  if (Status status = many_partitions(log.admin()); !status) return pass(status);
  log.say("opening transactions");
  auto writers = open_writers(options);
  if (!writers) return pass(writers);
  auto store = store::open_store(
      {.url = options.store_url, .schema = kSchema, .application = "outbox bench"});
  if (!store) return pass(store);
  auto reader = (*store)->reader();
  if (!reader) return pass(reader);
  auto snapshot = log.admin().value("SELECT pg_current_snapshot()");
  if (!snapshot) return pass(snapshot);
  store::Cursor cursor{.s1 = *snapshot, .s2 = {}, .position = 0, .bound = 0};
  if (Status status = (*reader)->begin(std::span(&cursor, 1)); !status) return pass(status);
  std::vector<double> times;
  std::vector<double> round_trips;
  for (int i = 0; i < kPolls; ++i) {
    const auto before = Clock::now();
    if (auto answer = log.admin().value("SELECT pg_current_snapshot()"); !answer)
      return pass(answer);
    round_trips.push_back(ms_since(before));
    const auto start = Clock::now();
    auto page = poll(**reader, cursor);
    times.push_back(ms_since(start));
    if (!page) return pass(page);
    if (Status status = (*reader)->wait_durable(); !status) return pass(status);
    cursor.s1 = page->pair->s2;
  }
  Figure head = at_most("head", quantile(times, 0.5), "ms/poll", 1);
  head.limit = quantile(round_trips, 0.5);  // the least that can be asked: what is the snapshot?
  head.ratio = head.value / *head.limit;
  return std::vector<Figure>{head, stated("head.p99", quantile(times, 0.99), "ms/poll")};
}

}  // namespace outbox::bench
