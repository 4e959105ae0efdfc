// adopt: a hand-written table with pending rows is adopted beside writers. It measures how long
// that takes and a writer waits, and checks that the log then has every row once, in order of keys.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "bench/bench.hpp"
#include "bench/postgres_fixture.hpp"
#include "bench/timed_writers.hpp"
#include "store/adoption.hpp"
#include "support/failure.hpp"

namespace outbox::bench {
namespace {

using Clock = std::chrono::steady_clock;
using test::must;

constexpr std::size_t kAdoptWriters = 4;
constexpr std::size_t kAdoptKeys = 10'000;

/// Each key counts its events, 1, 2, 3 ..., in the transactions that write them.
void make_table(Pg& pg, std::int64_t rows) {
  pg.run(fmt::format(R"(
CREATE TABLE {0}.counter (key int PRIMARY KEY, n bigint NOT NULL);
CREATE TABLE {0}.shop_outbox (id bigserial PRIMARY KEY, aggregate_type text NOT NULL, aggregate_id text NOT NULL, event_type text NOT NULL,
  payload jsonb NOT NULL, created_at timestamptz NOT NULL DEFAULT clock_timestamp(), status text NOT NULL DEFAULT 'pending');
INSERT INTO {0}.shop_outbox (aggregate_type, aggregate_id, event_type, payload)
  SELECT 'order', (i % {1})::text, 'OrderPlaced', jsonb_build_object('n', i / {1} + 1, 'text', repeat('x', 170))
  FROM generate_series(0, {2} - 1) i;
INSERT INTO {0}.counter SELECT k, {2} / {1} + CASE WHEN k < {2} % {1} THEN 1 ELSE 0 END FROM generate_series(0, {1} - 1) k;
ANALYZE {0}.shop_outbox; CHECKPOINT)",
                     kSchema, kAdoptKeys, rows));
}

/// A writer's next event.
std::string adopted_event(std::size_t writer, int round) {
  const auto key = (static_cast<std::size_t>(round) * kAdoptWriters + writer) % kAdoptKeys;
  return fmt::format(
      "WITH c AS (UPDATE {0}.counter SET n = n + 1 WHERE key = {1} RETURNING n) INSERT INTO {0}.shop_outbox "
      "(aggregate_type, aggregate_id, event_type, payload) "
      "SELECT 'order', '{1}', 'OrderPlaced', jsonb_build_object('n', n) FROM c",
      kSchema, key);
}

/// Copies the same rows by one statement. Returns rows per second; the log is empty afterwards.
double bare_copy(Pg& pg, std::int64_t rows) {
  const auto start = Clock::now();
  pg.run(fmt::format(
      "BEGIN; INSERT INTO {0}.event_in (id, aggregate_type, aggregate_id, event_type, payload, content_type, headers) "
      "SELECT gen_random_uuid(), aggregate_type, aggregate_id, event_type, convert_to(payload::text, 'UTF8'), 'application/json', '{{}}' "
      "FROM {0}.shop_outbox ORDER BY id; ROLLBACK",
      kSchema));
  return static_cast<double>(rows) / ms_since(start) * 1000;
}

double number(Pg& pg, const std::string& sql) {
  return std::stod(pg.value(fmt::format(fmt::runtime(sql), kSchema)));
}

}  // namespace

std::vector<Figure> bench_adopt(const BenchOptions& options) {
  PostgresFixture log(options);
  log.say(fmt::format("writing {} rows into a table", options.events));
  make_table(log.admin(), options.events);
  const double bare = bare_copy(log.admin(), options.events);
  log.say("writing undisturbed");
  TimedWriters undisturbed(options.store_url, kAdoptWriters, adopted_event);
  std::this_thread::sleep_for(std::chrono::duration<double>(options.seconds));
  const double alone = undisturbed.stop(1);

  const auto adopter = must(store::open_adopter(
      {.url = options.store_url, .schema = kSchema, .application = "outbox-bench"}));
  TimedWriters disturbed(options.store_url, kAdoptWriters, adopted_event);
  std::this_thread::sleep_for(std::chrono::duration<double>(options.seconds / 5));
  const auto start = Clock::now();
  const auto plan = must(adopter->plan(std::string(kSchema) + ".shop_outbox", {}));
  const auto done =
      must(adopter->apply(plan, {}, {}, [&](const std::string& line) { log.say(line); }));
  const double seconds = ms_since(start) / 1000;
  std::this_thread::sleep_for(std::chrono::duration<double>(options.seconds / 5));
  const double wait = disturbed.stop(1);

  const double lost = number(
      log.admin(), "SELECT (SELECT sum(n) FROM {0}.counter) - count(DISTINCT id) FROM {0}.event");
  const double twice = number(log.admin(), "SELECT count(*) - count(DISTINCT id) FROM {0}.event");
  const double disorder = number(
      log.admin(),
      "SELECT count(*) FROM (SELECT (convert_from(payload, 'UTF8')::json ->> 'n')::bigint AS n, "
      "row_number() OVER (PARTITION BY aggregate_id ORDER BY seq) AS place FROM {0}.event) e WHERE n <> place");
  const auto million = static_cast<double>(options.events) / 1e6;
  return {
      Figure("adopt", static_cast<double>(done.row.taken_over) / seconds, "rows/s").beside(bare),
      Figure("adopt.time", seconds, "s").at_most(std::max(60 * million, 1.0)),
      Figure("adopt.wait", wait, "ms").beside(alone).at_most(1000),
      Figure("adopt.lost", lost, "events").at_most(0),
      Figure("adopt.twice", twice, "events").at_most(0),
      Figure("adopt.disorder", disorder, "events").at_most(0)};
}

}  // namespace outbox::bench
