// outbox demo: a shop whose relay is killed again and again.
#include "demo/demo.hpp"

#include <algorithm>
#include <memory>
#include <string>

#include "cli/exit.hpp"
#include "cli/verbs.hpp"

namespace outbox::cli {
namespace {

struct DemoVerbOptions {
  std::string store;
  std::string sink{"file"};
  std::string brokers;
  std::string url;
  std::uint64_t seconds{10};
  std::uint64_t writers{4};
  std::optional<std::uint64_t> kills;
  bool keep{false};
  bool json{false};
  bool naive{false};
  bool tasks{false};
  std::optional<std::string> publisher;
  std::optional<std::string> worker;
};

/// As an int; the demo itself checks the ranges.
int fitting(const char* option, std::uint64_t number) {
  if (number <= 1'000'000) return static_cast<int>(number);
  throw Failure(kUsage, std::string(option) + " " + std::to_string(number) + " is out of range",
                "see outbox demo --help");
}

/// Refuses options that would have no effect.
void check_alone(const Context& context) {
  const config::Request request = context.request(Subscriptions::unused);
  std::string which = request.file ? "-c" : "";
  for (const config::Flag& flag : request.flags) {
    if (flag.path != "store.url") which = flag.flag;
  }
  if (which.empty()) return;
  throw Failure(kUsage, which + ": the demo takes no settings",
                "leave it out; see outbox demo --help");
}

std::string store_of(const DemoVerbOptions& options, const Context& context) {
  if (!options.store.empty()) return options.store;
  for (const config::Flag& flag : context.request(Subscriptions::unused).flags) {
    if (flag.path == "store.url") return flag.value;
  }
  return {};
}

int demo(const DemoVerbOptions& options, const Context& context) {
  if (options.publisher) {
    must(demo::run_publisher(*options.publisher));
    return kOk;
  }
  if (options.worker) {
    must(demo::run_worker(*options.worker));
    return kOk;
  }
  check_alone(context);
  const demo::DemoOptions wanted{
      .store = store_of(options, context),
      .sink = options.sink,
      .brokers = options.brokers,
      .url = options.url,
      .seconds = fitting("--seconds", options.seconds),
      .writers = fitting("--writers", options.writers),
      .kills = options.kills ? fitting("--kills", *options.kills)
                             : demo::default_kills(fitting("--seconds", options.seconds)),
      .keep = options.keep,
      .json = options.json,
      .naive = options.naive,
      .tasks = options.tasks};
  if (const Status status = demo::check_options(wanted); !status)
    throw Failure(kUsage, status.error().text());
  switch (must(demo::run_demo(wanted))) {
    case demo::Ending::held: return kOk;
    case demo::Ending::broken: return kCheckFailed;
    case demo::Ending::interrupted: return kInterrupted;
  }
  return kError;
}

}  // namespace

void add_demo(CLI::App& root, Context& context) {
  auto options = std::make_shared<DemoVerbOptions>();
  CLI::App& verb =
      add_verb(root, "demo",
               "A small shop whose relay is killed again and again; then a count of what arrived",
               [options, &context] { return demo(*options, context); });
  add_option(
      verb, "--store", &options->store, "URL",
      "Where the shop is: postgresql://... (in schemas of its own) or sqlite:PATH of a new file; by default a "
      "SQLite file in a work folder");
  add_option(verb, "--sink", &options->sink, "SINK",
             "file, kafka, redis, nats or rabbitmq: each with a topic, stream or queue of its own");
  add_option(verb, "--brokers", &options->brokers, "LIST", "Kafka brokers, HOST:PORT");
  add_option(verb, "--url", &options->url, "URL",
             "Of the other brokers: redis://, nats:// or amqp://");
  add_option(verb, "--seconds", &options->seconds, "N", "How long the shop is open");
  add_option(verb, "--writers", &options->writers, "N", "Threads that sell");
  add_option(
      verb, "--kills", &options->kills, "N",
      "How often the relay is killed with SIGKILL; at most twice a second (default 5, or fewer)");
  add_option(
      verb, "--naive", &options->naive, {},
      "Without an outbox: a dual write, with the same kills. Shows what that loses and invents");
  add_option(verb, "--tasks", &options->tasks, {},
             "Each order is a task for workers, which are killed, instead of an event");
  add_option(verb, "--keep", &options->keep, {},
             "Keep the work folder, the tables and the topic, and say where");
  add_option(verb, "--json", &options->json, {},
             "The numbers of the last table as one JSON object");
  add_option(verb, "--publisher", &options->publisher, {}, {});  // What --naive starts for itself.
  add_option(verb, "--worker", &options->worker, {}, {});        // What --tasks starts for itself.
  add_footer(
      verb,
      "Needs nothing: it makes what it uses and removes it. Exit status 3 when something was lost, invented or reordered\n"
      "(not with --naive, which is a lesson), 4 when it was interrupted.");
  add_example(verb, "outbox demo --seconds 20 --kills 8");
}

}  // namespace outbox::cli
