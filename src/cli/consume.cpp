// outbox consume: reads messages of brokers into the inbox and the queues, until it is stopped. A
// thin wrapper around outbox::Consumer.
#include <memory>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "base/signals.hpp"
#include "base/supervisor.hpp"
#include "cli/consuming.hpp"
#include "cli/ending.hpp"
#include "cli/exit.hpp"
#include "cli/monitoring.hpp"
#include "cli/verbs.hpp"
#include "config/settings_page.hpp"
#include "metrics/relay_metrics.hpp"
#include "store/url.hpp"

namespace outbox::cli {
namespace {

/// The longest stop: a batch is written, and the brokers are told.
constexpr std::chrono::seconds kConsumerGrace{10};

struct ConsumeOptions {
  std::vector<std::string> consumers;
  bool wait{false};
};

int consume(const ConsumeOptions& options, const Context& context) {
  const auto loaded = context.configuration(Subscriptions::unused, Tasks::unused, Consumers::used);
  (void)Context::store_options(loaded);
  const Supervisor supervisor;
  Signals signals(kInterrupted);
  signals.end_at(1);
  log_warnings(loaded);
  const ConsumersOfConfig consumers = make_consumers(loaded, options.consumers);
  log::info("starting", {{"version", OUTBOX_VERSION},
                         {"store", store::shown_url(loaded.config.relay.store_url)},
                         {"config", loaded.file.empty() ? "none" : loaded.file},
                         {"consumers", consumers.size()}});
  std::jthread limit;  // joined after the consumers are destroyed, which may hang
  const auto monitor = start_monitor(
      loaded, [] { return std::vector<RelayReport>(); },
      [&] { return consumer_reports(consumers); });
  if (!start_when_possible(options.wait, signals, supervisor,
                           [&] { (void)Context::checked_store(loaded); }))
    throw Failure(kInterrupted, "interrupted before it started");
  signals.end_at(2);
  for (const auto& consumer : consumers) must(consumer->start());
  supervisor.ready("consuming");
  supervisor.wait(signals, [&consumers] { return metrics::live(consumer_reports(consumers)); });
  supervisor.stopping();
  limit = limit_stop(kConsumerGrace);
  return stop_in_order(
      [&](std::chrono::milliseconds) {
        stop_consumers(consumers);
        return StopReport{.drained = true, .abandoned = 0};
      },
      kConsumerGrace,
      {.drained = "stopped, everything that was received is in the store and acknowledged",
       .abandoned = "stopped"});
}

}  // namespace

void add_consume(CLI::App& root, Context& context) {
  auto options = std::make_shared<ConsumeOptions>();
  CLI::App& verb = add_verb(root, "consume",
                            "Read messages of brokers into the inbox and a queue, until stopped",
                            [options, &context] { return consume(*options, context); });
  add_option(verb, "--consumer", &options->consumers, "NAME",
             "Run this consumer only; can be given again");
  add_option(verb, "--wait", &options->wait, {},
             "Keep trying while the store cannot be reached, instead of exit 5");
  add_footer(
      verb,
      "Each message becomes a task once, however often the broker delivers it; `outbox work` does the tasks.\n"
      "SIGTERM, SIGINT or SIGHUP stops it when the batch that is being written is acknowledged. What was not\n"
      "acknowledged comes again. It reads its configuration at start only.\n\n"
      "For those who watch it ([http] and [metrics]):\n" +
          config::settings_help("http") + config::settings_help("metrics"));
  add_example(verb, "outbox consume -c /etc/outbox/outbox.toml --wait");
}

}  // namespace outbox::cli
