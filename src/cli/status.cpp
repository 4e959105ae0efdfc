// outbox status: what every subscription and relay is doing.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/count.hpp"
#include "base/outage.hpp"
#include "base/units.hpp"
#include "cli/exit.hpp"
#include "cli/held_back.hpp"
#include "cli/output.hpp"
#include "cli/status_adoptions.hpp"
#include "cli/status_queues.hpp"
#include "cli/table.hpp"
#include "cli/terminal.hpp"
#include "cli/verbs.hpp"
#include "cli/watch.hpp"
#include "event/task_queue.hpp"
#include "event/time_text.hpp"
#include "store/ownership.hpp"
#include "store/url.hpp"

namespace outbox::cli {
namespace {

/// More events than any log holds; not the maximum, because the stores count one more than the limit.
constexpr std::uint64_t kLargestLimit = std::numeric_limits<std::int64_t>::max() - 1;

struct StatusOptions {
  std::uint64_t limit{10'000};
  bool json{false};
  bool check{false};
  std::optional<std::string> max_lag;
  std::optional<std::string> watch;  ///< At which interval.
};

struct SubscriptionLine {
  store::SubscriptionRow row;
  store::SubscriptionProgress progress;
  store::ParkedCounts parked;
  store::Hold hold;                     ///< What it holds back of the history.
  std::optional<store::Replay> replay;  ///< That is running: live delivery waits.
};

std::int64_t all_parked(const SubscriptionLine& line) {
  return line.parked.retrying + line.parked.waiting + line.parked.dead;
}

/// Its filter is probably wrong. That of a priority that nobody uses is not.
bool matches_nothing(const SubscriptionLine& line) {
  return line.progress.matches_nothing() && !event::is_of_queue(line.row.spec);
}

/// A priority of a queue that no task has had: not shown to people.
bool is_unused(const SubscriptionLine& line) {
  const auto& spec = line.row.spec;
  return event::is_of_queue(spec) && line.progress.acked == 0 && line.progress.pending == 0 &&
         all_parked(line) == 0 && line.row.state == store::SubscriptionState::active &&
         line.row.trouble.empty() &&
         event::place_of(spec.aggregate_types.front()).priority != event::kDefaultPriority;
}

struct View {
  std::string store;
  std::vector<SubscriptionLine> subscriptions;
  std::vector<store::RelayRow> relays;
  QueueView queues;
  Adoptions adoptions;
  std::vector<std::string> problems;

