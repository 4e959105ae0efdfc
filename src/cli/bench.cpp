// outbox bench: measures the figures of the project against their limits.
#include "bench/bench.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/signals.hpp"
#include "base/units.hpp"
#include "cli/exit.hpp"
#include "cli/output.hpp"
#include "cli/verbs.hpp"

namespace outbox::cli {
namespace {

struct BenchVerbOptions {
  std::vector<std::string> names;
  std::string brokers;
  std::vector<std::string> to;
  std::string peer;
  std::uint64_t events{1'000'000};
  std::uint64_t repeats{3};
  std::chrono::milliseconds length{5000};
  std::string between;
  bool json{false};
  bool list{false};
};

int list(bool as_json) {
  Json all = Json::array();
  for (const auto& benchmark : bench::all_benchmarks())
    all.push_back(
        {{"name", benchmark.name}, {"help", benchmark.help}, {"by_name_only", benchmark.by_hand}});
  if (as_json) {
    print_json({{"benchmarks", all}});
    return kOk;
  }
  for (const auto& benchmark : bench::all_benchmarks()) {
    std::printf("%-14s %s%s\n", benchmark.name.c_str(), benchmark.help.c_str(),
                benchmark.by_hand ? " [by name only]" : "");
  }
  return kOk;
}

void check_range(const char* option, std::uint64_t value, std::uint64_t least, std::uint64_t most) {
  if (value >= least && value <= most) return;
  throw Failure(kUsage, fmt::format("{} {} is out of range", option, value),
                fmt::format("{} to {}", least, most));
}

void check(const BenchVerbOptions& options) {
  check_range("--events", options.events, 1000, 1'000'000'000);
  check_range("--repeats", options.repeats, 1, 100);
  const auto length = options.length;
  if (length < std::chrono::milliseconds(100) || length > std::chrono::hours(1)) {
    throw Failure(kUsage, "--length " + format_duration(length) + " is out of range",
                  "100ms to 1h");
  }
  if (!options.peer.empty() && ::access(options.peer.c_str(), X_OK) != 0) {
    throw Failure(kUsage,
                  fmt::format("--peer {} cannot be run: {}", options.peer, std::strerror(errno)),
                  "scripts/bench-peers --build prints the path of one that can");
  }
}

/// Without the store.
bench::BenchOptions wanted_of(const BenchVerbOptions& options) {
  bench::BenchOptions wanted;
  wanted.names = options.names;
  wanted.brokers = options.brokers;
  wanted.to = options.to;
  wanted.peer = options.peer;
  wanted.events = static_cast<std::int64_t>(options.events);
  wanted.repeats = static_cast<int>(options.repeats);
  wanted.between = options.between;
  wanted.seconds = std::chrono::duration<double>(options.length).count();
  wanted.progress = [](const std::string& line) { std::cerr << line << std::endl; };
  if (const Status status = bench::check_names(wanted); !status)
    throw Failure(kUsage, status.error().text());
  return wanted;
}

int bench(const BenchVerbOptions& options, const Context& context) {
  if (options.list) return list(options.json);
  check(options);
  bench::BenchOptions wanted = wanted_of(options);
  const auto loaded = context.store_configuration();
  (void)Context::store_options(loaded);
  wanted.store_url = loaded.config.relay.store_url;
  Signals signals(kInterrupted);
  signals.end_at(1);
  const auto figures = must(bench::run_benchmarks(wanted));
  if (options.json) {
    bench::print_json(std::cout, figures);
  } else {
    bench::print_table(std::cout, figures);
  }
  for (const bench::Figure& figure : figures) {
    if (figure.ok && !*figure.ok) return kCheckFailed;
  }
  return kOk;
}

}  // namespace

void add_bench(CLI::App& root, Context& context) {
  auto options = std::make_shared<BenchVerbOptions>();
  CLI::App& verb = add_verb(
      root, "bench",
      "Measure the figures, each beside its limit in the same run; exit 3 when one is missed",
      [options, &context] { return bench(*options, context); });
  add_argument(verb, "NAME", &options->names, "Which ones; all by default (see --list)");
  add_option(verb, "--list", &options->list, {}, "List the benchmarks");
  add_option(verb, "--brokers", &options->brokers, "LIST",
             "Kafka brokers, for kafka and latency-kafka");
  add_option(verb, "--to", &options->to, "KIND=ADDRESS",
             "A broker for sinks, such as redis=redis://localhost:6379; may be repeated");
  add_option(verb, "--peer", &options->peer, "PATH",
             "For tasks: the program that measures River beside it (scripts/bench-peers)");
  add_option(verb, "--events", &options->events, "N", "Events in the backlog (default 1000000)");
  add_option(verb, "--repeats", &options->repeats, "N", "Medians over this many runs (default 3)");
  add_option(verb, "--length", &options->length, "DURATION",
             "Length of the measurements that run for a time (default 5s)");
  add_option(verb, "--between", &options->between, "COMMAND",
             "For cold: restarts the server and drops what the machine has in memory");
  add_option(verb, "--json", &options->json, {}, "As JSON");
  add_footer(
      verb,
      "Uses a schema of its own, outbox_bench (tasks: and outbox_bench_fresh), in the store's database: made afresh, dropped\n"
      "at the end. One that is interrupted (exit 4) leaves it to the next one. A schema of that name that is not the\n"
      "benchmarks' own is left alone and nothing is measured.");
  add_example(verb, "outbox bench --store postgresql://owner@db/scratch drain latency");
}

}  // namespace outbox::cli
