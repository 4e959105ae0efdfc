// The program `outbox-demo`: a shop whose relay is killed again and again.
#include <cstdint>
#include <optional>
#include <string>

#include "cli/exit.hpp"
#include "cli/program.hpp"
#include "demo/demo.hpp"

namespace outbox::demo {
namespace {

using cli::Failure;
using cli::must;

/// What the command line says.
struct Given {
  DemoOptions options{};  ///< Without the numbers, which may be out of range.
  std::uint64_t seconds{10};
  std::uint64_t writers{4};
  std::optional<std::uint64_t> kills;
  std::optional<std::string> publisher;
  std::optional<std::string> worker;
  std::optional<std::string> relay;
};

/// The number as an int; the demo itself checks the ranges.
int fitting(const char* option, std::uint64_t number) {
  if (number <= 1'000'000) return static_cast<int>(number);
  throw Failure(cli::kUsage,
                std::string(option) + " " + std::to_string(number) + " is out of range",
                "see outbox-demo --help");
}

int show(const Given& given) {
  if (given.publisher) {
    must(run_publisher(*given.publisher));
    return cli::kOk;
  }
  if (given.worker) {
    must(run_worker(*given.worker));
    return cli::kOk;
  }
  if (given.relay) {
    must(run_relay(*given.relay));
    return cli::kOk;
  }
  DemoOptions wanted = given.options;
  wanted.seconds = fitting("--seconds", given.seconds);
  wanted.writers = fitting("--writers", given.writers);
  wanted.kills = given.kills ? fitting("--kills", *given.kills) : default_kills(wanted.seconds);
  if (const Status status = check_options(wanted); !status)
    throw Failure(cli::kUsage, status.error().text());
  switch (must(run_demo(wanted))) {
    case Ending::held: return cli::kOk;
    case Ending::broken: return cli::kCheckFailed;
    case Ending::interrupted: return cli::kInterrupted;
  }
  return cli::kError;
}

void add(CLI::App& program, Given& given) {
  using cli::add_option;
  cli::set_body(program, [&given] { return show(given); });
  add_option(
      program, "--store", &given.options.store, "URL",
      "Where the shop is: postgresql://... (in schemas of its own) or sqlite:PATH of a new file; by default a "
      "SQLite file in a work folder");
  add_option(program, "--sink", &given.options.sink, "SINK",
             "file, kafka, redis, nats or rabbitmq: each with a topic, stream or queue of its own");
  add_option(program, "--brokers", &given.options.brokers, "LIST", "Kafka brokers, HOST:PORT");
  add_option(program, "--url", &given.options.url, "URL",
             "Of the other brokers: redis://, nats:// or amqp://");
  add_option(program, "--seconds", &given.seconds, "N", "How long the shop is open");
  add_option(program, "--writers", &given.writers, "N", "Threads that sell");
  add_option(
      program, "--kills", &given.kills, "N",
      "How often the relay is killed with SIGKILL; at most twice a second (default 5, or fewer)");
  add_option(
      program, "--naive", &given.options.naive, {},
      "Without an outbox: a dual write, with the same kills. Shows what that loses and invents");
  add_option(program, "--tasks", &given.options.tasks, {},
             "Each order is a task for workers, which are killed, instead of an event");
  add_option(program, "--keep", &given.options.keep, {},
             "Keep the work folder, the tables and the topic, and say where");
  add_option(program, "--json", &given.options.json, {},
             "The numbers of the last table as one JSON object");
  // The demo starts these for itself.
  add_option(program, "--publisher", &given.publisher, {}, {});
  add_option(program, "--worker", &given.worker, {}, {});
  add_option(program, "--relay", &given.relay, {}, {});
  cli::add_footer(
      program,
      "Needs nothing: it makes what it uses and removes it. Exit status 3 when something was lost, invented or reordered\n"
      "(not with --naive, which is a lesson), 4 when it was interrupted.");
  cli::add_example(program, "outbox-demo --seconds 20 --kills 8");
}

}  // namespace
}  // namespace outbox::demo

int main(int argc, char** argv) {
  outbox::demo::Given given;
  return outbox::cli::run_program(
      {.name = "outbox-demo",
       .help = "A small shop whose relay is killed again and again; then a count of what arrived.",
       .add = [&given](CLI::App& program) { outbox::demo::add(program, given); }},
      argc, argv);
}
