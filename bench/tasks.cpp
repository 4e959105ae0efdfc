// tasks: how fast one worker does tasks that do nothing, and what that costs. River does the same
// in the same run (bench/peers).
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <outbox/postgres.hpp>
#include <outbox/worker.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/json.hpp"
#include "base/text_file.hpp"
#include "bench/bench.hpp"
#include "bench/latency.hpp"
#include "bench/postgres_fixture.hpp"
#include "support/child_process.hpp"
#include "support/failure.hpp"
#include "support/temp_dir.hpp"

namespace outbox::bench {
namespace {

constexpr const char* kTaskQueue = "bench";
constexpr std::size_t kTaskThreads = 8;
/// A part has many short drains, so that a slow phase of the machine is longer than one.
constexpr int kTaskDrains = 9;

/// Tasks without keys, because the tasks of a key run one after the other.
Rows tasks() {
  return {.aggregate_type = fmt::format("'{}{}'", kTaskPrefix, kTaskQueue), .aggregate_id = "''"};
}

/// Works off this many tasks and then stops the worker.
Drain work_off(PostgresFixture& log, std::int64_t tasks) {
  Handlers handlers;
  handlers.on("OrderPlaced", [](std::string_view, const TaskRun&) {});
  const auto worker = test::must(Worker::create(
      {.relay = log.relay_options({}), .queues = {kTaskQueue}, .threads = kTaskThreads},
      std::move(handlers)));
  return log.measure(*worker, tasks);
}

/// Works off the log from its beginning each time.
Drain work_off_anew(PostgresFixture& log, std::int64_t tasks) {
  const Drain drain = work_off(log, tasks);
  log.drop_subscriptions();
  log.say(fmt::format("tasks: {:.0f} tasks/s", drain.events_per_second));
  return drain;
}

struct Rates {
  std::vector<double> of_tasks{};
  /// The rate without what should not matter, in turns with the former.
  std::vector<double> beside{};
};

Figure ratio(std::string name, const Rates& rates) {
  return Figure(std::move(name), median(rates.of_tasks), "tasks/s")
      .beside(median(rates.beside))
      .ratio_at_least(0.95);
}

/// With `pinned` an idle transaction holds a snapshot from before the tasks were written.
void work_off_a_log(const BenchOptions& options, std::int64_t events, bool pinned,
                    std::vector<double>& rates) {
  PostgresFixture log(options);
  test::Pg idle(options.store_url);
  if (pinned) idle.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1");
  log.fill(events, tasks());
  for (int i = 0; i < kTaskDrains; ++i)
    rates.push_back(work_off_anew(log, events).events_per_second);
}

Rates with_an_old_snapshot(const BenchOptions& options, std::int64_t events) {
  Rates rates;
  for (int i = 0; i < options.repeats; ++i) {
    work_off_a_log(options, events, true, rates.of_tasks);
    work_off_a_log(options, events, false, rates.beside);
  }
  return rates;
}

/// Measures new tasks in a log whose subscription has passed all others, in turns with as many in a
/// new log. After each turn the settlements of the new tasks are taken back.
Rates after_finished(PostgresFixture& log, std::int64_t finished, std::int64_t some) {
  const auto value = [&](const char* sql) {
    return std::stoll(log.admin().value(fmt::format(fmt::runtime(sql), kSchema)));
  };
  const auto expect_settled = [&](std::int64_t tasks) {
    const auto settled = value("SELECT sum(acked) FROM {}.settlement");
    if (settled == tasks) return;
    test::give_up(Errc::internal, fmt::format("{} tasks are settled, not {}", settled, tasks));
  };
  log.say(fmt::format("tasks: finishing {}", finished));
  (void)work_off(log, finished);
  expect_settled(finished);
  const auto passed = value("SELECT max(seq) FROM {}.event");
  const auto settlement = value("SELECT max(id) FROM {}.settlement");
  log.write(some, tasks());
  (void)log.bare_drain(static_cast<std::uint64_t>(passed));
  PostgresFixture fresh(log.options(), "outbox_bench_fresh");
  fresh.fill(some, tasks());
  Rates rates;
  for (int turn = 0; turn < log.options().repeats * kTaskDrains; ++turn) {
    const double rate = work_off(log, some).events_per_second;
    expect_settled(finished + some);
    log.admin().run(fmt::format("DELETE FROM {}.settlement WHERE id > {}", kSchema, settlement));
    log.say(fmt::format("tasks: {:.0f} tasks/s after {} finished ones", rate, finished));
    rates.of_tasks.push_back(rate);
    rates.beside.push_back(work_off_anew(fresh, some).events_per_second);
  }
  log.drop_subscriptions();
  return rates;
}

// ---- other task libraries: their programs are in bench/peers, and scripts/bench-peers builds them

struct PeerDrain {
  double jobs_per_second{0};
  double peak_rss_mib{0};
};

constexpr std::chrono::minutes kPeerLimit{10};
constexpr std::size_t kMostOutput = 100'000;

/// The last line has the peer's result, or why there is none.
std::string last_line(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  return text.substr(text.find_last_of('\n') + 1);  // npos + 1 is 0.
}

/// Runs the program of the options, which leaves its tables in our schema. Throws Exception.
PeerDrain run_peer(const BenchOptions& options, std::int64_t jobs) {
  const test::TempDir folder("outbox-bench");
  const std::string output = folder.file("output");
  // The URL may have a password, and all users can see arguments.
  test::ChildProcess peer(
      {.command = {options.peer, "-schema", kSchema, "-jobs", std::to_string(jobs)},
       .environment = {{"DATABASE_URL", options.store_url}},
       .output = output});
  const bool ended = peer.wait(kPeerLimit).has_value();
  const std::string line = last_line(test::must(read_text_file(output, kMostOutput)).text);
  if (!ended)
    test::give_up(Errc::deadline_exceeded, options.peer + " did not end within 10 minutes", line);
  const auto result = try_parse_json<nlohmann::json>(line);
  if (peer.ended_with() != "exit status 0" || !result.is_object())
    test::give_up(Errc::internal, fmt::format("{} failed: {}", options.peer, peer.ended_with()),
                  line);
  return {.jobs_per_second = result.value("jobs_per_second", 0.0),
          .peak_rss_mib = result.value("peak_rss_mib", 0.0)};
}

struct Log {
  Drain drain;
  std::vector<double> river;  ///< Empty if it was not measured.
  Rates after_finished;
};

Log with_a_log(const BenchOptions& options, std::int64_t jobs, std::int64_t some) {
  PostgresFixture log(options);
  if (options.peer.empty())
    log.say("tasks: River is not measured: no --peer (scripts/bench-peers builds and gives it)");
  log.fill(options.events, tasks());
  Log result;
  result.drain = median_drain(options.repeats, [&](int) {
    if (!options.peer.empty()) {
      const PeerDrain river = run_peer(options, jobs);
      log.say(fmt::format("tasks: River: {:.0f} jobs/s, {:.0f} MiB", river.jobs_per_second,
                          river.peak_rss_mib));
      result.river.push_back(river.jobs_per_second);
    }
    const double bare = log.bare_drain();
    Drain drain = work_off_anew(log, options.events);
    drain.bare = bare;
    return drain;
  });
  result.after_finished = after_finished(log, options.events, some);
  return result;
}

/// The rate if every task has a row: runs of 50 ms get theirs after 10 ms instead of 1 s.
double row_rate(const BenchOptions& options, std::int64_t events) {
  PostgresFixture log(options);
  log.write(events, tasks());
  Handlers handlers;
  std::atomic<std::int64_t> runs{0};
  handlers.on("OrderPlaced", [&](std::string_view, const TaskRun&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    ++runs;
  });
  const auto worker = test::must(Worker::create({.relay = log.relay_options({}),
                                                 .queues = {kTaskQueue},
                                                 .threads = 1000,
                                                 .row_after = std::chrono::milliseconds(10)},
                                                std::move(handlers)));
  const auto count = [&](const char* table) {
    return std::stoll(log.admin().value(fmt::format("SELECT count(*) FROM {}.{}", kSchema, table)));
  };
  const auto began = std::chrono::steady_clock::now();
  test::must(worker->start());
  // On a busy machine a run may end before its row is written.
  wait_for_tasks(events * 9 / 10, std::chrono::milliseconds(20),
                 [&]() -> std::int64_t { return runs < events ? count("parked_end") : events; });
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  const double rate = static_cast<double>(count("parked_end")) / took.count();
  (void)worker->stop(std::chrono::seconds(10));
  log.drop_subscriptions();
  return rate;
}

/// The rate of tasks with one execute_at, at which all have their rows, from then on until the last
/// one has run; nullopt if there was not enough time for the rows.
std::optional<double> scheduled_rate(const BenchOptions& options, std::int64_t events,
                                     std::chrono::seconds ahead) {
  PostgresFixture log(options);
  Rows rows = tasks();
  rows.headers = fmt::format(
      "jsonb_build_object('{}', '{}')", kExecuteAtHeader,
      log.admin().value(fmt::format("SELECT to_char((clock_timestamp() + {} * interval '1 second') "
                                    "AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')",
                                    ahead.count())));
  const auto due = std::chrono::steady_clock::now() + ahead;
  log.write(events, rows);
  std::atomic<std::int64_t> runs{0};
  Handlers handlers;
  handlers.on("OrderPlaced", [&](std::string_view, const TaskRun&) { ++runs; });
  const auto worker = test::must(Worker::create(
      {.relay = log.relay_options({}), .queues = {kTaskQueue}, .threads = kTaskThreads},
      std::move(handlers)));
  test::must(worker->start());
  const auto parked = [&] {
    return std::stoll(log.admin().value(fmt::format("SELECT count(*) FROM {}.parked", kSchema)));
  };
  while (parked() < events) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    if (std::chrono::steady_clock::now() >= due) return std::nullopt;
  }
  std::this_thread::sleep_until(due);
  reset_peak_rss();
  wait_for_tasks(events, std::chrono::milliseconds(1), [&] { return runs.load(); });
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - due;
  (void)worker->stop(std::chrono::seconds(10));
  log.drop_subscriptions();
  log.say(fmt::format("tasks: {} scheduled ones ran in {:.2f} s, {:.0f} MiB", events, took.count(),
                      peak_rss_mib()));
  return static_cast<double>(events) / took.count();
}

double scheduled_rate(const BenchOptions& options, std::int64_t events) {
  std::chrono::seconds ahead(2 + events / 10'000);
  for (; ahead <= kDrainLimit; ahead *= 2) {
    if (const auto rate = scheduled_rate(options, events, ahead)) return *rate;
  }
  test::give_up(Errc::deadline_exceeded,
                fmt::format("{} scheduled tasks did not get their rows within {} s", events,
                            ahead.count() / 2));
}

/// The times from just before COMMIT to the handler of an idle worker, one task at a time.
std::vector<double> pick_ups(const BenchOptions& options) {
  constexpr int kTasks = 300;
  PostgresFixture log(options);
  std::atomic<std::int64_t> begun{0};
  Handlers handlers;
  handlers.on("pick", [&](std::string_view, const TaskRun&) { begun = now_ns(); });
  const auto worker = test::must(Worker::create(
      {.relay = log.relay_options({}), .queues = {kTaskQueue}, .threads = kTaskThreads},
      std::move(handlers)));
  test::must(worker->start());
  const Pg pg(options.store_url);
  std::vector<double> all;
  for (int i = 0; i < kTasks; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10 + i % 17));
    postgres::Transaction tx(pg.native(), {.schema = kSchema});
    (void)tx.enqueue({.queue = kTaskQueue, .type = "pick", .payload = "{}"});
    begun = 0;
    const std::int64_t before = now_ns();
    tx.commit();
    const auto deadline = std::chrono::steady_clock::now() + kDrainLimit;
    while (begun == 0) {
      if (std::chrono::steady_clock::now() > deadline) too_few_tasks(i, kTasks);
      std::this_thread::yield();
    }
    all.push_back(static_cast<double>(begun - before) / 1e6);
  }
  (void)worker->stop(std::chrono::seconds(10));
  log.drop_subscriptions();
  return all;
}

}  // namespace

