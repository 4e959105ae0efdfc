// outbox sinks: connects to the destination of each subscription in the configuration, and says
// what can be relied on there.
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/exit.hpp"
#include "cli/output.hpp"
#include "cli/verbs.hpp"
#include "sink/registry.hpp"

namespace outbox::cli {
namespace {

struct SinksOptions {
  std::vector<std::string> names;
  bool strict{false};
  bool json{false};
};

/// One subscription and what was found, or why nothing was.
struct Found {
  const SubscriptionSpec* spec{nullptr};
  std::optional<sink::Inspection> inspection{};
  std::optional<Error> error{};
};

std::vector<const SubscriptionSpec*> chosen(const SinksOptions& options,
                                            const std::vector<SubscriptionSpec>& all) {
  std::vector<const SubscriptionSpec*> found;
  for (const SubscriptionSpec& one : all) {
    if (options.names.empty()) found.push_back(&one);
  }
  for (const std::string& name : options.names) {
    const auto named = std::find_if(all.begin(), all.end(),
                                    [&](const SubscriptionSpec& one) { return one.name == name; });
    if (named == all.end())
      throw Failure(kUsage, "the configuration has no subscription " + plain(name),
                    "outbox config show lists them");
    found.push_back(&*named);
  }
  return found;
}

Found look_at(const SubscriptionSpec& spec) {
  Found found{.spec = &spec};
  auto inspection = sink::inspect(spec);
  if (inspection) {
    found.inspection = std::move(*inspection);
  } else {
    found.error = std::move(inspection.error());
  }
  return found;
}

Json to_json(const Found& found) {
  Json json{{"subscription", found.spec->name}, {"sink", found.spec->sink}};
  if (found.error) {
    json["error"] = found.error->text();
    return json;
  }
  json["destination"] = found.inspection->destination;
  json["guarantee"] = {{"acked_when", found.inspection->acked},
                       {"twice", found.inspection->duplicates},
                       {"in_order", found.inspection->order}};
  json["weaknesses"] = Json::array();
  for (const sink::Weakness& one : found.inspection->weaknesses)
    json["weaknesses"].push_back(
        {{"setting", one.setting}, {"consequence", one.consequence}, {"hint", or_null(one.hint)}});
  return json;
}

void print_found(const Found& found) {
  print("{}: {}", plain(found.spec->name), plain(found.spec->sink));
  if (found.error) return print("\n  error: {}\n", plain(found.error->text()));
  print(" to {}\n  {}\n", plain(found.inspection->destination),
        plain(sink::guarantee_line(*found.inspection)));
  for (const sink::Weakness& one : found.inspection->weaknesses) {
    print("  weak: {}: {}", plain(one.setting), plain(one.consequence));
    if (!one.hint.empty()) print(" (hint: {})", plain(one.hint));
    print("\n");
  }
}

/// An unreachable destination may be back soon (5); one that is wrongly configured will not be (1).
int choose_exit_code(const SinksOptions& options, const std::vector<Found>& all) {
  int code = kOk;
  for (const Found& one : all) {
    if (one.error && code != kError) code = exit_code(*one.error);
    const bool weak = one.inspection && !one.inspection->weaknesses.empty();
    if (options.strict && weak && code == kOk) code = kCheckFailed;
  }
  return code;
}

int sinks(const SinksOptions& options, const Context& context) {
  const auto loaded = context.configuration(Subscriptions::used);
  std::vector<Found> all;
  for (const SubscriptionSpec* const spec : chosen(options, loaded.config.relay.subscriptions)) {
    all.push_back(look_at(*spec));
    if (!options.json) print_found(all.back());
  }
  if (options.json) {
    Json json = Json::array();
    for (const Found& one : all) json.push_back(to_json(one));
    print_json(json);
  } else if (all.empty()) {
    print("the configuration has no subscriptions\n");
  }
  return choose_exit_code(options, all);
}

}  // namespace

void add_sinks(CLI::App& root, Context& context) {
  auto options = std::make_shared<SinksOptions>();
  CLI::App& verb = add_verb(root, "sinks", "Connect to each destination and say what it promises",
                            [options, &context] { return sinks(*options, context); });
  add_argument(verb, "SUBSCRIPTION", &options->names, "Only these");
  add_option(verb, "--strict", &options->strict, {}, "Exit 3 if one has a weakness");
  add_option(verb, "--json", &options->json, {}, "As JSON");
  add_footer(
      verb,
      "Sends no event and needs no store. What a destination does not say of itself, or this user may not ask, is not\n"
      "checked. Exit 1 or 5 if one cannot be used: 5 if it may be back soon.");
  add_example(verb, "outbox sinks --strict");
}

}  // namespace outbox::cli
