// outbox console: the API and the page, in a process beside the database.
#include "console/console.hpp"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "base/signals.hpp"
#include "base/supervisor.hpp"
#include "cli/acting.hpp"
#include "cli/capture.hpp"
#include "cli/exit.hpp"
#include "cli/output.hpp"
#include "cli/program.hpp"
#include "cli/verbs.hpp"
#include "http/address.hpp"
#include "store/url.hpp"

namespace outbox::cli {
namespace {

struct ConsoleOptions {
  std::string listen{"127.0.0.1:8484"};
  std::vector<std::string> hosts;
};

/// Runs a verb as the command line would, with the configuration of this process.
console::Outcome execute(Context context, const std::vector<std::string>& words,
                         const std::string& person) {
  std::vector<const char*> argv{"outbox"};
  for (const std::string& word : words) argv.push_back(word.c_str());
  const Program program{.name = "outbox", .help = {}, .add = [&context](CLI::App& root) {
                          add_verbs(root, context);
                        }};
  console::Outcome outcome;
  const Capture capture(outcome.output, outcome.errors);
  const ActingPerson acting(person);
  const Ended ended = run_caught(program, static_cast<int>(argv.size()), argv.data());
  outcome.code = ended.code;
  outcome.unexpected = ended.unexpected;
  return outcome;
}

int console(const ConsoleOptions& options, const Context& context) {
  const config::Loaded loaded = context.store_and_more();
  auto address = http::parse_address(options.listen);
  if (!address) throw Failure(kUsage, "--listen: " + address.error().message, address.error().hint);
  (void)Context::store(loaded);
  Signals signals(kInterrupted);
  signals.end_at(1);
  Context of_requests = context;
  of_requests.leave_logging();
  const auto server = must(
      console::Console::start({.address = *address,
                               .hosts = options.hosts,
                               .version = OUTBOX_VERSION,
                               .store = store::shown_url(loaded.config.relay.store_url),
                               .execute = [of_requests](const auto& words, const auto& person) {
                                 return execute(of_requests, words, person);
                               }}));
  // From here on a stop waits for the requests that run.
  signals.end_at(2);
  const Supervisor supervisor;
  log::info("the console answers", {{"url", "http://" + server->address().text()}});
  supervisor.ready("answering");
  supervisor.wait(signals, [] { return true; });
  supervisor.stopping();
  return kOk;
}

}  // namespace

void add_console(CLI::App& root, Context& context) {
  auto options = std::make_shared<ConsoleOptions>();
  CLI::App& verb =
      add_verb(root, "console", "Answer what the verbs show, and do what they do, over HTTP",
               [options, &context] { return console(*options, context); });
  add_option(verb, "--listen", &options->listen, "ADDRESS", "Where it listens");
  add_option(verb, "--host", &options->hosts, "NAME",
             "Also answer under this name, as behind a proxy; may be repeated");
  add_footer(
      verb,
      "Whoever can connect may see and change what the verbs can, so it listens on this machine only. SIGTERM, SIGINT or\n"
      "SIGHUP stops it. The API is at /api/v1; it is no part of delivery, and costs the store nothing while nobody asks.");
  add_example(verb, "outbox console -c /etc/outbox/outbox.toml");
}

}  // namespace outbox::cli
