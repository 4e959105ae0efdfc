// `outbox-bench`: every figure of the project, each beside its limit measured in the same run.
#pragma once

#include <cstdint>
#include <functional>
#include <outbox/error.hpp>
#include <string>
#include <vector>

#include "bench/figure.hpp"

namespace outbox::bench {

struct BenchOptions {
  /// The benchmarks to run. If it is empty, all that store and brokers allow, except those that run
  /// only by name.
  std::vector<std::string> names;
  std::string store_url;
  std::string brokers;            ///< Kafka's bootstrap servers; no Kafka figures if empty.
  std::vector<std::string> to{};  ///< KIND=ADDRESS of brokers, for `sinks`.
  std::string peer{};             ///< River's program, for `tasks`; it is not measured if empty.
  std::int64_t events{1'000'000};
  int repeats{3};  ///< Each figure is a median of this many runs.
  /// For `cold`, a shell command that makes the server forget what it has in memory.
  std::string between;
  double seconds{5};  ///< The length of one measurement, for figures that run for a time.
  std::function<void(const std::string&)> progress;  ///< Called with one line per step.
};

struct Benchmark {
  std::string name;
  std::string help;
  bool by_hand{false};
  bool needs_kafka{false};
  bool needs_to{false};
  bool sqlite{false};  ///< Whether it runs on SQLite, too, and not on PostgreSQL alone.
  std::vector<Figure> (*run)(const BenchOptions& options);  ///< Throws outbox::Exception.
};

[[nodiscard]] const std::vector<Benchmark>& all_benchmarks();

/// Refuses unknown names, with a list of the known ones, and names that need missing brokers.
[[nodiscard]] Status check_names(const BenchOptions& options);

[[nodiscard]] Result<std::vector<Figure>> run_benchmarks(const BenchOptions& options);

// Each subject is defined in a file of its own.
[[nodiscard]] std::vector<Figure> bench_drain(const BenchOptions& options);
[[nodiscard]] std::vector<Figure> bench_backlog(const BenchOptions& options);
[[nodiscard]] std::vector<Figure> bench_pinned(const BenchOptions& options);
[[nodiscard]] std::vector<Figure> bench_head(const BenchOptions& options);
[[nodiscard]] std::vector<Figure> bench_events(const BenchOptions& options);
[[nodiscard]] std::vector<Figure> bench_http(const BenchOptions& options);
[[nodiscard]] std::vector<Figure> bench_watched(const BenchOptions& options);
[[nodiscard]] std::vector<Figure> bench_wal(const BenchOptions& options);
[[nodiscard]] std::vector<Figure> bench_verify(const BenchOptions& options);
[[nodiscard]] std::vector<Figure> bench_feed(const BenchOptions& options);
[[nodiscard]] std::vector<Figure> bench_latency(const BenchOptions& options);
[[nodiscard]] std::vector<Figure> bench_enqueue(const BenchOptions& options);
[[nodiscard]] std::vector<Figure> bench_enqueue_sqlite(const BenchOptions& options);
[[nodiscard]] std::vector<Figure> bench_cold(const BenchOptions& options);
[[nodiscard]] std::vector<Figure> bench_beside(const BenchOptions& options);
[[nodiscard]] std::vector<Figure> bench_idle(const BenchOptions& options);
[[nodiscard]] std::vector<Figure> bench_settlements(const BenchOptions& options);
[[nodiscard]] std::vector<Figure> bench_takeover(const BenchOptions& options);
[[nodiscard]] std::vector<Figure> bench_freezes(const BenchOptions& options);
[[nodiscard]] std::vector<Figure> bench_relays(const BenchOptions& options);
[[nodiscard]] std::vector<Figure> bench_poison(const BenchOptions& options);
[[nodiscard]] std::vector<Figure> bench_parked(const BenchOptions& options);
[[nodiscard]] std::vector<Figure> bench_retention(const BenchOptions& options);
[[nodiscard]] std::vector<Figure> bench_adopt(const BenchOptions& options);
[[nodiscard]] std::vector<Figure> bench_kafka(const BenchOptions& options);
[[nodiscard]] std::vector<Figure> bench_consume(const BenchOptions& options);
[[nodiscard]] std::vector<Figure> bench_sinks(const BenchOptions& options);
[[nodiscard]] std::vector<Figure> bench_tasks(const BenchOptions& options);
[[nodiscard]] std::vector<Figure> bench_task_types(const BenchOptions& options);
[[nodiscard]] std::vector<Figure> bench_latency_kafka(const BenchOptions& options);

}  // namespace outbox::bench
