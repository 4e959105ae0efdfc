// outbox subscription create, rename, reset, drop.
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/count.hpp"
#include "base/text.hpp"
#include "base/words.hpp"
#include "cli/acting.hpp"
#include "cli/event_input.hpp"
#include "cli/exit.hpp"
#include "cli/output.hpp"
#include "cli/verbs.hpp"
#include "event/task_queue.hpp"
#include "event/time_text.hpp"
#include "store/subscriptions.hpp"
#include "subscription/filter.hpp"
#include "subscription/spec.hpp"

namespace outbox::cli {
namespace {

/// At most this many pending events are counted.
constexpr std::int64_t kMostPending = 10'000'000;
/// A clock may have gone back a little, so this much more is sent again.
constexpr std::int64_t kSentAgainUs = 1'000'000;

struct ChangeOptions {
  std::string name;
  std::string new_name;
  std::optional<std::string> start;
  std::optional<std::string> to;
  bool apply{false};
  bool json{false};
};

/// A store, and one subscription of it.
struct OpenChange {
  OpenChange(const Context& context, const std::string& name, const Decided& decided)
      : loaded(context.store_and_more()),
        store(Context::checked_store(loaded)),
        catalog(must(store->catalog())),
        changes(must(store::open_subscription_changes(Context::store_options(loaded, decided)))),
        row(find(name)) {}

  const config::Loaded loaded;
  std::unique_ptr<store::Store> store;
  std::unique_ptr<store::Catalog> catalog;
  std::unique_ptr<store::SubscriptionChanges> changes;
  store::SubscriptionRow row;

  [[nodiscard]] bool in_configuration() const {
    const auto& specs = loaded.config.relay.subscriptions;
    return std::any_of(specs.begin(), specs.end(),
                       [&](const auto& spec) { return spec.name == row.spec.name; });
  }

