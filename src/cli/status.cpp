// outbox status: what every subscription and relay is doing.
#include <algorithm>
#include <chrono>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/outage.hpp"
#include "base/units.hpp"
#include "cli/exit.hpp"
#include "cli/health.hpp"
#include "cli/output.hpp"
#include "cli/table.hpp"
#include "cli/verbs.hpp"
#include "store/url.hpp"

namespace outbox::cli {
namespace {

/// More events than any log holds; not the maximum, because the stores count one more than the limit.
constexpr std::uint64_t kLargestLimit = std::numeric_limits<std::int64_t>::max() - 1;

struct Options {
  std::uint64_t limit{100'000};
  bool json{false};
  bool check{false};
  std::optional<std::string> max_lag;
};

using Line = Health::Line;

struct View {
  std::string store;
  Health health;
  std::vector<std::string> problems;
};

/// None without --check.
std::optional<std::chrono::milliseconds> max_lag(const Options& options) {
  if (!options.check && options.max_lag)
    throw Failure(kUsage, "--max-lag: nothing is checked (hint: --check --max-lag 60s)");
  if (!options.check) return std::nullopt;
  const auto limit = parse_duration(options.max_lag.value_or("60s"));
  if (!limit) {
    throw Failure(kUsage, "--max-lag " + *options.max_lag +
                              ": is not a duration (hint: " + limit.error().hint + ")");
  }
  return std::chrono::duration_cast<std::chrono::milliseconds>(*limit);
}

View look(const Options& options, const config::Loaded& loaded) {
  const auto store = Context::checked_store(loaded);
  const auto catalog = must(store->catalog());
  View view{.store = store::shown_url(loaded.config.relay.store_url), .health = {}, .problems = {}};
  const auto limit = std::min(options.limit, kLargestLimit);
  for (auto& row : must(catalog->subscriptions())) {
    auto progress = must(catalog->progress(row, static_cast<std::int64_t>(limit)));
    must(catalog->add_totals(progress));
    view.health.subscriptions.push_back({.row = std::move(row), .progress = std::move(progress)});
  }
  view.health.relays = must(catalog->relays());
  view.problems = view.health.problems(max_lag(options));
  return view;
}

std::string or_dash(const std::string& text) { return text.empty() ? "-" : text; }

std::string pending_text(const store::SubscriptionProgress& progress) {
  return std::to_string(progress.pending) + (progress.pending_capped ? "+" : "");
}

void add_notes(Table& table, const Health& health, const Line& line) {
  const auto& [row, progress] = line;
  if (!row.reason.empty()) table.note("  reason: " + row.reason);
  if (const std::string trouble = Health::trouble_of(row); !trouble.empty()) {
    const char* const since =
        health.has_owner() ? "  waiting since " : "  the last relay was waiting since ";
    table.note(since + row.trouble_since + ": " + trouble);
  }
  if (row.stopped_seq) {
    table.note("  stopped at event " + row.stopped_event + " (seq " +
               std::to_string(*row.stopped_seq) + "); outbox subscription resume " + row.spec.name +
               " tries again");
  }
  if (progress.matches_nothing()) {
    table.note("  its filter has matched none of " + std::to_string(progress.filtered) +
               " events; compare it with what the application writes: outbox subscription list");
  }
}

void print_subscriptions(const Health& health) {
  if (health.subscriptions.empty()) return;
  Table table(
      {"SUBSCRIPTION", "STATE", "SINK", "PENDING", "LAG", "DELIVERED", "FILTERED", "LAST SETTLED"});
  for (const Line& line : health.subscriptions) {
    const auto& [row, progress] = line;
    table.add({row.spec.name, store::to_string(row.state), row.spec.sink, pending_text(progress),
               progress.pending == 0 ? "-" : age_text(progress.lag), std::to_string(progress.acked),
               std::to_string(progress.filtered), or_dash(progress.last_settled_at)});
    add_notes(table, health, line);
  }
  table.print();
  print("\n");
}

const char* role_of(const store::RelayRow& relay) {
  if (!relay.alive) return "gone";
  return relay.owner ? "delivers" : "waits";
}

void print_relays(const Health& health) {
  if (health.relays.empty()) return;
  Table table({"RELAY", "ROLE", "ALIVE", "GENERATION", "HEARTBEAT"});
  for (const auto& relay : health.relays) {
    table.add({relay.name, role_of(relay), relay.alive ? "yes" : "no",
               std::to_string(relay.generation), or_dash(relay.heartbeat_at)});
  }
  table.print();
  print("\n");
}

void print_text(const View& view, bool check) {
  print("store {}\n\n", view.store);
  print_subscriptions(view.health);
  print_relays(view.health);
  if (check) return;  // a failed check reports them on stderr
  for (const std::string& problem : view.problems) print("PROBLEM: {}\n", problem);
}

Json to_json(const Health& health, const Line& line) {
  const auto& [row, progress] = line;
  const std::string trouble = health.has_owner() ? Health::trouble_of(row) : std::string();
  Json stopped;
  if (row.stopped_seq) stopped = {{"id", row.stopped_event}, {"seq", *row.stopped_seq}};
  Json lag;
  if (progress.pending > 0) lag = in_seconds(progress.lag);
  return {{"name", row.spec.name},
          {"state", store::to_string(row.state)},
          {"reason", or_null(row.reason)},
          {"trouble", or_null(trouble)},
          {"trouble_since", trouble.empty() ? Json() : Json(row.trouble_since)},
          {"sink", row.spec.sink},
          {"stopped_event", stopped},
          {"pending", progress.pending},
          {"pending_is_more", progress.pending_capped},
          {"delivered", progress.acked},
          {"filtered", progress.filtered},
          {"generation", progress.generation},
          {"config_version", row.config_version},
          {"last_settled_at", or_null(progress.last_settled_at)},
          {"oldest_pending_at", or_null(progress.oldest_pending_at)},
          {"lag_seconds", lag},
          {"matches_nothing", progress.matches_nothing()}};
}

Json to_json(const store::RelayRow& relay) {
  return {{"id", relay.id},
          {"name", relay.name},
          {"owner", relay.owner},
          {"alive", relay.alive},
          {"generation", relay.generation},
          {"heartbeat_at", or_null(relay.heartbeat_at)}};
}

void print_json(const View& view) {
  Json subscriptions = Json::array();
  for (const auto& line : view.health.subscriptions)
    subscriptions.push_back(to_json(view.health, line));
  Json relays = Json::array();
  for (const auto& relay : view.health.relays) relays.push_back(to_json(relay));
  cli::print_json({{"store", view.store},
                   {"subscriptions", subscriptions},
                   {"relays", relays},
                   {"problems", view.problems}});
}

int status(const Options& options, const Context& context) {
  if (options.limit == 0)
    throw Failure(kUsage, "--limit 0: nothing would be counted (hint: 1 or more)");
  (void)max_lag(options);
  const View view = look(options, context.configuration(Subscriptions::unused));
  if (options.json) {
    print_json(view);
  } else {
    print_text(view, options.check);
  }
  if (options.check && !view.problems.empty()) throw Failure(kCheckFailed, view.problems);
  return kOk;
}

}  // namespace

void add_status(CLI::App& root, Context& context) {
  auto options = std::make_shared<Options>();
  CLI::App& verb = add_verb(root, "status", "Show what every subscription and relay is doing",
                            [options, &context] { return status(*options, context); });
  add_option(verb, "--limit", &options->limit, "N",
             "Count at most so many pending events per subscription");
  add_option(verb, "--check", &options->check, {},
             "Exit with 3 when no relay delivers, a subscription is stopped, or one lags");
  add_option(verb, "--max-lag", &options->max_lag, "DURATION",
             "With --check: how old the oldest pending event may be; 60s without it");
  add_option(verb, "--json", &options->json, {}, "As JSON");
  add_example(verb, "outbox status -c outbox.toml");
}

}  // namespace outbox::cli
