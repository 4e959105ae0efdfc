// outbox subscription: lists, applies, pauses and resumes subscriptions. The other subverbs are in
// subscription_changes.cpp.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.hpp"
#include "base/setting.hpp"
#include "base/text.hpp"
#include "cli/acting.hpp"
#include "cli/exit.hpp"
#include "cli/output.hpp"
#include "cli/table.hpp"
#include "cli/verbs.hpp"
#include "config/settings.hpp"
#include "config/subscriptions.hpp"
#include "store/subscriptions.hpp"
#include "subscription/spec.hpp"

namespace outbox::cli {
namespace {

struct SubscriptionOptions {
  std::string name;
  std::string reason{"paused by hand"};
  bool dry_run{false};
  bool json{false};
};

/// The subscriptions of a store.
struct OpenSubscriptions {
  explicit OpenSubscriptions(const config::Loaded& loaded, Decided decided = {})
      : store(Context::checked_store(loaded, std::move(decided))),
        catalog(must(store->catalog())),
        rows(must(catalog->subscriptions())) {}

  std::unique_ptr<store::Store> store;
  std::unique_ptr<store::Catalog> catalog;
  std::vector<store::SubscriptionRow> rows;

  [[nodiscard]] const store::SubscriptionRow* find(const std::string& name) const {
    const auto found = std::find_if(rows.begin(), rows.end(),
                                    [&](const auto& row) { return row.spec.name == name; });
    return found == rows.end() ? nullptr : &*found;
  }
};

/// The subscription without passwords, and without values that come from a reference in the
/// configuration at hand.
Json to_json(const store::SubscriptionRow& row, const config::Loaded& loaded) {
  SubscriptionSpec spec = row.spec;
  const auto shown = [&](const std::string& setting, const Json& value) {
    return config::shown_value(loaded, spec.name, setting, value);
  };
  Json json{{"name", spec.name},
            {"state", store::to_string(row.state)},
            {"reason", or_null(row.reason)},
            {"config_version", row.config_version}};
  for (const auto& [setting, slot] : config::subscription_settings()) {
    if (setting.name == "start") continue;  // matters only when a subscription is created
    Json value = to_json(setting, slot(spec));
    if (value.is_object()) {
      for (const auto& [name, item] : value.items()) item = shown(setting.name + "." + name, item);
      json[setting.name] = value;
    } else {
      json[setting.name] = shown(setting.name, value);
    }
  }
  json["sink_settings"] = Json::object();
  for (const auto& [name, value] : spec.sink_settings)
    json["sink_settings"][name] = shown(spec.sink + "." + name, value);
  return json;
}

std::string globs(const Json& list) {
  std::string text;
  for (const auto& glob : list)
    text.append(text.empty() ? "" : ",").append(glob.get<std::string>());
  return text.empty() ? "all" : text;
}

int list(const SubscriptionOptions& options, const Context& context) {
  const auto loaded = context.store_and_more();
  const OpenSubscriptions open(loaded);
  Json all = Json::array();
  for (const auto& row : open.rows) all.push_back(to_json(row, loaded));
  if (options.json) {
    print_json({{"subscriptions", all}});
    return kOk;
  }
  if (all.empty()) {
    print("no subscriptions (hint: outbox subscription apply -c outbox.toml)\n");
    return kOk;
  }
  Table table({"SUBSCRIPTION", "STATE", "SINK", "FORMAT", "EVENT TYPES", "TOPIC"});
  for (const Json& one : all)
    table.add({one["name"], one["state"], one["sink"], one["format"], globs(one["event_types"]),
               one["topic"]});
  table.print();
  return kOk;
}

/// What applying the configuration does to one subscription.
struct Change {
  std::string name;
  std::string action;  ///< "created", "changed", "unchanged", "left alone", "renamed"
  std::vector<subscription::SettingDifference> differences{};
  std::string now{};  ///< The name that a renamed subscription has.
  bool from_now_on{false};
};

Change find_change(const SubscriptionSpec& wanted, const OpenSubscriptions& open,
                   const config::Loaded& loaded) {
  const store::SubscriptionRow* const row = open.find(wanted.name);
  if (row == nullptr)
    return {.name = wanted.name, .action = "created", .from_now_on = wanted.start == Start::now};
  const auto show = [&](const std::string& setting, const std::string& value) {
    return toml_text(config::shown_value(loaded, wanted.name, setting, parse_json<Json>(value)));
  };
  auto differences = subscription::differences(row->spec, wanted, show);
  const char* const action = differences.empty() ? "unchanged" : "changed";
  return {.name = wanted.name, .action = action, .differences = std::move(differences)};
}

/// The changes of the subscriptions of the configuration, in its order, then those of subscriptions
/// that only the store has.
std::vector<Change> changes(const OpenSubscriptions& open, const config::Loaded& loaded) {
  std::vector<Change> all;
  for (const auto& spec : loaded.config.relay.subscriptions)
    all.push_back(find_change(spec, open, loaded));
  const std::size_t wanted = all.size();
  for (const auto& row : open.rows) {
    const bool named = std::any_of(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(wanted),
                                   [&](const Change& one) { return one.name == row.spec.name; });
    if (!named) all.push_back({.name = row.spec.name, .action = "left alone"});
  }
  return all;
}

/// Marks new subscriptions with a name that another one had before: they would deliver everything
/// again.
void note_renamed(std::vector<Change>& all, const config::Loaded& loaded) {
  const auto names =
      must(must(store::open_subscription_changes(Context::store_options(loaded)))->former_names());
  for (Change& change : all) {
    if (change.action != "created") continue;
    const auto former = std::find_if(names.begin(), names.end(),
                                     [&](const auto& name) { return name.name == change.name; });
    if (former == names.end()) continue;
    change.action = "renamed";
    change.now = former->subscription;
  }
}

void refuse_renamed(const std::vector<Change>& all) {
  for (const Change& change : all) {
    if (change.action != "renamed") continue;
    throw Failure(
        kError,
        "subscription " + change.name + " was renamed to " + change.now + ": nothing was written",
        "name it [subscription." + change.now +
            "] in the configuration; or, for a second one that delivers everything "
            "again: outbox subscription create " +
            change.name);
  }
}

void show(const Change& change) {
  if (change.action == "created")
    print("+ {} created{}\n", change.name, change.from_now_on ? ", gets events from now on" : "");
  if (change.action == "renamed") print("! {} is now {}\n", change.name, change.now);
  if (change.action == "unchanged") print("= {} unchanged\n", change.name);
  if (change.action == "left alone") print("  {} is only in the store, left alone\n", change.name);
  for (const auto& [setting, before, after] : change.differences)
    print("~ {} changed {}: {} -> {}\n", change.name, setting, before, after);
}

void print_json_changes(const SubscriptionOptions& options, const std::vector<Change>& all) {
  Json list = Json::array();
  for (const Change& change : all) {
    Json fields = Json::array();
    for (const auto& [setting, before, after] : change.differences)
      fields.push_back({{"field", setting}, {"before", before}, {"after", after}});
    list.push_back({{"name", change.name}, {"action", change.action}, {"changes", fields}});
    if (!change.now.empty()) list.back()["renamed_to"] = change.now;
  }
  print_json({{"dry_run", options.dry_run}, {"subscriptions", list}});
}

/// Shows what would be done. Nothing is done if it is a dry run, or if one of them was renamed.
void show_plan(const SubscriptionOptions& options, const std::vector<Change>& all) {
  if (options.json) return print_json_changes(options, all);
  for (const Change& change : all) {
    if (options.dry_run || change.action == "renamed") show(change);
  }
  if (options.dry_run) print("dry run: nothing was written\n");
}

/// Writes the subscriptions that are new or changed. What is shown of one was written before, also
/// if a later one fails; JSON is one text, which is printed only if all were written.
void write_changes(const SubscriptionOptions& options, const std::vector<Change>& all,
                   const std::vector<SubscriptionSpec>& wanted, store::Catalog& catalog) {
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i < wanted.size() && all[i].action != "unchanged") (void)must(catalog.apply(wanted[i]));
    if (!options.json) show(all[i]);
  }
  if (options.json) print_json_changes(options, all);
}

