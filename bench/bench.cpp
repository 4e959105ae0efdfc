#include "bench/bench.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace outbox::bench {
const std::vector<Benchmark>& all_benchmarks() {
  static const std::vector<Benchmark> all = {
      {.name = "drain",
       .help = "a backlog to nothing, against a bare loop over the same rows",
       .run = bench_drain},
      {.name = "pinned", .help = "the same with an old snapshot held open", .run = bench_pinned},
      {.name = "head",
       .help = "a poll with 100 transactions in flight and 90 partitions",
       .run = bench_head},
      {.name = "events",
       .help = "an event by its id, what became of it, and status, with 20 subscriptions",
       .run = bench_events},
      {.name = "http",
       .help = "the metrics of a relay and the console's overview, with 100 subscriptions",
       .run = bench_http},
      {.name = "watched",
       .help = "drain and latency with metrics, history and verification, against those without",
       .run = bench_watched},
      {.name = "wal", .help = "write-ahead log written by the relay", .run = bench_wal},
      {.name = "verify", .help = "verifying a drained log, against the drain", .run = bench_verify},
      {.name = "latency", .help = "commit to sink at 1,000 events/s", .run = bench_latency},
      {.name = "feed",
       .help =
           "the same with each feed, at 1,000 and 10 events/s; needs wal_level = logical (by hand)",
       .by_hand = true,
       .run = bench_feed},
      {.name = "enqueue",
       .help = "what an event costs the writer",
       .sqlite = true,
       .run = bench_enqueue},
      {.name = "retention",
       .help = "removing delivered events beside writers: locks held, their latency",
       .run = bench_retention},
      {.name = "adopt",
       .help = "a table with pending rows is adopted beside writers (by hand)",
       .by_hand = true,
       .run = bench_adopt},
#ifdef OUTBOX_WITH_KAFKA
      {.name = "kafka",
       .help = "a backlog to a real broker, gapless",
       .needs_kafka = true,
       .run = bench_kafka},
      {.name = "consume",
       .help = "messages of a topic through inbox, task and handler, against loops by hand",
       .needs_kafka = true,
       .run = bench_consume},
      {.name = "latency-kafka",
       .help = "commit to a consumer's hands",
       .needs_kafka = true,
       .run = bench_latency_kafka},
#endif
      {.name = "tasks",
       .help = "tasks that do nothing, by a worker with 8 threads",
       .run = bench_tasks},
      {.name = "task-types",
       .help =
           "eight types of tasks beside one that always fails and one that takes long (by hand)",
       .by_hand = true,
       .run = bench_task_types},
      {.name = "sinks",
       .help = "a backlog to each broker that --to names, and commit to a consumer's hands",
       .needs_to = true,
       .run = bench_sinks},
      {.name = "relays",
       .help = "two relays against one, to a destination that takes 1 ms per 100 events (by hand)",
       .by_hand = true,
       .run = bench_relays},
      {.name = "poison",
       .help =
           "the others while one key in 10,000, or in 10, is rejected, every second event is refused, or one in 10 gets a 422 (by hand)",
       .by_hand = true,
       .run = bench_poison},
      {.name = "parked",
       .help = "what many parked events and scheduled tasks cost (by hand: --events 200000)",
       .by_hand = true,
       .sqlite = true,
       .run = bench_parked},
      {.name = "cold",
       .help = "a backlog that is in no cache, against a warm one (by hand, with --between)",
       .by_hand = true,
       .run = bench_cold},
      {.name = "beside",
       .help = "a subscription beside a paused, a dead and a slow one, against alone (by hand)",
       .by_hand = true,
       .run = bench_beside},
      {.name = "idle",
       .help = "a relay with 20 subscriptions while nothing happens (by hand)",
       .by_hand = true,
       .run = bench_idle},
      {.name = "settlements",
       .help =
           "start, takeover and status with many settlements (by hand: --events 50000000, 15 GB)",
       .by_hand = true,
       .run = bench_settlements},
      {.name = "freezes",
       .help = "a subscription after 20 freezes and kills of its relays in a row (by hand)",
       .by_hand = true,
       .run = bench_freezes},
      {.name = "takeover",
       .help = "from the death of a relay to the first delivery by another (by hand)",
       .by_hand = true,
       .run = bench_takeover},
      {.name = "backlog",
       .help =
           "time per event with a large backlog against a small one (by hand: --events 10000000)",
       .by_hand = true,
       .run = bench_backlog},
  };
  return all;
}

Status check_names(const BenchOptions& options) {
  std::string known;
  for (const Benchmark& benchmark : all_benchmarks()) known += benchmark.name + " ";
  for (const std::string& name : options.names) {
    const auto found = std::find_if(all_benchmarks().begin(), all_benchmarks().end(),
                                    [&](const Benchmark& one) { return one.name == name; });
    if (found == all_benchmarks().end())
      return fail(Errc::invalid_argument, "unknown benchmark \"" + name + "\"", "known: " + known);
    if (found->needs_kafka && options.brokers.empty()) {
      return fail(Errc::invalid_argument, "benchmark " + name + " needs --brokers",
                  "--brokers localhost:9092");
    }
    if (found->needs_to && options.to.empty()) {
      return fail(Errc::invalid_argument, "benchmark " + name + " needs --to",
                  "--to redis=redis://localhost:6379");
    }
  }
  return {};
}

Result<std::vector<Figure>> run_benchmarks(const BenchOptions& options) {
  if (Status status = check_names(options); !status) return pass(status);
  const auto& names = options.names;
  const bool sqlite = options.store_url.starts_with("sqlite:");
  std::vector<Figure> figures;
  try {
    for (const Benchmark& benchmark : all_benchmarks()) {
      const bool named = std::find(names.begin(), names.end(), benchmark.name) != names.end();
      const bool wanted = named || (names.empty() && !benchmark.by_hand);
      const bool possible = (benchmark.sqlite || !sqlite) &&
                            !(benchmark.needs_kafka && options.brokers.empty()) &&
                            !(benchmark.needs_to && options.to.empty());
      if (!wanted || !possible) continue;
      const auto measured = benchmark.run(options);
      figures.insert(figures.end(), measured.begin(), measured.end());
    }
  } catch (const Exception& failure) {
    return fail(failure.error());
  }
  if (!figures.empty()) return figures;
  return fail(Errc::invalid_argument, "none of these benchmarks runs on this store",
              "use a postgresql:// URL");
}

}  // namespace outbox::bench
