// outbox console: the API and the page, in a process beside the database.
#include "console/console.hpp"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/signals.hpp"
#include "base/supervisor.hpp"
#include "cli/acting.hpp"
#include "cli/exit.hpp"
#include "cli/output.hpp"
#include "cli/program.hpp"
#include "cli/verbs.hpp"
#include "http/address.hpp"
#include "store/kept_connections.hpp"
#include "store/url.hpp"

namespace outbox::cli {
namespace {

struct ConsoleOptions {
  std::string listen{"127.0.0.1:8484"};
  std::vector<std::string> hosts;
  std::optional<std::string> certificate;
  std::optional<std::string> key;
  bool behind_tls_proxy{false};
  bool tokens{false};
};

std::optional<http::Certificate> find_certificate(const ConsoleOptions& options) {
  if (options.certificate.has_value() != options.key.has_value())
    throw Failure(kUsage, "--tls-certificate and --tls-key belong together", "give both");
  if (!options.certificate) return {};
  return http::Certificate{.chain_file = *options.certificate, .key_file = *options.key};
}

/// Runs a verb as the command line would, with the configuration of this process.
console::Outcome execute(Context context, store::KeptConnections& kept,
                         const std::vector<std::string>& words, const std::string& person) {
  std::vector<const char*> argv{"outbox"};
  for (const std::string& word : words) argv.push_back(word.c_str());
  const Program program{.name = "outbox", .help = {}, .add = [&context](CLI::App& root) {
                          add_verbs(root, context);
                        }};
  console::Outcome outcome;
  const Capture capture(outcome.output, outcome.errors);
  const ActingPerson acting(person);
  const store::KeptConnections::Use use(kept);
  const Ended ended = run_caught(program, static_cast<int>(argv.size()), argv.data());
  outcome.code = ended.code;
  outcome.unexpected = ended.unexpected;
  return outcome;
}

Result<std::vector<console::KnownToken>> read_tokens(const store::StoreOptions& options,
                                                     store::KeptConnections& kept) {
  const store::KeptConnections::Use use(kept);
  OUTBOX_TRY(const auto store, store::open_store(options));
  OUTBOX_TRY(store->check());
  OUTBOX_TRY(const auto tokens, store->console_tokens());
  OUTBOX_TRY(const auto rows, tokens->list());
  std::vector<console::KnownToken> known;
  for (const store::ConsoleToken& row : rows) {
    const auto role = from_word<console::Role>(row.role);
    known.push_back({.name = row.name,
                     .digest = row.digest,
                     .role = role.value_or(console::Role::views),
                     .payloads = row.payloads,
                     .expires_us = row.expires_us});
  }
  return known;
}

int console(const ConsoleOptions& options, const Context& context) {
  const config::Loaded loaded = context.store_and_more();
  auto address = http::parse_address(options.listen);
  if (!address) throw Failure(kUsage, "--listen: " + address.error().message, address.error().hint);
  const store::StoreOptions store = Context::store_options(loaded);
  Signals signals(kInterrupted);
  signals.end_at(1);
  Context of_requests = context;
  of_requests.leave_logging();
  store::KeptConnections kept;
  const auto server = must(console::Console::start(
      {.address = *address,
       .hosts = options.hosts,
       .certificate = find_certificate(options),
       .behind_tls_proxy = options.behind_tls_proxy,
       .asks_for_tokens = options.tokens,
       .version = OUTBOX_VERSION,
       .store = store::shown_url(loaded.config.relay.store_url),
       .execute = [of_requests, &kept](
                      const auto& words,
                      const auto& person) { return execute(of_requests, kept, words, person); },
       .read_tokens = [store, &kept] { return read_tokens(store, kept); }}));
  // From here on a stop waits for the requests that run.
  signals.end_at(2);
  const Supervisor supervisor;
  log::info("the console answers",
            {{"url", (options.certificate ? "https://" : "http://") + server->address().text()}});
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
  add_option(verb, "--tokens", &options->tokens, {},
             "Ask for tokens on this machine, too; where others can connect it always does");
  add_option(verb, "--tls-certificate", &options->certificate, "FILE",
             "Answer with TLS: the certificate and those that signed it, in PEM format");
  add_option(verb, "--tls-key", &options->key, "FILE", "The key of the certificate");
  add_option(verb, "--behind-tls-proxy", &options->behind_tls_proxy, {},
             "A proxy in front of it has the certificate: other machines may connect without TLS");
  add_footer(
      verb,
      "On an address of this machine whoever can connect may see and change what the verbs can, unless --tokens is given.\n"
      "An address that others can reach needs TLS and tokens (outbox console token add). SIGTERM, SIGINT or SIGHUP stops\n"
      "it. The API is at /api/v1; it is no part of delivery, and costs the store nothing while nobody asks.");
  add_example(verb, "outbox console -c /etc/outbox/outbox.toml");
  add_console_tokens(verb, context);
}

}  // namespace outbox::cli
