// retention: a delivered log is removed beside writers. It measures how long its locks are held in
// all, and what the writers notice.
#include "relay/retention.hpp"

#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "base/thread.hpp"
#include "bench/bench.hpp"
#include "bench/postgres_fixture.hpp"
#include "bench/timed_writers.hpp"
#include "store/store.hpp"
#include "support/failure.hpp"

namespace outbox::bench {
namespace {

using Clock = std::chrono::steady_clock;
using test::must;

constexpr int kRetentionPartitions = 4;
constexpr std::size_t kRetentionWriters = 2;

/// Makes partitions that so many transactions fill, and one for those that come later.
void make_partitions(Pg& pg, std::int64_t events) {
  pg.run(fmt::format(R"(
DO $$ DECLARE
  part   record;
  start  bigint := 3;
  ending bigint := pg_snapshot_xmax(pg_current_snapshot())::text::bigint;
BEGIN
  PERFORM set_config('role', (SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = '{0}.event'::regclass), true);
  FOR part IN SELECT name FROM {0}.partitions() WHERE first_xid IS NOT NULL LOOP
    EXECUTE 'DROP TABLE {0}.' || part.name;
  END LOOP;
  FOR number IN 0..{1} LOOP
    ending := ending + CASE number WHEN {1} THEN 100000000 ELSE {2} END;
    EXECUTE format('CREATE TABLE {0}.event_x%s (LIKE {0}.event INCLUDING ALL)', start);
    EXECUTE format('ALTER TABLE {0}.event ATTACH PARTITION {0}.event_x%s FOR VALUES FROM (%L) TO (%L)', start, start, ending);
    start := ending;
  END LOOP;
END $$)",
                     kSchema, kRetentionPartitions, events / kRetentionPartitions));
}

std::string one_event(std::size_t /*writer*/, int /*round*/) {
  return fmt::format("SELECT {}.enqueue('order', '1', 'OrderPlaced', '{{}}')", kSchema);
}

/// Looks all the time whether a session has an exclusive lock on a part of the log, and for how
/// long.
class LockWatch {
 public:
  explicit LockWatch(const std::string& url) {
    thread_ = start_thread("ob-bench-locks", [this, url](const std::stop_token& stop) {
      Pg pg(url);
      const std::string held = fmt::format(
          "SELECT EXISTS (SELECT FROM pg_locks l JOIN pg_class c ON c.oid = l.relation WHERE l.granted AND l.mode = "
          "'AccessExclusiveLock' AND c.relnamespace = '{}'::regnamespace AND c.relname LIKE 'event%')",
          kSchema);
      for (auto last = Clock::now(); !stop.stop_requested();) {
        const bool is_held = pg.value(held) == "t";
        if (is_held) held_ms_ += ms_since(last);
        last = Clock::now();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    });
  }
  [[nodiscard]] double held_ms() {
    thread_.request_stop();
    thread_.join();
    return held_ms_;
  }

 private:
  double held_ms_{0};
  std::jthread thread_;
};

void subscribe_at_the_end(PostgresFixture& log, store::Store& store) {
  SubscriptionSpec spec;
  spec.name = "bench";
  spec.sink = "null";
  (void)must(must(store.catalog())->apply(spec));
  log.admin().run(fmt::format(
      "INSERT INTO {0}.settlement (subscription, kind, lanes, generation, l, s1, s2) "
      "SELECT id, 'settle', -1, 1, 0, '3:3:', pg_current_snapshot() FROM {0}.subscription",
      kSchema));
}

}  // namespace

std::vector<Figure> bench_retention(const BenchOptions& options) {
  PostgresFixture log(options);
  make_partitions(log.admin(), options.events);
  log.write(options.events);
  const auto store = log.open_store();
  subscribe_at_the_end(log, *store);
  const auto retention = must(store->retention());
  log.say("writing undisturbed");
  TimedWriters undisturbed(options.store_url, kRetentionWriters, one_event);
  std::this_thread::sleep_for(std::chrono::duration<double>(options.seconds));
  const double alone = undisturbed.stop(0.99);
  log.say("removing");
  TimedWriters disturbed(options.store_url, kRetentionWriters, one_event);
  LockWatch locks(options.store_url);
  const auto start = Clock::now();
  std::int64_t removed = 0;
  // There are two passes, because what could not be dropped at once is tried again.
  for (int pass = 0; pass < 2; ++pass) {
    removed += must(relay::remove_history(*retention, EventId::generate(), {},
                                          [](const auto&, const auto&) {}, {}))
                   .events;
  }
  const double seconds = ms_since(start) / 1000;
  const double held = locks.held_ms();
  const double beside = disturbed.stop(0.99);
  return {Figure("retention", static_cast<double>(removed) / seconds, "events/s"),
          Figure("retention.locks", held, "ms").at_most(1000),
          Figure("retention.p99", beside, "ms").beside(alone).ratio_at_most(2)};
}

}  // namespace outbox::bench
