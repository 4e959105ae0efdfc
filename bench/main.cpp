// The program `outbox-bench`: measures the figures of the project against their limits.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/signals.hpp"
#include "base/units.hpp"
#include "bench/bench.hpp"
#include "cli/context.hpp"
#include "cli/exit.hpp"
#include "cli/output.hpp"
#include "cli/program.hpp"

namespace outbox::bench {
namespace {

using cli::Failure;
using cli::must;

/// What the command line says.
struct Given {
  BenchOptions options{};  ///< Without the numbers, which may be out of range.
  std::uint64_t events{1'000'000};
  std::uint64_t repeats{3};
  std::chrono::milliseconds length{5000};
  bool json{false};
  bool list{false};
};

int list(bool as_json) {
  cli::Json all = cli::Json::array();
  for (const auto& benchmark : all_benchmarks())
    all.push_back(
        {{"name", benchmark.name}, {"help", benchmark.help}, {"by_name_only", benchmark.by_hand}});
  if (as_json) {
    cli::print_json({{"benchmarks", all}});
    return cli::kOk;
  }
  for (const auto& benchmark : all_benchmarks()) {
    std::printf("%-14s %s%s\n", benchmark.name.c_str(), benchmark.help.c_str(),
                benchmark.by_hand ? " [by name only]" : "");
  }
  return cli::kOk;
}

void check_range(const char* option, std::uint64_t value, std::uint64_t least, std::uint64_t most) {
  if (value >= least && value <= most) return;
  throw Failure(cli::kUsage, fmt::format("{} {} is out of range", option, value),
                fmt::format("{} to {}", least, most));
}

void check(const Given& given) {
  check_range("--events", given.events, 1000, 1'000'000'000);
  check_range("--repeats", given.repeats, 1, 100);
  const auto length = given.length;
  if (length < std::chrono::milliseconds(100) || length > std::chrono::hours(1)) {
    throw Failure(cli::kUsage, "--length " + format_duration(length) + " is out of range",
                  "100ms to 1h");
  }
  const std::string& peer = given.options.peer;
  if (!peer.empty() && ::access(peer.c_str(), X_OK) != 0) {
    throw Failure(cli::kUsage,
                  fmt::format("--peer {} cannot be run: {}", peer, std::strerror(errno)),
                  "scripts/bench-peers --build prints the path of one that can");
  }
}

/// The options without the store.
BenchOptions find_wanted(const Given& given) {
  BenchOptions wanted = given.options;
  wanted.events = static_cast<std::int64_t>(given.events);
  wanted.repeats = static_cast<int>(given.repeats);
  wanted.seconds = std::chrono::duration<double>(given.length).count();
  wanted.progress = [](const std::string& line) { std::cerr << line << std::endl; };
  if (const Status status = check_names(wanted); !status)
    throw Failure(cli::kUsage, status.error().text());
  return wanted;
}

int measure(const Given& given, const cli::Context& context) {
  if (given.list) return list(given.json);
  check(given);
  BenchOptions wanted = find_wanted(given);
  const auto loaded = context.store_configuration();
  (void)cli::Context::store_options(loaded);
  wanted.store_url = loaded.config.relay.store_url;
  Signals signals(cli::kInterrupted);
  signals.end_at(1);
  const auto figures = must(run_benchmarks(wanted));
  if (given.json) {
    print_json(std::cout, figures);
  } else {
    print_table(std::cout, figures);
  }
  for (const Figure& figure : figures) {
    if (figure.ok && !*figure.ok) return cli::kCheckFailed;
  }
  return cli::kOk;
}

void add(CLI::App& program, Given& given, cli::Context& context) {
  using cli::add_option;
  context.add_options(program);
  cli::set_body(program, [&given, &context] { return measure(given, context); });
  cli::add_argument(program, "NAME", &given.options.names,
                    "Which ones; all by default (see --list)");
  add_option(program, "--list", &given.list, {}, "List the benchmarks");
  add_option(program, "--brokers", &given.options.brokers, "LIST",
             "Kafka brokers, for kafka and latency-kafka");
  add_option(program, "--to", &given.options.to, "KIND=ADDRESS",
             "A broker for sinks, such as redis=redis://localhost:6379; may be repeated");
  add_option(program, "--peer", &given.options.peer, "PATH",
             "For tasks: the program that measures River beside it (scripts/bench-peers)");
  add_option(program, "--events", &given.events, "N", "Events in the backlog (default 1000000)");
  add_option(program, "--repeats", &given.repeats, "N", "Medians over this many runs (default 3)");
  add_option(program, "--length", &given.length, "DURATION",
             "Length of the measurements that run for a time (default 5s)");
  add_option(program, "--between", &given.options.between, "COMMAND",
             "For cold: restarts the server and drops what the machine has in memory");
  add_option(program, "--json", &given.json, {}, "As JSON");
  cli::add_footer(
      program,
      "Uses a schema of its own, outbox_bench (tasks: and outbox_bench_fresh), in the store's database: made afresh, dropped\n"
      "at the end. One that is interrupted (exit 4) leaves it to the next one. A schema of that name that is not the\n"
      "benchmarks' own is left alone and nothing is measured.");
  cli::add_example(program, "outbox-bench --store postgresql://owner@db/scratch drain latency");
}

}  // namespace
}  // namespace outbox::bench

int main(int argc, char** argv) {
  outbox::cli::Context context;
  outbox::bench::Given given;
  return outbox::cli::run_program(
      {.name = "outbox-bench",
       .help =
           "Measures the figures, each beside its limit in the same run; exit 3 when one is missed.",
       .add = [&](CLI::App& program) { outbox::bench::add(program, given, context); }},
      argc, argv);
}
