// `outbox bench`: every figure of the project, each beside its limit measured in the same run.
#pragma once

#include <cstdint>
#include <functional>
#include <outbox/error.hpp>
#include <string>
#include <vector>

#include "bench/figure.hpp"

namespace outbox::bench {

struct BenchOptions {
  /// Empty: all that the store and the brokers allow, but those by hand only.
  std::vector<std::string> names;
  std::string store_url;
  std::string brokers;  ///< Kafka bootstrap servers; empty: the Kafka figures are left out.
  std::int64_t events{1'000'000};
  int repeats{3};     ///< Medians over so many.
  double seconds{5};  ///< Length of one measurement of the figures that run for a time.
  std::function<void(const std::string&)> progress;  ///< One line on what is being done.
};

/// Two sides that are compared take so many turns each, alternating, in the length of a measurement: so seconds in which the
/// machine is slow count for both.
inline constexpr int kTurns = 20;

struct Benchmark {
  std::string name;
  std::string help;
  bool by_hand{false};
  bool needs_kafka{false};
  bool postgres{true};
  bool sqlite{false};
  std::vector<Figure> (*run)(const BenchOptions& options);  ///< Throws outbox::Exception.
};

[[nodiscard]] const std::vector<Benchmark>& all_benchmarks();

/// Refuses unknown names, naming the known ones, and those that need brokers when there are none.
[[nodiscard]] Status check_names(const std::vector<std::string>& names, const std::string& brokers);

[[nodiscard]] Result<std::vector<Figure>> run_benchmarks(const BenchOptions& options);

// One file each.
[[nodiscard]] std::vector<Figure> bench_drain(const BenchOptions& options);
[[nodiscard]] std::vector<Figure> bench_backlog(const BenchOptions& options);
[[nodiscard]] std::vector<Figure> bench_pinned(const BenchOptions& options);
[[nodiscard]] std::vector<Figure> bench_head(const BenchOptions& options);
[[nodiscard]] std::vector<Figure> bench_wal(const BenchOptions& options);
[[nodiscard]] std::vector<Figure> bench_latency(const BenchOptions& options);
[[nodiscard]] std::vector<Figure> bench_enqueue_postgres(const BenchOptions& options);
[[nodiscard]] std::vector<Figure> bench_enqueue_sqlite(const BenchOptions& options);
#ifdef OUTBOX_WITH_KAFKA
[[nodiscard]] std::vector<Figure> bench_kafka(const BenchOptions& options);
[[nodiscard]] std::vector<Figure> bench_latency_kafka(const BenchOptions& options);
#endif

}  // namespace outbox::bench
