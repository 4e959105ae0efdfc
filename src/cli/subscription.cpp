// outbox subscription: lists, applies, pauses and resumes subscriptions.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.hpp"
#include "cli/exit.hpp"
#include "cli/json.hpp"
#include "cli/output.hpp"
#include "cli/subscription_diff.hpp"
#include "cli/table.hpp"
#include "cli/verbs.hpp"
#include "config/reading.hpp"
#include "config/settings.hpp"
#include "config/subscriptions.hpp"

namespace outbox::cli {
namespace {

using Kind = SubscriptionChange::Kind;

struct Options {
  std::string name;
  std::string reason{"paused by hand"};
  bool dry_run{false};
  bool json{false};
};

/// The subscriptions of a store, with what keeps them reachable.
struct Open {
  explicit Open(const config::Loaded& loaded)
      : store(Context::checked_store(loaded)),
        catalog(must(store->catalog())),
        rows(must(catalog->subscriptions())) {}

  std::unique_ptr<store::Store> store;
  std::unique_ptr<store::Catalog> catalog;
  std::vector<store::SubscriptionRow> rows;
};

std::string globs(const std::vector<std::string>& list) {
  std::string text;
  for (const auto& glob : list) text.append(text.empty() ? "" : ",").append(glob);
  return text.empty() ? "all" : text;
}

void put(Json& json, const store::SubscriptionRow& row) {
  SubscriptionSpec spec = row.spec;
  json.object().member("name", spec.name).member("state", store::to_string(row.state));
  json.member_or_null("reason", row.reason).member("config_version", row.config_version);
  for (const auto& [setting, slot] : config::subscription_settings()) {
    if (setting.path == "start") continue;  // Said once, when it was created.
    json.key(setting.path)
        .literal(config::presentable(setting, slot(spec), slot(spec), config::Notation::json));
  }
  json.key("sink_settings").object();
  for (const auto& [name, value] : spec.sink_settings)
    json.member(name, config::show_sink_setting(name, value));
  json.end().end();
}

int list(const Options& options, const Context& context) {
  const auto loaded = context.configuration(Subscriptions::unused);
  Open open(loaded);
  // The store does not know what came from a reference; the configuration, when it is at hand, does.
  for (auto& row : open.rows) {
    const auto* const written = find(loaded.config.relay.subscriptions, row.spec.name);
    if (written != nullptr) row.spec = config::without_references(row.spec, *written);
  }
  if (options.json) {
    Json json;
    json.object().key("subscriptions").array();
    for (const auto& row : open.rows) put(json, row);
    json.end().end().print();
    return kOk;
  }
  if (open.rows.empty()) {
    print("no subscriptions (hint: outbox subscription apply -c outbox.toml)\n");
    return kOk;
  }
  Table table({"SUBSCRIPTION", "STATE", "SINK", "FORMAT", "EVENT TYPES", "TOPIC"});
  for (const auto& row : open.rows) {
    const SubscriptionSpec& spec = row.spec;
    table.add({spec.name, store::to_string(row.state), spec.sink, spec.format,
               globs(spec.event_types), spec.topic});
  }
  table.print();
  return kOk;
}

void show(const SubscriptionChange& change) {
  switch (change.kind) {
    case Kind::created: print("+ {} created\n", change.name); return;
    case Kind::unchanged: print("= {} unchanged\n", change.name); return;
    case Kind::left_alone: print("  {} is only in the store, left alone\n", change.name); return;
    case Kind::changed: break;
  }
  for (const auto& [field, before, after] : change.fields) {
    print("~ {} changed {}: {} -> {}\n", change.name, field, before, after);
  }
}

void put(Json& json, const SubscriptionChange& change) {
  json.object()
      .member("name", change.name)
      .member("action", to_string(change.kind))
      .key("changes")
      .array();
  for (const auto& [field, before, after] : change.fields) {
    json.object().member("field", field).member("before", before).member("after", after).end();
  }
  json.end().end();
}

void show(const Options& options, const std::vector<SubscriptionChange>& changes) {
  if (!options.json) {
    for (const auto& change : changes) show(change);
    if (options.dry_run) print("dry run: nothing was written\n");
    return;
  }
  Json json;
  json.object().member("dry_run", options.dry_run).key("subscriptions").array();
  for (const auto& change : changes) put(json, change);
  json.end().end().print();
}

int apply(const Options& options, const Context& context) {
  const auto loaded = context.configuration(Subscriptions::used);
  const auto& wanted = loaded.config.relay.subscriptions;
  if (wanted.empty()) {
    throw Failure(kUsage,
                  "no subscriptions: " +
                      (loaded.file.empty() ? std::string("no configuration file") : loaded.file) +
                      " (hint: -c FILE with a [subscription.NAME] section)");
  }
  const Open open(loaded);
  const auto written = context.configuration(Subscriptions::unused);
  const auto changes = compare(open.rows, wanted, written.config.relay.subscriptions);
  show(options, changes);
  (void)flush_out();
  if (options.dry_run) return kOk;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (changes[i].kind != Kind::unchanged) (void)must(open.catalog->apply(wanted[i]));
  }
  return kOk;
}

/// The name must be known; a slip of the keyboard must not look like success.
void require(const Open& open, const std::string& name) {
  std::vector<std::string_view> known;
  for (const auto& row : open.rows) known.emplace_back(row.spec.name);
  if (std::find(known.begin(), known.end(), name) != known.end()) return;
  throw Failure(kError,
                "unknown subscription: " + name + " (hint: " +
                    did_you_mean(name, known, "`outbox subscription list` shows what there is") +
                    ")");
}

int pause(const Options& options, const Context& context) {
  const Open open(context.configuration(Subscriptions::unused));
  require(open, options.name);
  must(open.catalog->pause(options.name, options.reason));
  for (const auto& row : must(open.catalog->subscriptions())) {
    if (row.spec.name != options.name) continue;
    const bool stopped = row.state == store::SubscriptionState::stopped;
    print("{} {}: {}\n", row.spec.name, stopped ? "stays stopped" : store::to_string(row.state),
          plain(row.reason));
  }
  return kOk;
}

int resume(const Options& options, const Context& context) {
  const Open open(context.configuration(Subscriptions::unused));
  require(open, options.name);
  must(open.catalog->resume(options.name));
  print("{} resumed\n", options.name);
  return kOk;
}

}  // namespace