  /// A live relay has the lanes.
  [[nodiscard]] bool has_owner() const {
    return std::any_of(relays.begin(), relays.end(),
                       [](const auto& relay) { return relay.owner && relay.alive; });
  }
};

// ---- problems

/// What the relay last reported about an active subscription.
std::string trouble_of(const store::SubscriptionRow& row) {
  return row.state == store::SubscriptionState::active ? row.trouble : std::string();
}

std::string no_owner(const View& view) {
  const auto& relays = view.relays;
  const auto alive =
      std::count_if(relays.begin(), relays.end(), [](const auto& relay) { return relay.alive; });
  const bool only_queues =
      !view.subscriptions.empty() &&
      std::all_of(view.subscriptions.begin(), view.subscriptions.end(),
                  [](const SubscriptionLine& line) {
                    return event::queue_of_subscription(line.row.spec.name).has_value();
                  });
  if (alive == 0 && only_queues)
    return "no task is done: no worker is alive (hint: outbox work -c outbox.toml)";
  if (alive == 0)
    return "nothing is delivered: no relay is alive (hint: outbox relay -c outbox.toml)";
  return fmt::format(
      "nothing is delivered: no live relay has the lanes, {} for them "
      "(hint: run this again in a moment, then see the relays' logs)",
      count("relay", alive, "waits", "wait"));
}

/// In "default 32, heavy 64".
bool has_lanes_of(const std::string& lanes, const std::string& group) {
  return (", " + lanes).find(", " + group + " ") != std::string::npos;
}

/// An active subscription whose group no live relay serves.
bool is_unserved(const View& view, const store::SubscriptionRow& row) {
  return row.state == store::SubscriptionState::active && view.has_owner() &&
         std::none_of(view.relays.begin(), view.relays.end(), [&](const auto& relay) {
           return relay.alive && has_lanes_of(relay.lanes, row.group);
         });
}

std::string unserved(const store::SubscriptionRow& row) {
  std::string hint = row.spec.sink == "custom"
                         ? "start the service that gives its sink to Relay::use()"
                         : "outbox relay --group " + row.group;
  if (const auto queue = event::queue_of_subscription(row.spec.name))
    hint = "start a worker of queue " + *queue + ": outbox work";
  return fmt::format(
      "subscription {} is not delivered: no live relay has lanes of its group {} (hint: {})",
      row.spec.name, row.group, hint);
}

std::string stopped(const store::SubscriptionRow& row) {
  return fmt::format(
      "subscription {0} is stopped: {1} (hint: fix the cause, then outbox subscription resume {0})",
      row.spec.name, row.reason);
}

std::string dead(const SubscriptionLine& line) {
  if (const auto queue = event::queue_of_subscription(line.row.spec.name)) {
    return fmt::format(
        "queue {0}: {1} not run again (hint: outbox tasks list --queue {0} --state dead)", *queue,
        count("dead task", line.parked.dead, "does", "do"));
  }
  return fmt::format(
      "subscription {0}: {1} not sent again (hint: outbox parked list --subscription {0} "
      "--state dead)",
      line.row.spec.name, count("dead event", line.parked.dead, "is", "are"));
}

std::string lags(const SubscriptionLine& line, std::chrono::milliseconds max_lag) {
  const std::string trouble = trouble_of(line.row);
  return fmt::format(
      "subscription {} lags: its oldest pending event is {} old, more than {}{}",
      line.row.spec.name, age_text(line.progress.lag), format_duration(max_lag),
      trouble.empty() ? " (hint: outbox status, and the relay's log)" : ": " + trouble);
}

/// What needs a person, each with what to do; with `max_lag` also what lags by more. A subscription that a person paused is not a
/// problem, nor is its lag.
std::vector<std::string> problems_of(const View& view,
                                     std::optional<std::chrono::milliseconds> max_lag,
                                     const config::Loaded& loaded) {
  std::vector<std::string> found;
  if (!view.has_owner()) found.push_back(no_owner(view));
  if (view.subscriptions.empty()) {
    found.emplace_back(
        "no subscriptions: nothing is delivered (hint: outbox subscription apply -c outbox.toml)");
  }
  for (const SubscriptionLine& line : view.subscriptions) {
    const auto state = line.row.state;
    if (is_unserved(view, line.row)) found.push_back(unserved(line.row));
    if (state == store::SubscriptionState::stopped) found.push_back(stopped(line.row));
    if (line.parked.dead > 0) found.push_back(dead(line));
    if (is_over_quota(line.hold, loaded))
      found.push_back(over_quota_text(line.row.spec.name, line.hold, loaded));
    if (state == store::SubscriptionState::active && max_lag && line.progress.lag > *max_lag)
      found.push_back(lags(line, *max_lag));
  }
  for (std::string& problem : problems_of(view.queues)) found.push_back(std::move(problem));
  for (std::string& problem : problems_of_adoptions(view.adoptions))
    found.push_back(std::move(problem));
  return found;
}

/// None without --check.
std::optional<std::chrono::milliseconds> max_lag_of(const StatusOptions& options) {
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

View look(const StatusOptions& options, std::optional<std::chrono::milliseconds> max_lag,
          const config::Loaded& loaded) {
  const auto store = Context::checked_store(loaded);
  const auto catalog = must(store->catalog());
  View view;
  view.store = store::shown_url(loaded.config.relay.store_url);
  const auto limit = std::min(options.limit, kLargestLimit);
  const auto holds = held_back(*store, loaded);
  std::unique_ptr<store::Replays> replays;
  for (auto& one : must(catalog->overview(static_cast<std::int64_t>(limit)))) {
    SubscriptionLine& line =
        view.subscriptions.emplace_back(SubscriptionLine{.row = std::move(one.row),
                                                         .progress = one.progress,
                                                         .parked = one.parked,
                                                         .hold = {},
                                                         .replay = {}});
    if (line.row.replay != 0) {
      if (!replays) replays = must(store->replays());
      line.replay = must(replays->find(line.row.replay));
    }
    for (const auto& hold : holds) {
      if (hold.subscription == line.row.id) line.hold = hold;
    }
  }
  view.relays = must(catalog->relays());
  std::vector<store::SubscriptionRow> rows;
  for (const SubscriptionLine& line : view.subscriptions) rows.push_back(line.row);
  view.queues = look_at_queues(*store, rows, static_cast<std::int64_t>(limit));
  view.adoptions = must(store::open_adoptions(Context::store_options(loaded)));
  view.problems = problems_of(view, max_lag, loaded);
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
  const auto& [row, progress, parked, hold, replay] = line;
  if (!row.reason.empty()) table.note("  reason: " + row.reason);
  if (const std::string trouble = trouble_of(row); !trouble.empty()) {
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
  if (all_parked(line) > 0) {
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
  if (matches_nothing(line)) {
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
    if (is_unused(line)) continue;
    const auto& [row, progress, parked, hold, replay] = line;
    table.add({row.spec.name, store::to_string(row.state), row.spec.sink, pending_text(progress),
               progress.pending == 0 ? "-" : age_text(progress.lag), std::to_string(progress.acked),
               std::to_string(progress.filtered), std::to_string(all_parked(line)),
               or_dash(progress.last_settled_at)});
    add_notes(table, view.has_owner(), line);
  }
  table.print();
  print("\n");
}

const char* role_of(const store::RelayRow& relay) {
  if (!relay.alive) return "gone";
  return relay.owner ? "delivers" : "waits";
}

void print_relays(const View& view) {
  if (view.relays.empty()) return;
  Table table({"RELAY", "ROLE", "ALIVE", "LANES", "GENERATION", "HEARTBEAT"});
  for (const auto& relay : view.relays) {
    table.add({relay.name, role_of(relay), relay.alive ? "yes" : "no", or_dash(relay.lanes),
               std::to_string(relay.generation), or_dash(relay.heartbeat_at)});
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
  if (check) return;  // a failed check reports them on stderr
  for (const std::string& problem : view.problems)
    print("{} {}\n", alarming("PROBLEM:"), plain(problem));
}

Json to_json(const SubscriptionLine& line, bool has_owner) {
  const auto& [row, progress, parked, hold, replay] = line;
  const std::string trouble = has_owner ? trouble_of(row) : std::string();
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
          {"matches_nothing", matches_nothing(line)},
          {"replay", running}};
}

Json to_json(const store::RelayRow& relay) {
  return {{"id", relay.id},
          {"name", relay.name},
          {"owner", relay.owner},
          {"alive", relay.alive},
          {"lanes", or_null(relay.lanes)},
          {"generation", relay.generation},
          {"heartbeat_at", or_null(relay.heartbeat_at)}};
}

Json to_json(const View& view) {
  Json subscriptions = Json::array();
  for (const auto& line : view.subscriptions)
    subscriptions.push_back(to_json(line, view.has_owner()));
  Json relays = Json::array();
  for (const auto& relay : view.relays) relays.push_back(to_json(relay));
  return {{"store", view.store},
          {"at", time_now()},
          {"subscriptions", subscriptions},
          {"relays", relays},
          {"queues", queues_to_json(view.queues)},
          {"workers", workers_to_json(view.queues)},
          {"adoptions", adoptions_to_json(view.adoptions)},
          {"problems", view.problems}};
}

// ---- watching

std::chrono::milliseconds interval_of(const std::string& text) {
  const auto interval = parse_duration(text);
  if (!interval)
    throw Failure(kUsage, "--watch: " + interval.error().message, interval.error().hint);
  if (*interval < std::chrono::milliseconds(100) || *interval > std::chrono::hours(1))
    throw Failure(kUsage, "--watch " + text + " is out of range", "100ms to 1h");
  return std::chrono::duration_cast<std::chrono::milliseconds>(*interval);
}

void print_line(const Json& json) {
  write_out(json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
}

void print_unreachable(const StatusOptions& options, const std::string& store,
                       const std::string& why, const std::string& seen_at) {
  if (options.json) {
    print_line({{"store", store}, {"at", time_now()}, {"error", why}});
    return;
  }
  print("store {}\n\n{} {}\n", store, alarming("CANNOT BE READ:"), plain(why));
  print("last read at {}\n", or_dash(seen_at));
}

int watch_status(const StatusOptions& options, const config::Loaded& loaded) {
  const std::string store = store::shown_url(loaded.config.relay.store_url);
  (void)Context::store_options(loaded);
  std::string seen_at;
  watch({.interval = interval_of(*options.watch),
         .title = "outbox status",
         .lines_only = options.json},
        [&] {
          try {
            const View view = look(options, std::nullopt, loaded);
            seen_at = time_now();
            options.json ? print_line(to_json(view)) : print_text(view, false);
          } catch (const Failure& failure) {
            // It may be back soon. What never worked may need a person.
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
  const auto max_lag = max_lag_of(options);
  const auto loaded = context.store_and_more();
  if (options.watch) return watch_status(options, loaded);
  const View view = look(options, max_lag, loaded);
  if (options.json) {
    print_json(to_json(view));
  } else {
    print_text(view, options.check);
  }
  if (options.check && !view.problems.empty()) throw Failure(kCheckFailed, view.problems);
  return kOk;
}

}  // namespace

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
  add_option(verb, "--json", &options->json, {}, "As JSON; with --watch one line each time");
  add_example(verb, "outbox status -c outbox.toml");
  add_example(verb, "outbox status --watch 1s");
}

}  // namespace outbox::cli
