// outbox relay: delivers until it is stopped. A thin wrapper around outbox::Relay.
#include <algorithm>
#include <chrono>
#include <memory>
#include <outbox/relay.hpp>
#include <span>
#include <string>
#include <thread>

#include "base/log.hpp"
#include "base/process.hpp"
#include "base/signals.hpp"
#include "base/supervisor.hpp"
#include "cli/ending.hpp"
#include "cli/exit.hpp"
#include "cli/monitoring.hpp"
#include "cli/verbs.hpp"
#include "config/settings_page.hpp"
#include "metrics/relay_metrics.hpp"
#include "relay/pending.hpp"
#include "store/url.hpp"
#include "subscription/group.hpp"
#include "verify/verify_job.hpp"

namespace outbox::cli {
namespace {

constexpr std::chrono::milliseconds kCheckPending{50};
constexpr std::chrono::seconds kVerifyEvery{5};

struct RelayVerbOptions {
  std::optional<std::string> name;
  std::vector<std::string> groups;
  bool no_apply{false};
  bool once{false};
  bool wait{false};
};

RelayOptions relay_options(const RelayVerbOptions& options, const config::Loaded& loaded) {
  (void)Context::store_options(loaded);
  RelayOptions relay = loaded.config.relay;
  if (options.name) relay.name = *options.name;
  if (!options.groups.empty()) relay.groups = options.groups;
  if (options.no_apply) relay.subscriptions.clear();
  return relay;
}

void log_start(const config::Loaded& loaded, const RelayOptions& relay) {
  log_warnings(loaded);
  log::info("starting", {{"version", OUTBOX_VERSION},
                         {"store", store::shown_url(relay.store_url)},
                         {"config", loaded.file.empty() ? "none" : loaded.file},
                         {"subscriptions", relay.subscriptions.size()}});
}

/// Logs which subscriptions will not be delivered: the relay logs only changes of state.
void log_inactive(const config::Loaded& loaded) {
  const auto store = Context::checked_store(loaded);
  const auto catalog = must(repeatable(store->catalog()));
  const auto rows = must(repeatable(catalog->subscriptions()));
  for (const auto& row : rows) {
    if (row.state == store::SubscriptionState::paused) {
      log::info("subscription is paused, it delivers nothing until it is resumed",
                {{"subscription", row.spec.name}, {"reason", row.reason}});
    } else if (row.state == store::SubscriptionState::stopped) {
      log::error("subscription is stopped, it delivers nothing until it is resumed",
                 {{"subscription", row.spec.name}, {"reason", row.reason}});
    }
  }
}

int stop(Relay& relay, std::chrono::milliseconds grace) {
  return stop_in_order(
      [&](std::chrono::milliseconds within) { return relay.stop(within); }, grace,
      {.drained = "stopped, nothing is in flight, and all that was delivered is settled",
       .abandoned =
           "stopped before everything in flight was settled, that will be delivered again"});
}

/// With `--wait`, retries while the store is unavailable. Other errors end the verb.
void start(const RelayVerbOptions& options, const config::Loaded& loaded, Relay& relay,
           Signals& signals, const Supervisor& supervisor) {
  const bool started = start_when_possible(options.wait, signals, supervisor, [&] {
    signals.end_at(1);  // nothing is in flight
    log_inactive(loaded);
    signals.end_at(2);  // events may be in flight before start() returns
    must(repeatable(relay.start()));
  });
  if (!started) throw Failure(kInterrupted, "interrupted before it started");
}

/// Whether all subscriptions of the configuration are in the store: of one that is not, everything
/// is pending. A relay with the lanes has applied them. Without the lanes, another relay may
/// deliver, so the store is asked.
Result<bool> all_are_there(const Relay& relay, store::Catalog& catalog,
                           std::span<const SubscriptionSpec> wanted) {
  if (relay.report().owner) return true;
  const auto rows = catalog.subscriptions();
  if (!rows) return tl::unexpected(rows.error());
  return std::all_of(wanted.begin(), wanted.end(), [&](const SubscriptionSpec& spec) {
    return std::any_of(rows->begin(), rows->end(),
                       [&](const auto& row) { return row.spec.name == spec.name; });
  });
}

/// `--once`: waits until nothing is pending, or for a signal.
void wait_until_delivered(const config::Loaded& loaded, const RelayOptions& settings,
                          const Relay& relay, const Signals& signals) {
  const auto store = Context::store(loaded);
  std::unique_ptr<store::Catalog> catalog;
  std::vector<std::string> served = settings.groups;
  if (served.empty()) served.emplace_back(subscription::kAllGroups);
  const auto nothing_left = [&]() -> Result<bool> {
    if (!catalog) {
      auto opened = store->catalog();
      if (!opened) return tl::unexpected(opened.error());
      catalog = std::move(*opened);
    }
    auto there = all_are_there(relay, *catalog, settings.subscriptions);
    if (!there || !*there) return there;
    const auto pending = relay::find_pending_subscription(*catalog, served);
    if (!pending) return tl::unexpected(pending.error());
    return pending->empty();
  };
  do {
    const auto done = nothing_left();
    if (done && *done) return;
    if (done) continue;
    if (done.error().remedy == Remedy::fix) throw Failure(kError, done.error().text());
    catalog.reset();  // the relay reconnects to the store, too
  } while (!signals.wait_for(kCheckPending));
}

verify::VerifyJobOptions verify_options(const config::Loaded& loaded, const RelayOptions& relay) {
  return {.store = {.url = relay.store_url,
                    .schema = relay.schema,
                    .application = "outbox verification"},
          .verifier = relay.name.empty() ? process_name() : relay.name,
          .after = std::max(loaded.config.verify_after, 2 * relay.lease),
          .every = std::min<std::chrono::milliseconds>(kVerifyEvery, loaded.config.verify_after)};
}

int relay(const RelayVerbOptions& options, const Context& context) {
  const auto loaded =
      context.configuration(options.no_apply ? Subscriptions::unused : Subscriptions::used);
  const RelayOptions relay_settings = relay_options(options, loaded);
  const Supervisor supervisor;
  Signals signals(kInterrupted);
  signals.end_at(1);
  log_start(loaded, relay_settings);
  std::jthread limit;  // joined after the relay is destroyed, which may hang
  const auto relay = must(Relay::create(relay_settings));
  // A relay that ends by itself may run beside one that listens at the same address.
  std::unique_ptr<http::Monitor> monitor;
  if (!options.once)
    monitor = start_monitor(loaded, [&relay] { return std::vector{relay->report()}; });
  start(options, loaded, *relay, signals, supervisor);
  std::unique_ptr<verify::VerifyJob> verification;
  if (loaded.config.verify && !options.once)
    verification = std::make_unique<verify::VerifyJob>(verify_options(loaded, relay_settings));
  supervisor.ready("delivering");
  if (options.once) {
    wait_until_delivered(loaded, relay_settings, *relay, signals);
  } else {
    supervisor.wait(signals, [&relay] { return metrics::lives({relay->report()}); });
  }
  supervisor.stopping();
  limit = limit_stop(loaded.config.grace);
  const int code = stop(*relay, loaded.config.grace);
  return options.once && signals.asked() ? kInterrupted : code;
}

}  // namespace

void add_relay(CLI::App& root, Context& context) {
  auto options = std::make_shared<RelayVerbOptions>();
  CLI::App& verb =
      add_verb(root, "relay", "Deliver events to the sinks of all subscriptions, until stopped",
               [options, &context] { return relay(*options, context); });
  add_option(verb, "--name", &options->name, "NAME", "Name of this relay in `outbox status`");
  add_option(verb, "--group", &options->groups, "NAME",
             "Deliver the subscriptions of this group only; can be given again");
  add_option(verb, "--no-apply", &options->no_apply, {},
             "Leave the subscriptions in the store as they are");
  add_option(verb, "--once", &options->once, {},
             "Deliver what is pending, then end; exit 1 when a subscription is stopped");
  add_option(verb, "--wait", &options->wait, {},
             "Keep trying while the store cannot be reached, instead of exit 5");
  add_footer(
      verb,
      "SIGTERM, SIGINT or SIGHUP stops it when what is in flight is delivered, at the latest after relay.grace (5 seconds\n"
      "more when the store does not answer): exit 0 when everything was, 4 when not, and with --once always 4. A second\n"
      "signal ends it at once. What was in flight is delivered again. It reads its configuration at start only.\n\n"
      "When it cannot start: exit 5 when the store cannot be used now (it is starting, the network is down) and the same\n"
      "command may succeed later; 1 when a person must change something; 2 for wrong usage.\n\n"
      "Settings ([relay] in the configuration; default; range):\n" +
          config::settings_help("relay") +
          "\nFor those who watch it ([http], [metrics] and [history]):\n" +
          config::settings_help("http") + config::settings_help("metrics") +
          config::settings_help("history"));
  add_example(verb, "outbox relay -c /etc/outbox/outbox.toml --wait");
  add_example(verb, "outbox relay --store sqlite:shop.db --once");
}

}  // namespace outbox::cli
