// outbox relay: delivers, until it is told to stop. A thin shell around outbox::Relay.
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <outbox/relay.hpp>
#include <string>
#include <thread>

#include "base/log.hpp"
#include "base/thread.hpp"
#include "cli/exit.hpp"
#include "cli/signals.hpp"
#include "cli/verbs.hpp"
#include "config/settings_page.hpp"
#include "config/units.hpp"
#include "store/url.hpp"

namespace outbox::cli {
namespace {

struct Options {
  std::optional<std::string> name;
  bool no_apply{false};
};

RelayOptions relay_options(const Options& options, const config::Loaded& loaded) {
  (void)Context::store_options(loaded);
  RelayOptions relay = loaded.config.relay;
  if (options.name) relay.name = *options.name;
  if (options.no_apply) relay.subscriptions.clear();
  return relay;
}

void log_start(const config::Loaded& loaded, const RelayOptions& relay) {
  for (const auto& warning : loaded.warnings) {
    log::warn("the configuration is doubtful", {{"reason", warning}});
  }
  log::info("starting", {{"version", OUTBOX_VERSION},
                         {"store", store::shown_url(relay.store_url)},
                         {"config", loaded.file.empty() ? "none" : loaded.file},
                         {"subscriptions", relay.subscriptions.size()}});
}

/// What will not be delivered, which nothing else would say.
void warn_of_standing(const config::Loaded& loaded, bool none_given) {
  const auto store = Context::checked_store(loaded);
  const auto rows = must(must(store->catalog())->subscriptions());
  if (rows.empty() && none_given) {
    log::warn("there are no subscriptions: nothing is delivered",
              {{"hint", "-c FILE with a [subscription.NAME] section"}});
  }
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

/// Ends the process when a stop takes longer than it may: a database that hangs must not hold up whoever waits for us.
class StopLimit {
 public:
  StopLimit() = default;
  StopLimit(const StopLimit&) = delete;
  StopLimit& operator=(const StopLimit&) = delete;
  StopLimit(StopLimit&&) = delete;
  StopLimit& operator=(StopLimit&&) = delete;
  ~StopLimit() = default;

  void begin(std::chrono::milliseconds grace) {
    thread_ = start_thread("ob-stop-limit", [this, grace](const std::stop_token& over) {
      std::unique_lock lock(mutex_);
      if (wait_.wait_for(lock, over, grace + kBeyondGrace, [&] { return over.stop_requested(); }))
        return;
      log::error(
          "the store or a sink does not answer, so this ends without waiting for it; "
          "what was in flight will be delivered again",
          {{"grace", config::format_duration(grace)}});
      std::_Exit(kInterrupted);
    });
  }

 private:
  /// For saying goodbye to the store.
  static constexpr std::chrono::seconds kBeyondGrace{5};

  std::mutex mutex_;
  std::condition_variable_any wait_;
  std::jthread thread_;
};

int stop(Relay& relay, std::chrono::milliseconds grace) {
  log::info("stopping, a second signal ends it at once",
            {{"grace", config::format_duration(grace)}});
  const StopReport report = relay.stop(grace);
  if (report.drained) {
    log::info("stopped, nothing is in flight, and all that was delivered is settled");
    return kOk;
  }
  log::warn("stopped before everything in flight was settled, that will be delivered again",
            {{"abandoned", report.abandoned}});
  return kInterrupted;
}

int relay(const Options& options, const Context& context) {
  const auto loaded =
      context.configuration(options.no_apply ? Subscriptions::unused : Subscriptions::used);
  const RelayOptions relay_settings = relay_options(options, loaded);
  Signals signals;
  signals.first_ends(true);
  log_start(loaded, relay_settings);
  warn_of_standing(loaded, relay_settings.subscriptions.empty());
  StopLimit limit;  // ends after the relay, whose end may hang, too
  const auto relay = must(Relay::create(relay_settings));
  signals.first_ends(false);  // what start() starts may have events in flight before it returns
  must(relay->start());
  signals.wait();
  limit.begin(loaded.config.grace);
  return stop(*relay, loaded.config.grace);
}

}  // namespace

void add_relay(Command& root, Context& context) {
  auto options = std::make_shared<Options>();
  Command verb =
      root.verb("relay", "Deliver events to the sinks of all subscriptions, until stopped");
  verb.option("--name", &options->name, "NAME", "How this relay calls itself in `outbox status`");
  verb.option("--no-apply", &options->no_apply, {},
              "Leave the subscriptions in the store as they are");
  verb.footer(
      "SIGTERM or SIGINT stops it when what is in flight is delivered, at the latest after relay.grace (5 seconds more\n"
      "when the store does not answer): exit 0 when\n"
      "everything was, 4 when not. A second signal ends it at once. What was in flight is delivered again.\n\n"
      "Settings ([relay] in the configuration; default; range):\n" +
      config::settings_help("relay"));
  verb.run([options, &context] { return relay(*options, context); });
}

}  // namespace outbox::cli
