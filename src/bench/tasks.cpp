// tasks: how fast one worker does tasks that do nothing, and what that costs.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <outbox/postgres.hpp>
#include <outbox/worker.hpp>
#include <string>
#include <thread>
#include <vector>

#include "bench/bench.hpp"
#include "bench/latency.hpp"
#include "bench/postgres_fixture.hpp"
#include "testkit/store.hpp"

namespace outbox::bench {
namespace {

constexpr const char* kQueue = "bench";
constexpr std::size_t kThreads = 8;
constexpr int kDrainsOfALog = 3;

/// Without keys: the tasks of a key run one after the other.
Rows tasks() {
  return {.aggregate_type = fmt::format("'{}{}'", kTaskPrefix, kQueue), .aggregate_id = "''"};
}

/// Each time from the beginning of the log.
Drain work_off(PostgresFixture& log, std::int64_t tasks) {
  Handlers handlers;
  handlers.on("OrderPlaced", [](std::string_view, const TaskRun&) {});
  const auto worker = testkit::must(
      Worker::create({.relay = log.relay_options({}), .queues = {kQueue}, .threads = kThreads},
                     std::move(handlers)));
  const Drain drain = log.measure(*worker, tasks);
  log.drop_subscriptions();
  log.say(fmt::format("tasks: {:.0f} tasks/s", drain.events_per_second));
  return drain;
}

/// `pinned`: an idle transaction holds a snapshot since before they were written.
void work_off_a_log(const BenchOptions& options, std::int64_t events, bool pinned,
                    std::vector<double>& rates) {
  PostgresFixture log(options);
  testkit::Pg idle(options.store_url);
  if (pinned) idle.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1");
  log.fill(events, tasks());
  for (int i = 0; i < kDrainsOfALog; ++i) rates.push_back(work_off(log, events).events_per_second);
}

/// What is written when every task has a row: runs of 50 ms that get theirs after 10 ms instead of 1 s.
double row_rate(const BenchOptions& options, std::int64_t events) {
  PostgresFixture log(options);
  log.write(events, tasks());
  Handlers handlers;
  handlers.on("OrderPlaced", [](std::string_view, const TaskRun&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  });
  const auto worker = testkit::must(Worker::create({.relay = log.relay_options({}),
                                                    .queues = {kQueue},
                                                    .threads = 1000,
                                                    .row_after = std::chrono::milliseconds(10)},
                                                   std::move(handlers)));
  const auto count = [&](const char* table) {
    return std::stoll(log.admin().value(fmt::format("SELECT count(*) FROM {}.{}", kSchema, table)));
  };
  const auto began = std::chrono::steady_clock::now();
  testkit::must(worker->start());
  while (count("parked_end") < events * 9 / 10)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  const double rate = static_cast<double>(count("parked_end")) / took.count();
  (void)worker->stop(std::chrono::seconds(10));
  log.drop_subscriptions();
  return rate;
}

/// From just before COMMIT to the handler, of an idle worker: one task at a time.
std::vector<double> pick_ups(const BenchOptions& options) {
  constexpr int kTasks = 300;
  PostgresFixture log(options);
  std::atomic<std::int64_t> begun{0};
  Handlers handlers;
  handlers.on("pick", [&](std::string_view, const TaskRun&) { begun = now_ns(); });
  const auto worker = testkit::must(
      Worker::create({.relay = log.relay_options({}), .queues = {kQueue}, .threads = kThreads},
                     std::move(handlers)));
  testkit::must(worker->start());
  const Pg pg(options.store_url);
  const postgres::Outbox box({.schema = kSchema});
  std::vector<double> all;
  for (int i = 0; i < kTasks; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10 + i % 17));
    postgres::Transaction tx(pg.native());
    (void)enqueue_task(box, tx, {.queue = kQueue, .type = "pick", .payload = "{}"});
    begun = 0;
    const std::int64_t before = now_ns();
    tx.commit();
    while (begun == 0) std::this_thread::yield();
    all.push_back(static_cast<double>(begun - before) / 1e6);
  }
  (void)worker->stop(std::chrono::seconds(10));
  log.drop_subscriptions();
  return all;
}

}  // namespace

std::vector<Figure> bench_tasks(const BenchOptions& options) {
  std::vector<double> with;
  std::vector<double> without;
  const std::int64_t some = std::max<std::int64_t>(options.events / 8, 1000);
  for (int i = 0; i < options.repeats; ++i) {
    work_off_a_log(options, some, true, with);
    work_off_a_log(options, some, false, without);
  }
  PostgresFixture log(options);
  log.fill(options.events, tasks());
  const double bare = log.bare_drain();
  const Drain all =
      median_drain(options.repeats, [&](int) { return work_off(log, options.events); });
  const auto n = static_cast<double>(options.events);
  const double rows = row_rate(options, std::max<std::int64_t>(options.events / 50, 1000));
  const std::vector<double> picked = pick_ups(options);
  return {
      Figure("tasks", all.events_per_second, "tasks/s").beside(bare).at_least(300'000),
      Figure("tasks.memory", all.peak_rss_mib, "MiB").at_most(64),
      Figure("tasks.cpu", all.cpu_us_per_event, "us/task"),
      Figure("tasks.wal", all.wal_bytes / n, "bytes/task"),
      Figure("tasks.pinned", median(with), "tasks/s").beside(median(without)).ratio_at_least(0.95),
      Figure("tasks.rows", rows, "tasks/s").at_least(8000),
      Figure("tasks.pick_up_p50", quantile(picked, 0.5), "ms").at_most(3),
      Figure("tasks.pick_up_p99", quantile(picked, 0.99), "ms")};
}

}  // namespace outbox::bench