 private:
  [[nodiscard]] store::SubscriptionRow find(const std::string& name) const {
    const auto rows = must(catalog->subscriptions());
    std::vector<std::string_view> known;
    for (const auto& one : rows) {
      if (one.spec.name == name) return one;
      known.emplace_back(one.spec.name);
    }
    for (const auto& former : must(changes->former_names())) {
      if (former.name == name)
        throw Failure(kError, name + " was renamed to " + former.subscription, "use that name");
    }
    throw Failure(kError, "unknown subscription: " + name,
                  did_you_mean(name, known, "`outbox subscription list` shows them"));
  }
};

/// The subscriptions of a queue come and go with its configuration.
void refuse_queue(const store::SubscriptionRow& row) {
  const auto queue = event::queue_of_subscription(row.spec.name);
  if (!queue) return;
  throw Failure(
      kError, row.spec.name + " delivers tasks of queue " + *queue + ", and belongs to its workers",
      "outbox tasks shows, retries, cancels and pauses tasks");
}

void refuse_during_replay(const OpenChange& open) {
  for (const auto& replay : must(must(open.store->replays())->list(open.row.id, 10))) {
    if (replay.state == store::ReplayState::loading || replay.state == store::ReplayState::running)
      must(Status(store::replay_runs(open.row.spec.name)));
  }
}

// ---- create

Start parse_start(const std::string& word) {
  if (const auto start = from_word<Start>(word)) return *start;
  throw Failure(kUsage, "--start: unknown value " + in_quotes(word),
                did_you_mean(word, kWords<Start>));
}

int create(const ChangeOptions& options, const Context& context) {
  const auto loaded = context.configuration(Subscriptions::used);
  const auto& specs = loaded.config.relay.subscriptions;
  const auto section = std::find_if(specs.begin(), specs.end(),
                                    [&](const auto& spec) { return spec.name == options.name; });
  if (section == specs.end())
    throw Failure(kUsage,
                  "no [subscription." + options.name + "] in " +
                      (loaded.file.empty() ? "the configuration" : loaded.file),
                  "-c FILE with that section");
  SubscriptionSpec spec = *section;
  if (options.start) spec.start = parse_start(*options.start);
  const auto store = Context::checked_store(
      loaded, acting("subscription create", {{"start", given(options.start)}}));
  const auto catalog = must(store->catalog());
  for (const auto& row : must(catalog->subscriptions())) {
    if (row.spec.name == spec.name)
      throw Failure(kError, "there is a subscription " + spec.name + " already",
                    "outbox subscription apply changes it, outbox subscription reset lets it "
                    "begin anew");
  }
  must(catalog->create(spec));
  print(
      "+ {} created, gets {}\n", spec.name,
      spec.start == Start::now ? "events from now on" : "everything from the beginning of the log");
  return kOk;
}

// ---- rename

int rename(const ChangeOptions& options, const Context& context) {
  const OpenChange open(context, options.name,
                        acting("subscription rename", {{"new_name", options.new_name}}));
  refuse_queue(open.row);
  if (event::queue_of_subscription(options.new_name))
    throw Failure(kUsage, options.new_name + " is the name of a queue's subscription",
                  "use another name");
  must(open.changes->rename(options.name, options.new_name));
  print("{} is now {}: position, parked events, ledger and replays are as they were\n",
        options.name, options.new_name);
  if (open.row.spec.sink == "custom")
    print("its sink is the application's: change Relay::use(\"{}\", ...) there\n", options.name);
  print("{} [subscription.{}]: name it [subscription.{}]. Until then relays apply nothing of it\n",
        open.in_configuration() ? open.loaded.file + " has" : "Where a configuration has",
        options.name, options.new_name);
  return kOk;
}

// ---- reset

struct Target {
  store::NewStart start;
  std::string text;  ///< Where it begins, for people.
};

constexpr std::string_view kSlot = "slot:";

Target choose_slot(const std::string& slot, const OpenChange& open) {
  if (slot.empty()) throw Failure(kUsage, "--to slot: names no slot", "--to slot:outbox_debezium");
  store::NewStart start = must(open.changes->find_slot(slot));
  std::string text = "where the slot " + slot + " stands, seq " + std::to_string(start.after + 1);
  return {std::move(start), std::move(text)};
}

Target choose_target(const ChangeOptions& options, const OpenChange& open) {
  using Kind = store::NewStart::Kind;
  if (!options.to)
    throw Failure(kUsage, "--to: where should " + options.name + " begin?",
                  "--to beginning, --to now, --to TIME (2026-01-05T08:09:12Z, 15m ago: 15m), or "
                  "--to slot:NAME");
  if (*options.to == "beginning") return {{.kind = Kind::beginning}, "the beginning of the log"};
  if (*options.to == "now") return {{.kind = Kind::now}, "the end of the log"};
  if (options.to->starts_with(kSlot)) return choose_slot(options.to->substr(kSlot.size()), open);
  const std::int64_t time_us = parse_moment("--to", *options.to);
  if (time_us > parse_moment("--to", "0s"))
    throw Failure(kUsage, "--to " + *options.to + ": is in the future",
                  "--to now skips what is there");
  const auto replays = must(open.store->replays());
  const auto log = must(replays->retained());
  if (log.removed && (log.first_us == 0 || time_us < log.first_us))
    throw Failure(kError,
                  "--to " + event::time_text(time_us) + ": events of that time were removed; the " +
                      "log has everything only from seq " + std::to_string(log.first) + " on",
                  "--to beginning sends all that is there; outbox replay --archive DIR sends what "
                  "was removed");
  const std::int64_t after = std::max<std::int64_t>(
      std::max(must(replays->seq_at(time_us - kSentAgainUs)), log.first) - 1, 0);
  return {{.kind = Kind::after, .after = after}, "seq " + std::to_string(after + 1)};
}

struct StartEffect {
  std::int64_t again{0};
  std::int64_t skipped{0};
  store::ResetPlan parked;
};

/// Counts the events that the filter of the subscription matches.
StartEffect find_effect(const OpenChange& open, const store::NewStart& start) {
  const subscription::Filter filter(open.row.spec, open.row.left_out);
  StartEffect effect;
  effect.parked = must(
      open.changes->plan_reset(open.row.spec.name, start, !open.row.spec.match_headers.empty()));
  for (const auto& count : effect.parked.counts) {
    EventView event;
    event.aggregate_type = count.aggregate_type;
    event.event_type = count.event_type;
    event.headers = count.headers;
    if (!filter.matches(event)) continue;
    effect.again += count.again;
    effect.skipped += count.skipped;
  }
  return effect;
}

void show(const ChangeOptions& options, const Target& target, const StartEffect& effect) {
  const store::ResetPlan& parked = effect.parked;
  if (options.json) {
    print_json({{"name", options.name},
                {"begins_at", target.text},
                {"applied", options.apply},
                {"delivered_again", effect.again},
                {"never_delivered", effect.skipped},
                {"parked",
                 {{"delivered_again", parked.parked_again},
                  {"corrections_lost", parked.corrected_again},
                  {"discarded_delivered_again", parked.discarded_again},
                  {"kept", parked.parked_kept}}}});
    return;
  }
  print("{} {} at {}\n", options.name, options.apply ? "begins" : "would begin", target.text);
  print("  {} delivered again\n",
        count("event", effect.again, "that it has passed is", "that it has passed are"));
  print("  {} never delivered by it\n",
        count("event", effect.skipped, "that waits for it is", "that wait for it are"));
  if (parked.parked_again > 0)
    print("  {} delivered again from the log\n",
          count("parked event", parked.parked_again, "is", "are"));
  if (parked.corrected_again > 0)
    print(
        "  {} of them {} corrected by hand: the log still has what was written, and that is delivered\n",
        parked.corrected_again, parked.corrected_again == 1 ? "was" : "were");
  if (parked.discarded_again > 0)
    print("  {} delivered again\n",
          count("event", parked.discarded_again, "that was discarded by hand is",
                "that were discarded by hand are"));
  if (parked.parked_kept > 0)
    print("  {} parked\n", count("parked event", parked.parked_kept, "stays", "stay"));
  if (!options.apply) print("nothing was changed (--apply does it)\n");
}

int reset(const ChangeOptions& options, const Context& context) {
  const OpenChange open(context, options.name,
                        acting("subscription reset", {{"to", given(options.to)}}));
  refuse_queue(open.row);
  refuse_during_replay(open);
  const Target target = choose_target(options, open);
  const StartEffect effect = find_effect(open, target.start);
  if (options.apply) must(open.changes->reset(options.name, target.start));
  show(options, target, effect);
  if (options.apply && !options.json && open.row.state != store::SubscriptionState::active)
    print("it is {}: outbox subscription resume {}\n", store::to_string(open.row.state),
          options.name);
  return kOk;
}

// ---- drop

store::SubscriptionOverview read_overview(const OpenChange& open) {
  for (auto& one : must(open.catalog->overview(kMostPending))) {
    if (one.row.id == open.row.id) return std::move(one);
  }
  return {.row = open.row, .progress = {}, .parked = {}};
}

int drop(const ChangeOptions& options, const Context& context) {
  const OpenChange open(context, options.name, acting("subscription drop", Json::object()));
  refuse_queue(open.row);
  refuse_during_replay(open);
  const auto found = read_overview(open);
  const auto& parked = found.parked;
  const std::int64_t all = parked.retrying + parked.waiting + parked.dead;
  if (options.apply) must(open.changes->drop(options.name));
  if (options.json) {
    print_json(
        {{"name", options.name},
         {"applied", options.apply},
         {"pending", found.progress.pending},
         {"pending_capped", found.progress.pending_capped},
         {"parked",
          {{"retrying", parked.retrying}, {"waiting", parked.waiting}, {"dead", parked.dead}}},
         {"in_configuration", open.in_configuration()}});
    return kOk;
  }
  print("{} {}\n", options.name, options.apply ? "is dropped" : "would be dropped");
  print("  {}{} for it, matching or not, and {} not delivered by it\n",
        found.progress.pending_capped ? "more than " : "",
        count("event", found.progress.pending, "of the log waits", "of the log wait"),
        found.progress.pending == 1 ? "is" : "are");
  print("  {} removed: {} retrying, {} waiting, {} dead\n", count("parked event", all, "is", "are"),
        parked.retrying, parked.waiting, parked.dead);
  print(
      "  {} [subscription.{}]: remove it; a relay that starts with it creates the subscription "
      "anew, which delivers everything again\n",
      open.in_configuration() ? open.loaded.file + " has" : "Where a configuration has",
      options.name);
  if (!options.apply) print("nothing was changed (--apply does it)\n");
  return kOk;
}

}  // namespace

void add_subscription_changes(CLI::App& verb, Context& context) {
  auto options = std::make_shared<ChangeOptions>();
  CLI::App& creating = add_verb(verb, "create", "Create one from its section of the configuration",
                                [options, &context] { return create(*options, context); });
  add_argument(creating, "NAME", &options->name, "[subscription.NAME]; refused if it exists");
  add_option(creating, "--start", &options->start, "WHERE",
             "beginning or now; without it the setting `start`");
  add_footer(creating, "A name that another one had before it was renamed may be used again.");
  add_example(creating, "outbox subscription create orders --start now");
  CLI::App& renaming = add_verb(verb, "rename", "Give one another name; all that it has stays",
                                [options, &context] { return rename(*options, context); });
  add_argument(renaming, "OLD", &options->name, "Which one");
  add_argument(renaming, "NEW", &options->new_name, "Its new name");
  add_footer(
      renaming,
      "Running relays follow within a second. A configuration that still has the old name creates nothing:\n"
      "`apply` refuses it, and a relay warns and delivers on.");
  add_example(renaming, "outbox subscription rename orders orders-v2");
  CLI::App& resetting =
      add_verb(verb, "reset", "Let one begin anew elsewhere in the log, or show what that does",
               [options, &context] { return reset(*options, context); });
  add_argument(resetting, "NAME", &options->name, "Which one");
  add_option(
      resetting, "--to", &options->to, "WHERE",
      "beginning, now, a time: 2026-01-05T08:09:12Z, how long ago: 15m, or where a replication "
      "slot stands: slot:NAME");
  add_option(resetting, "--apply", &options->apply, {}, "Do it; without it only shows");
  add_option(resetting, "--json", &options->json, {}, "As JSON");
  add_footer(
      resetting,
      "What is passed over is never delivered by it. Running relays follow within a second. To send some events again\n"
      "and go on: outbox replay.");
  add_example(resetting, "outbox subscription reset orders --to 2026-01-05T08:09:12Z");
  CLI::App& dropping =
      add_verb(verb, "drop", "Remove one with its parked events, or show what that does",
               [options, &context] { return drop(*options, context); });
  add_argument(dropping, "NAME", &options->name, "Which one");
  add_option(dropping, "--apply", &options->apply, {}, "Do it; without it only shows");
  add_option(dropping, "--json", &options->json, {}, "As JSON");
  add_footer(dropping,
             "Running relays stop it within a second. Remove it from their configuration first.");
  add_example(dropping, "outbox subscription drop orders");
}

}  // namespace outbox::cli
