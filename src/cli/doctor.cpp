// outbox doctor: what a relay checks at its start, and the repair of an outbox that was restored into another database.
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "cli/exit.hpp"
#include "cli/held_back.hpp"
#include "cli/output.hpp"
#include "cli/table.hpp"
#include "cli/verbs.hpp"
#include "event/time_text.hpp"

namespace outbox::cli {
namespace {

struct Options {
  bool repair_lineage{false};
  bool apply{false};
  bool json{false};
};

/// A subscription that keeps history from being removed.
struct Held {
  std::string subscription;
  store::Hold hold;
};

std::vector<Held> all_held(const config::Loaded& loaded, store::Store& store) {
  std::vector<Held> all;
  const auto holds = held_back(store, loaded);
  for (const auto& row : must(must(store.catalog())->subscriptions())) {
    for (const auto& hold : holds) {
      if (hold.subscription == row.id) all.push_back({row.spec.name, hold});
    }
  }
  return all;
}

Json to_json(const std::vector<Held>& all, const config::Loaded& loaded) {
  Json json = Json::array();
  for (const auto& [subscription, hold] : all)
    json.push_back({{"subscription", subscription},
                    {"parts", hold.pieces},
                    {"bytes", hold.bytes},
                    {"since", event::time_text(hold.oldest_us)},
                    {"over_quota", is_over_quota(hold, loaded)}});
  return json;
}

/// A line for each that holds back more than relay.quota.
std::string over_quota(const std::vector<Held>& all, const config::Loaded& loaded) {
  std::string lines;
  for (const auto& [subscription, hold] : all) {
    if (!is_over_quota(hold, loaded)) continue;
    if (!lines.empty()) lines += '\n';
    lines += over_quota_text(subscription, hold, loaded);
  }
  return lines;
}

void print_sound(const std::vector<Held>& held) {
  print("the store can be used\n");
  for (const auto& [subscription, hold] : held)
    print(
        "subscription {} holds back history since {} that could be removed ({}); outbox prune shows it\n",
        plain(subscription), event::time_text(hold.oldest_us),
        format_size(static_cast<std::size_t>(hold.bytes)));
}

int check(const Options& options, const config::Loaded& loaded, store::Store& store) {
  const Status status = store.check();
  if (!status && status.error().remedy != Remedy::fix) must(status);  // not known
  const std::vector<Held> held = status ? all_held(loaded, store) : std::vector<Held>();
  const std::string problems = over_quota(held, loaded);
  if (options.json)
    print_json({{"ok", status.has_value() && problems.empty()},
                {"problem", status ? Json() : Json(status.error().message)},
                {"hint", status ? Json() : Json(status.error().hint)},
                {"held_back", to_json(held, loaded)}});
  if (!status) throw Failure(kCheckFailed, status.error().text());
  if (!options.json) print_sound(held);
  if (!problems.empty()) throw Failure(kCheckFailed, problems);
  return kOk;
}

void print_json_of(const store::LineageRepair& repair, bool applied) {
  Json pending = Json::array();
  for (const auto& [subscription, events] : repair.pending)
    pending.push_back({{"subscription", subscription}, {"events", events}});
  print_json({{"needed", repair.needed},
              {"applied", applied && repair.needed},
              {"restored", repair.restored},
              {"written_since", repair.fresh},
              {"pending", pending}});
}

int repair_lineage(const Options& options, store::Store& store) {
  const store::LineageRepair repair =
      must(options.apply ? store.repair_lineage() : store.plan_lineage_repair());
  if (options.json) {
    print_json_of(repair, options.apply);
    return kOk;
  }
  if (!repair.needed) {
    print("the outbox is of this database: there is nothing to repair\n");
    return kOk;
  }
  print("{} events were restored, {} were written since\n\n", repair.restored, repair.fresh);
  Table table({"SUBSCRIPTION", "PENDING OF THE RESTORED"});
  for (const auto& [subscription, events] : repair.pending)
    table.add({plain(subscription), std::to_string(events)});
  table.print();
  if (options.apply) {
    print("\nrepaired: relays deliver these first, then what was written since\n");
  } else {
    print(
        "\nnothing was changed (--apply repairs; writers wait meanwhile). What the original delivers after the dump is pending\n"
        "here, too: stop its relays before\n");
  }
  return kOk;
}

int doctor(const Options& options, const Context& context) {
  if (options.apply && !options.repair_lineage)
    throw Failure(kUsage, "--apply: of what?", "--repair-lineage --apply");
  const auto loaded = context.configuration(Subscriptions::unused);
  const auto store = Context::store(loaded);
  return options.repair_lineage ? repair_lineage(options, *store) : check(options, loaded, *store);
}

}  // namespace

void add_doctor(CLI::App& root, Context& context) {
  auto options = std::make_shared<Options>();
  CLI::App& verb =
      add_verb(root, "doctor", "Check what a relay relies on; repair a restored outbox",
               [options, &context] { return doctor(*options, context); });
  add_option(verb, "--repair-lineage", &options->repair_lineage, {},
             "After a dump and restore: show what is pending in the copy, and let it be delivered");
  add_option(verb, "--apply", &options->apply, {},
             "Do it; without it only shows what would be done");
  add_option(verb, "--json", &options->json, {}, "As JSON");
  add_footer(
      verb,
      "Without an option: reachable, primary, schema, transaction ids of this database, sequence, indexes; exit 3 if a\n"
      "relay would refuse to start. The repair needs the rights of the schema's owner.");
  add_example(verb, "outbox doctor --repair-lineage");
}

}  // namespace outbox::cli