std::vector<Figure> bench_tasks(const BenchOptions& options) {
  // Only the log grows with --events; the other parts stay short.
  const auto part = [&](std::int64_t divisor, std::int64_t most) {
    return std::clamp<std::int64_t>(options.events / divisor, 1000, most);
  };
  const std::int64_t some = part(8, 125'000);
  const Rates pinned = with_an_old_snapshot(options, some);
  const Log log = with_a_log(options, part(10, 100'000), some);
  // Fewer tasks have all run before the first of them has its row.
  const double rows = row_rate(options, std::max<std::int64_t>(part(50, 20'000), 10'000));
  const double at_once = scheduled_rate(options, part(10, 100'000));
  const std::vector<double> picked = pick_ups(options);
  const Drain& all = log.drain;
  std::vector<Figure> figures = {
      Figure("tasks", all.events_per_second, "tasks/s").beside(all.bare).at_least(300'000)};
  if (!log.river.empty()) {
    figures.push_back(Figure("tasks.river", all.events_per_second, "tasks/s")
                          .beside(median(log.river))
                          .ratio_at_least(8));
  }
  const std::vector<Figure> others = {
      Figure("tasks.memory", all.peak_rss_mib, "MiB").at_most(64),
      Figure("tasks.cpu", all.cpu_us_per_event, "us/task"),
      Figure("tasks.wal", all.wal_bytes / static_cast<double>(options.events), "bytes/task"),
      ratio("tasks.pinned", pinned),
      ratio("tasks.after_finished", log.after_finished),
      Figure("tasks.rows", rows, "tasks/s").at_least(8000),
      Figure("tasks.scheduled", at_once, "tasks/s").at_least(25'000),
      Figure("tasks.pick_up_p50", quantile(picked, 0.5), "ms").at_most(3),
      Figure("tasks.pick_up_p99", quantile(picked, 0.99), "ms")};
  figures.insert(figures.end(), others.begin(), others.end());
  return figures;
}

}  // namespace outbox::bench