int apply(const SubscriptionOptions& options, const Context& context) {
  const auto loaded = context.configuration(Subscriptions::used);
  const auto& wanted = loaded.config.relay.subscriptions;
  if (wanted.empty()) {
    const std::string file = loaded.file.empty() ? "no configuration file" : loaded.file;
    throw Failure(kUsage, "no subscriptions: " + file,
                  "-c FILE with a [subscription.NAME] section");
  }
  const OpenSubscriptions open(loaded, acting("subscription apply", {{"file", loaded.file}}));
  auto planned = changes(open, loaded);
  note_renamed(planned, loaded);
  const bool renamed = std::any_of(planned.begin(), planned.end(),
                                   [](const Change& change) { return change.action == "renamed"; });
  if (options.dry_run || renamed) {
    show_plan(options, planned);
    (void)flush_out();
    refuse_renamed(planned);
    return kOk;
  }
  write_changes(options, planned, wanted, *open.catalog);
  return kOk;
}

/// Refuses an unknown name: a typing error must not look like success.
void require(const OpenSubscriptions& open, const std::string& name) {
  if (open.find(name) != nullptr) return;
  std::vector<std::string_view> known;
  for (const auto& row : open.rows) known.emplace_back(row.spec.name);
  throw Failure(kError, "unknown subscription: " + name,
                did_you_mean(name, known, "`outbox subscription list` shows them"));
}