void add_subscription(Command& root, Context& context) {
  auto options = std::make_shared<Options>();
  Command verb = root.verb("subscription", "List, apply, pause or resume subscriptions");
  verb.example("outbox subscription list");
  Command listing = verb.verb("list", "Show the subscriptions of the store");
  listing.option("--json", &options->json, {}, "As JSON, with all settings but passwords");
  listing.example("outbox subscription list --json");
  listing.run([options, &context] { return list(*options, context); });
  Command applying =
      verb.verb("apply", "Write those of the configuration to the store, showing what changes");
  applying.option("--dry-run", &options->dry_run, {}, "Only show what would change");
  applying.option("--json", &options->json, {}, "As JSON");
  applying.footer(
      "Running relays follow within a second. Subscriptions that the configuration does not name stay.");
  applying.example("outbox subscription apply -c outbox.toml --dry-run");
  applying.run([options, &context] { return apply(*options, context); });
  Command pausing =
      verb.verb("pause", "Stop delivering to one; its events wait. A stopped one stays stopped");
  pausing.argument("NAME", &options->name, "Which one");
  pausing.option("--reason", &options->reason, "TEXT", "Shown in `outbox status`");
  pausing.example("outbox subscription pause orders --reason \"Kafka maintenance\"");
  pausing.run([options, &context] { return pause(*options, context); });
  Command resuming =
      verb.verb("resume", "Go on with one that is paused or stopped; nothing is skipped");
  resuming.argument("NAME", &options->name, "Which one");
  resuming.example("outbox subscription resume orders");
  resuming.run([options, &context] { return resume(*options, context); });
}

}  // namespace outbox::cli
