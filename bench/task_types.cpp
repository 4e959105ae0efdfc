// task-types: ten types in one queue, of which one always fails and one takes long, both with a
// limit. It measures how fast the other eight are done, beside ten that are fine.

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <outbox/worker.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/bench.hpp"
#include "bench/postgres_fixture.hpp"
#include "support/store.hpp"

namespace outbox::bench {
namespace {

constexpr const char* kTypesQueue = "bench";
constexpr int kTypes = 10;
constexpr int kBadTypes = 2;  ///< "t0" fails, "t1" takes long.
constexpr std::size_t kTypesThreads = 8;
constexpr std::chrono::seconds kLong{5};

Handlers make_handlers(std::atomic<std::int64_t>& done, bool bad) {
  Handlers handlers;
  for (int i = bad ? kBadTypes : 0; i < kTypes; ++i) {
    const bool counts = i >= kBadTypes;
    handlers.on(fmt::format("t{}", i), [&done, counts](std::string_view, const TaskRun&) {
      if (counts) done.fetch_add(1, std::memory_order_relaxed);
    });
  }
  if (!bad) return handlers;
  handlers.on("t0", {.rate = {100}},
              [](std::string_view, const TaskRun&) { return TaskEnd::failed("never works"); });
  handlers.on("t1", {.max_running = 2}, [](std::string_view, const TaskRun& run) {
    const auto until = std::chrono::steady_clock::now() + kLong;
    while (!run.stop.stop_requested() && std::chrono::steady_clock::now() < until)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
  });
  return handlers;
}

/// Tasks of the eight types per second, from the first one on.
double rate_of_the_eight(PostgresFixture& log, std::int64_t tasks, bool bad) {
  std::atomic<std::int64_t> done{0};
  const auto worker = test::must(Worker::create(
      {.relay = log.relay_options({}), .queues = {kTypesQueue}, .threads = kTypesThreads},
      make_handlers(done, bad)));
  const auto wait_for = [&](std::int64_t count) {
    wait_for_tasks(count, std::chrono::microseconds(500), [&] { return done.load(); });
  };
  test::must(worker->start());
  wait_for(1);
  const auto began = std::chrono::steady_clock::now();
  const std::int64_t first = done;
  const std::int64_t all = tasks / kTypes * (kTypes - kBadTypes);
  wait_for(all);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  (void)worker->stop(std::chrono::seconds(1));
  log.drop_subscriptions();
  log.admin().run(fmt::format("TRUNCATE {0}.parked, {0}.parked_key, {0}.parked_end", kSchema));
  return static_cast<double>(all - first) / took.count();
}

}  // namespace

std::vector<Figure> bench_task_types(const BenchOptions& options) {
  const std::int64_t tasks = std::max<std::int64_t>(options.events / 4 / kTypes, 100) * kTypes;
  PostgresFixture log(options);
  log.fill(tasks, {.aggregate_type = fmt::format("'{}{}'", kTaskPrefix, kTypesQueue),
                   .aggregate_id = "''",
                   .event_type = fmt::format("'t' || i % {}", kTypes)});
  std::vector<double> with;
  std::vector<double> without;
  for (int turn = 0; turn < options.repeats; ++turn) {
    with.push_back(rate_of_the_eight(log, tasks, true));
    without.push_back(rate_of_the_eight(log, tasks, false));
    log.say(fmt::format("task-types: {:.0f} tasks/s beside two bad types, {:.0f} beside good ones",
                        with.back(), without.back()));
  }
  return {
      Figure("task-types", median(with), "tasks/s").beside(median(without)).ratio_at_least(0.9)};
}

}  // namespace outbox::bench