int pause(const SubscriptionOptions& options, const Context& context) {
  const OpenSubscriptions open(context.store_configuration(),
                               acting("subscription pause", Json::object(), options.reason));
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

int resume(const SubscriptionOptions& options, const Context& context) {
  const OpenSubscriptions open(context.store_configuration(),
                               acting("subscription resume", Json::object()));
  require(open, options.name);
  must(open.catalog->resume(options.name));
  print("{} resumed\n", options.name);
  return kOk;
}

}  // namespace

void add_subscription(CLI::App& root, Context& context) {
  auto options = std::make_shared<SubscriptionOptions>();
  CLI::App& verb = add_verb(root, "subscription",
                            "List, create, change, pause, rename, reset or drop subscriptions");
  add_example(verb, "outbox subscription list");
  CLI::App& listing = add_verb(verb, "list", "Show the subscriptions of the store",
                               [options, &context] { return list(*options, context); });
  add_option(listing, "--json", &options->json, {}, "As JSON, with all settings but passwords");
  add_example(listing, "outbox subscription list --json");
  CLI::App& applying =
      add_verb(verb, "apply",
               "Write the subscriptions of the configuration to the store, showing what changes",
               [options, &context] { return apply(*options, context); });
  add_option(applying, "--dry-run", &options->dry_run, {}, "Only show what would change");
  add_option(applying, "--json", &options->json, {}, "As JSON");
  add_footer(
      applying,
      "Running relays follow within a second. Subscriptions that the configuration does not name are kept.");
  add_example(applying, "outbox subscription apply -c outbox.toml --dry-run");
  CLI::App& pausing =
      add_verb(verb, "pause", "Pause one; its events wait. A stopped one stays stopped",
               [options, &context] { return pause(*options, context); });
  add_argument(pausing, "NAME", &options->name, "Which one");
  add_option(pausing, "--reason", &options->reason, "TEXT", "Shown in `outbox status`");
  add_example(pausing, "outbox subscription pause orders --reason \"Kafka maintenance\"");
  CLI::App& resuming =
      add_verb(verb, "resume", "Continue one that is paused or stopped; nothing is skipped",
               [options, &context] { return resume(*options, context); });
  add_argument(resuming, "NAME", &options->name, "Which one");
  add_example(resuming, "outbox subscription resume orders");
  add_subscription_changes(verb, context);
}

}  // namespace outbox::cli
