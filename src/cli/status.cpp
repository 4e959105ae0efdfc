// outbox status: what every subscription and relay is doing. outbox top: the same on a screen, with
// how fast they do it.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/count.hpp"
#include "base/json.hpp"
#include "base/outage.hpp"
#include "base/units.hpp"
#include "cli/exit.hpp"
#include "cli/output.hpp"
#include "cli/status_parts.hpp"
#include "cli/table.hpp"
#include "cli/terminal.hpp"
#include "cli/verbs.hpp"
#include "cli/watch.hpp"
#include "event/task_queue.hpp"
#include "event/time_text.hpp"
#include "health/health.hpp"
#include "store/ownership.hpp"
#include "store/url.hpp"

namespace outbox::cli {
namespace {

/// More events than any log holds; not the maximum, because the stores count one more than the
/// limit.
constexpr std::uint64_t kLargestLimit = std::numeric_limits<std::int64_t>::max() - 1;

struct StatusOptions {
  std::uint64_t limit{10'000};
  bool json{false};
  bool check{false};
  std::optional<std::string> max_lag;
  std::optional<std::string> watch;  ///< The interval at which it looks again.
  std::optional<std::string> since;  ///< How long ago the past begins that is shown.
};

struct SubscriptionLine {
  store::SubscriptionOverview overview;
  store::Hold hold;                     ///< The history that it holds back.
  std::optional<store::Replay> replay;  ///< The replay that runs; live delivery waits for it.
  store::VerifiedRow verified{};        ///< What continuous verification has compared.
};

std::int64_t total(const store::ParkedCounts& parked) {
  return parked.retrying + parked.waiting + parked.dead;
}

/// Whether this is a priority of a queue that no task has had. People are not shown it.
bool is_unused(const store::SubscriptionOverview& one) {
  const auto& spec = one.row.spec;
  return event::is_of_queue(spec) && one.progress.acked == 0 && one.progress.pending == 0 &&
         total(one.parked) == 0 && one.row.state == store::SubscriptionState::active &&
         one.row.trouble.empty() &&
         event::parse_task_place(spec.aggregate_types.front()).priority != event::kDefaultPriority;
}

struct View {
  std::string store;
  std::vector<SubscriptionLine> subscriptions;
  std::vector<store::RelayRow> relays;
  health::Queues queues;
  Adoptions adoptions;
  std::optional<history::History> past;
  std::vector<std::string> problems;
};

/// What the relay last reported about an active subscription.
std::string describe_trouble(const store::SubscriptionRow& row) {
  return row.state == store::SubscriptionState::active ? row.trouble : std::string();
}

/// The limit of --max-lag; nullopt without --check.
std::optional<std::chrono::milliseconds> parse_max_lag(const StatusOptions& options) {
  if (!options.check && options.max_lag)
    throw Failure(kUsage, "--max-lag: nothing is checked", "--check --max-lag 60s");
  if (!options.check) return std::nullopt;
  const auto limit = parse_duration(options.max_lag.value_or("60s"));
  if (!limit)
    throw Failure(kUsage, "--max-lag " + *options.max_lag + ": is not a duration",
                  limit.error().hint);
  return std::chrono::duration_cast<std::chrono::milliseconds>(*limit);
}

// ---- reading the store

/// The problems that need a person. A subscription that a person paused is none, nor is its lag.
std::vector<std::string> list_problems(health::Findings findings, const Adoptions& adoptions) {
  health::judge_adoptions(adoptions, findings);
  std::vector<std::string> problems;
  for (const health::Finding& one : findings.all()) {
    if (one.problem) problems.push_back(one.text());
  }
  return problems;
}

View look(const StatusOptions& options, std::optional<std::chrono::milliseconds> max_lag,
          const config::Loaded& loaded) {
  const RelayOptions& relay = loaded.config.relay;
  const auto since = parse_since(options.since);
  const auto store = Context::checked_store(loaded);
  const auto limit = std::min(options.limit, kLargestLimit);
  auto seen =
      must(health::look_at_deliveries(*store, relay.retention, static_cast<std::int64_t>(limit)));
  health::Findings findings = health::judge(seen, {.max_lag = max_lag, .quota = relay.quota});
  View view{.store = store::shown_url(relay.store_url),
            .subscriptions = {},
            .relays = must(std::move(seen.relays)),
            .queues = must(std::move(seen.queues)),
            .adoptions = must(store::open_adoptions(Context::store_options(loaded))),
            .past = {},
            .problems = {}};
  if (since) view.past = must(history::look_back(*store, *since, relay.history_interval));
  view.problems = list_problems(std::move(findings), view.adoptions);
  const auto holds = must(std::move(seen.holds));
  const auto verified = must(std::move(seen.verified));
  std::unique_ptr<store::Replays> replays;
  for (auto& one : seen.subscriptions) {
    SubscriptionLine& line = view.subscriptions.emplace_back(
        SubscriptionLine{.overview = std::move(one), .hold = {}, .replay = {}, .verified = {}});
    const store::SubscriptionRow& row = line.overview.row;
    if (row.replay != 0) {
      if (!replays) replays = must(store->replays());
      line.replay = must(replays->find(row.replay));
    }
    for (const auto& hold : holds) {
      if (hold.subscription == row.id) line.hold = hold;
    }
    for (const auto& known : verified) {
      if (known.subscription == row.id) line.verified = known;
    }
  }
  return view;
}

std::string or_dash(const std::string& text) { return text.empty() ? "-" : text; }

std::string pending_text(const store::SubscriptionProgress& progress) {
  return std::to_string(progress.pending) + (progress.pending_capped ? "+" : "");
}

std::string trouble_text(const store::SubscriptionRow& row, std::string trouble, bool has_owner) {
  std::string since = has_owner ? "  waiting since " : "  the last relay was waiting since ";
  if (trouble.starts_with(store::kOnTrial)) {
    since = has_owner ? "  on trial since " : "  the last relay was on trial since ";
    trouble.erase(0, store::kOnTrial.size());
  }
  return since + row.trouble_since + ": " + trouble;
}

void add_notes(Table& table, bool has_owner, const SubscriptionLine& line) {
  const auto& [overview, hold, replay, verified] = line;
  const auto& [row, progress, parked] = overview;
  if (!row.reason.empty()) table.note("  reason: " + row.reason);
  if (const std::string trouble = describe_trouble(row); !trouble.empty()) {
    table.note(trouble_text(row, trouble, has_owner));
  }
  if (replay) {
    table.note(fmt::format(
        "  live delivery waits for replay {}: {} sent, {} skipped, at seq {} of {} to {}; outbox replay "
        "--stop {} ends it",
        replay->id, replay->sent, replay->skipped, replay->position, replay->first, replay->last,
        replay->id));
  }
  if (row.stopped_seq) {
    table.note(
        fmt::format("  stopped at event {} (seq {}); outbox subscription resume {} tries again",
                    row.stopped_event, *row.stopped_seq, row.spec.name));
  }
  if (total(parked) > 0) {
    table.note(
        fmt::format("  parked: {} retrying, {} waiting behind them, {} dead; outbox parked list "
                    "--subscription {}",
                    parked.retrying, parked.waiting, parked.dead, row.spec.name));
  }
  if (hold.pieces > 0) {
    table.note(
        fmt::format("  holds back history since {} that could be removed; outbox prune shows it",
                    event::time_text(hold.oldest_us)));
  }
  if (health::matches_nothing(overview)) {
    table.note(
        fmt::format("  its filter has matched none of {}; compare it with what the "
                    "application writes: outbox subscription list",
                    count("event", progress.filtered)));
  }
}

void print_subscriptions(const View& view) {
  if (view.subscriptions.empty()) return;
  Table table({"SUBSCRIPTION", "STATE", "SINK", "PENDING", "LAG", "DELIVERED", "FILTERED", "PARKED",
               "LAST SETTLED"});
  for (const SubscriptionLine& line : view.subscriptions) {
    if (is_unused(line.overview)) continue;
    const auto& [overview, hold, replay, verified] = line;
    const auto& [row, progress, parked] = overview;
    table.add({row.spec.name, store::to_string(row.state), row.spec.sink, pending_text(progress),
               progress.pending == 0 ? "-" : age_text(progress.lag), std::to_string(progress.acked),
               std::to_string(progress.filtered), std::to_string(total(parked)),
               or_dash(progress.last_settled_at)});
    add_notes(table, health::has_owner(view.relays), line);
  }
  table.print();
  print("\n");
}

const char* describe_role(const store::RelayRow& relay) {
  if (!relay.alive) return "gone";
  return relay.owner ? "delivers" : "waits";
}

/// A text such as "default 32, heavy 64".
std::string lanes_text(const store::RelayRow& relay) {
  std::string text;
  for (const auto& [group, lanes] : relay.lanes)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", group, lanes);
  return text;
}

void print_relays(const View& view) {
  if (view.relays.empty()) return;
  Table table({"RELAY", "ROLE", "ALIVE", "LANES", "GENERATION", "HEARTBEAT"});
  for (const auto& relay : view.relays) {
    table.add({relay.name, describe_role(relay), relay.alive ? "yes" : "no",
               or_dash(lanes_text(relay)), std::to_string(relay.generation),
               or_dash(relay.heartbeat_at)});
    if (relay.feed == "wal") table.note("  follows the write-ahead log");
    if (!relay.feed_trouble.empty())
      table.note("  polls, and cannot follow the write-ahead log: " + relay.feed_trouble);
  }
  table.print();
  print("\n");
}

void print_text(const View& view, bool check) {
  print("store {}\n\n", view.store);
  print_subscriptions(view);
  print_relays(view);
  print_queues(view.queues);
  print_adoptions(view.adoptions);
  if (view.past) print_history(*view.past);
  if (check) return;  // a failed check reports them on stderr
  for (const std::string& problem : view.problems)
    print("{} {}\n", alarming("PROBLEM:"), plain(problem));
}

/// Null if continuous verification has compared nothing yet.
Json to_json(const store::VerifiedRow& row) {
  if (row.revision == 0) return nullptr;
  const std::int64_t ago = std::chrono::duration_cast<std::chrono::microseconds>(row.age).count();
  return {{"at", event::time_text(row.now_us - ago)},
          {"events", row.events},
          {"differences", row.differences}};
}

Json to_json(const SubscriptionLine& line, bool has_owner) {
  const auto& [overview, hold, replay, verified] = line;
  const auto& [row, progress, parked] = overview;
  const std::string trouble = has_owner ? describe_trouble(row) : std::string();
  Json stopped;
  if (row.stopped_seq) stopped = {{"id", row.stopped_event}, {"seq", *row.stopped_seq}};
  Json running;
  if (replay)
    running = {{"id", replay->id},           {"sent", replay->sent},
               {"skipped", replay->skipped}, {"position", replay->position},
               {"first_seq", replay->first}, {"last_seq", replay->last}};
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
          {"parked",
           {{"retrying", parked.retrying}, {"waiting", parked.waiting}, {"dead", parked.dead}}},
          {"held_back", {{"parts", hold.pieces}, {"bytes", hold.bytes}}},
          {"generation", progress.generation},
          {"config_version", row.config_version},
          {"last_settled_at", or_null(progress.last_settled_at)},
          {"oldest_pending_at", or_null(progress.oldest_pending_at)},
          {"lag_seconds", lag},
          {"matches_nothing", health::matches_nothing(overview)},
          {"replay", running},
          {"verified", to_json(verified)}};
}

Json to_json(const store::RelayRow& relay) {
  return {{"id", relay.id},
          {"name", relay.name},
          {"owner", relay.owner},
          {"alive", relay.alive},
          {"lanes", or_null(lanes_text(relay))},
          {"generation", relay.generation},
          {"heartbeat_at", or_null(relay.heartbeat_at)},
          {"feed", relay.feed},
          {"feed_trouble", or_null(relay.feed_trouble)}};
}

Json to_json(const View& view) {
  Json subscriptions = Json::array();
  for (const auto& line : view.subscriptions)
    subscriptions.push_back(to_json(line, health::has_owner(view.relays)));
  Json relays = Json::array();
  for (const auto& relay : view.relays) relays.push_back(to_json(relay));
  return {{"store", view.store},
          {"at", time_now()},
          {"subscriptions", subscriptions},
          {"relays", relays},
          {"queues", queues_to_json(view.queues)},
          {"workers", workers_to_json(view.queues)},
          {"adoptions", adoptions_to_json(view.adoptions)},
          {"history", view.past ? history_to_json(*view.past) : Json()},
          {"problems", view.problems}};
}

// ---- watching

std::chrono::milliseconds parse_interval(const std::string& option, const std::string& text) {
  const auto interval = parse_duration(text);
  if (!interval)
    throw Failure(kUsage, option + ": " + interval.error().message, interval.error().hint);
  if (*interval < std::chrono::milliseconds(100) || *interval > std::chrono::hours(1))
    throw Failure(kUsage, option + " " + text + " is out of range", "100ms to 1h");
  return std::chrono::duration_cast<std::chrono::milliseconds>(*interval);
}

void print_line(const Json& json) { write_out(write_json(json) + "\n"); }

void print_unreachable(const StatusOptions& options, const std::string& store,
                       const std::string& why, const std::string& seen_at) {
  if (options.json) {
    print_line({{"store", store}, {"at", time_now()}, {"error", why}});
    return;
  }
  print("store {}\n\n{} {}\n", store, alarming("CANNOT BE READ:"), plain(why));
  print("last read at {}\n", or_dash(seen_at));
}

using Show = std::function<void(const View& view)>;

int watch_status(const StatusOptions& options, const WatchOptions& how,
                 const config::Loaded& loaded, const Show& show) {
  const std::string store = store::shown_url(loaded.config.relay.store_url);
  (void)Context::store_options(loaded);
  std::string seen_at;
  watch(how, [&] {
    try {
      const View view = look(options, std::nullopt, loaded);
      seen_at = time_now();
      show(view);
    } catch (const Failure& failure) {
      // A store that could be read before may be back soon. One that never could may need a person.
      if (seen_at.empty() && failure.code() != kNotNow) throw;
      print_unreachable(options, store, failure.what(), seen_at);
    }
  });
  return kOk;
}

int status(const StatusOptions& options, const Context& context) {
  if (options.limit == 0) throw Failure(kUsage, "--limit 0: nothing would be counted", "1 or more");
  if (options.watch && options.check)
    throw Failure(kUsage, "--watch and --check exclude each other: outbox status", "choose one");
  const auto max_lag = parse_max_lag(options);
  const auto loaded = context.store_and_more();
  if (options.watch) {
    const WatchOptions how{.interval = parse_interval("--watch", *options.watch),
                           .title = "outbox status",
                           .lines_only = options.json};
    return watch_status(options, how, loaded, [&](const View& view) {
      options.json ? print_line(to_json(view)) : print_text(view, false);
    });
  }
  const View view = look(options, max_lag, loaded);
  if (options.json) {
    print_json(to_json(view));
  } else {
    print_text(view, options.check);
  }
  if (options.check && !view.problems.empty()) throw Failure(kCheckFailed, view.problems);
  return kOk;
}

// ---- top

/// How fast subscriptions are delivered, from one look to the next.
class Rates {
 public:
  void saw(const View& view) {
    const auto now = std::chrono::steady_clock::now();
    const double seconds = std::chrono::duration<double>(now - std::exchange(at_, now)).count();
    std::map<std::int32_t, Seen> seen;
    for (const SubscriptionLine& line : view.subscriptions) {
      const std::int32_t id = line.overview.row.id;
      Seen& one = seen[id];
      one.acked = line.overview.progress.acked;
      if (const auto before = seen_.find(id); before != seen_.end())
        one.rate = static_cast<double>(one.acked - before->second.acked) / seconds;
    }
    seen_ = std::move(seen);
  }
  [[nodiscard]] std::string text(std::int32_t subscription) const {
    const auto found = seen_.find(subscription);
    if (found == seen_.end() || !found->second.rate) return "-";
    return fmt::format("{:.0f}", *found->second.rate);
  }

