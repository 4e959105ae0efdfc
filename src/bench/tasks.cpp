// tasks: how fast one worker does tasks that do nothing, and what that costs.
#include <fmt/format.h>

#include <chrono>
#include <outbox/worker.hpp>
#include <string>
#include <vector>

#include "bench/bench.hpp"
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
  const Drain all =
      median_drain(options.repeats, [&](int) { return work_off(log, options.events); });
  const auto n = static_cast<double>(options.events);
  return {
      Figure("tasks", all.events_per_second, "tasks/s").at_least(300'000),
      Figure("tasks.memory", all.peak_rss_mib, "MiB").at_most(64),
      Figure("tasks.cpu", all.cpu_us_per_event, "us/task"),
      Figure("tasks.wal", all.wal_bytes / n, "bytes/task"),
      Figure("tasks.pinned", median(with), "tasks/s").beside(median(without)).ratio_at_least(0.95)};
}

}  // namespace outbox::bench
