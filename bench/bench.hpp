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
  /// Empty: all that store and brokers allow, except those that run by name only.
  std::vector<std::string> names;
  std::string store_url;
  std::string brokers;            ///< Kafka bootstrap servers; empty: no Kafka figures.
  std::vector<std::string> to{};  ///< KIND=ADDRESS of brokers, for `sinks`.
  std::string peer{};             ///< River's program, for `tasks`; empty: not measured.
  std::int64_t events{1'000'000};
  int repeats{3};  ///< Each figure is a median of so many runs.
  std::string
      between;  ///< A shell command, for `cold`: makes the server forget what it has in memory.
  double seconds{5};  ///< Length of one measurement, for figures that run for a time.
  std::function<void(const std::string&)> progress;  ///< Gets one line per step.
};

struct Benchmark {
  std::string name;
  std::string help;
  bool by_hand{false};
  bool needs_kafka{false};
  bool needs_to{false};
  bool sqlite{false};  ///< Runs on SQLite too, not on PostgreSQL alone.
  std::vector<Figure> (*run)(const BenchOptions& options);  ///< Throws outbox::Exception.
};

[[nodiscard]] const std::vector<Benchmark>& all_benchmarks();

/// Refuses unknown names, listing the known ones, and those that need brokers if there are none.
[[nodiscard]] Status check_names(const BenchOptions& options);

[[nodiscard]] Result<std::vector<Figure>> run_benchmarks(const BenchOptions& options);

// Defined in one file per subject.
[[nodiscard]] std::vector<Figure> bench_drain(const BenchOptions& options);
[[nodiscard]] std::vector<Figure> bench_backlog(const BenchOptions& options);
[[nodiscard]] std::vector<Figure> bench_pinned(const BenchOptions& options);
[[nodiscard]] std::vector<Figure> bench_head(const BenchOptions& options);
[[nodiscard]] std::vector<Figure> bench_events(const BenchOptions& options);
[[nodiscard]] std::vector<Figure> bench_wal(const BenchOptions& options);
[[nodiscard]] std::vector<Figure> bench_verify(const BenchOptions& options);
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
[[nodiscard]] std::vector<Figure> bench_sinks(const BenchOptions& options);
[[nodiscard]] std::vector<Figure> bench_tasks(const BenchOptions& options);
[[nodiscard]] std::vector<Figure> bench_task_types(const BenchOptions& options);
[[nodiscard]] std::vector<Figure> bench_latency_kafka(const BenchOptions& options);

}  // namespace outbox::bench