 private:
  struct Seen {
    std::int64_t acked{0};
    std::optional<double> rate{};  ///< Not known at the first look.
  };
  std::chrono::steady_clock::time_point at_{};
  std::map<std::int32_t, Seen> seen_;
};

/// What the history says of the subscription; nothing if it was not delivered.
history::Figures find_past(const View& view, const std::string& name) {
  if (!view.past) return {};
  for (const history::Line& line : view.past->lines) {
    if (line.subscription == name && line.type.empty()) return line.sum;
  }
  return {};
}

void print_speeds(const View& view, const Rates& rates) {
  Table table({"SUBSCRIPTION", "STATE", "PER SECOND", "LAST HOUR", "P50", "P99", "PENDING",
               "OLDEST", "PARKED"});
  for (const SubscriptionLine& line : view.subscriptions) {
    if (is_unused(line.overview)) continue;
    const auto& [row, progress, parked] = line.overview;
    const history::Figures past = find_past(view, row.spec.name);
    table.add({row.spec.name, store::to_string(row.state), rates.text(row.id),
               std::to_string(past.delivered), percentile_text(past, 0.5),
               percentile_text(past, 0.99), pending_text(progress),
               progress.pending == 0 ? "-" : age_text(progress.lag),
               std::to_string(total(parked))});
  }
  table.print();
  print("\n");
}

void print_top(const View& view, const Rates& rates) {
  print("store {}\n\n", view.store);
  for (const std::string& problem : view.problems)
    print("{} {}\n", alarming("PROBLEM:"), plain(problem));
  if (!view.problems.empty()) print("\n");
  if (!view.subscriptions.empty()) print_speeds(view, rates);
  print_relays(view);
  print_queues(view.queues);
}

int top(const std::string& interval, const Context& context) {
  StatusOptions options;
  options.since = "1h";
  Rates rates;
  const WatchOptions how{.interval = parse_interval("--interval", interval), .title = "outbox top"};
  return watch_status(options, how, context.store_and_more(), [&](const View& view) {
    rates.saw(view);
    print_top(view, rates);
  });
}

}  // namespace

void add_top(CLI::App& root, Context& context) {
  auto interval = std::make_shared<std::string>("1s");
  CLI::App& verb =
      add_verb(root, "top", "Show on a screen what is wrong, and how fast events are delivered",
               [interval, &context] { return top(*interval, context); });
  add_option(verb, "--interval", interval.get(), "DURATION", "How often it looks; 100ms to 1h");
  add_example(verb, "outbox top -c outbox.toml");
}

void add_status(CLI::App& root, Context& context) {
  auto options = std::make_shared<StatusOptions>();
  CLI::App& verb = add_verb(root, "status", "Show what every subscription and relay is doing",
                            [options, &context] { return status(*options, context); });
  add_option(verb, "--limit", &options->limit, "N",
             "Count at most this many pending events per subscription");
  add_option(
      verb, "--check", &options->check, {},
      "Exit with 3 when no relay delivers, a subscription is stopped, has dead events, or lags");
  add_option(verb, "--max-lag", &options->max_lag, "DURATION",
             "With --check: how old the oldest pending event may be; 60s without it");
  add_option_or(verb, "--watch", &options->watch, "2s", "INTERVAL",
                "Look again every 2s, or at this interval, until q or Ctrl-C");
  add_option(
      verb, "--since", &options->since, "DURATION",
      "Also what was delivered since so long ago, such as 1h, and with --json in up to 120 points");
  add_option(verb, "--json", &options->json, {}, "As JSON; with --watch one line each time");
  add_example(verb, "outbox status -c outbox.toml");
  add_example(verb, "outbox status --watch 1s");
  add_example(verb, "outbox status --since 1h");
}

}  // namespace outbox::cli
