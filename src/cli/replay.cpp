// outbox replay: sends events of a subscription again.
#include "store/replay.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/count.hpp"
#include "base/json.hpp"
#include "base/signals.hpp"
#include "base/text.hpp"
#include "cli/acting.hpp"
#include "cli/event_input.hpp"
#include "cli/exit.hpp"
#include "cli/output.hpp"
#include "cli/progress.hpp"
#include "cli/replay_archive.hpp"
#include "cli/table.hpp"
#include "cli/verbs.hpp"
#include "event/time_text.hpp"
#include "subscription/filter.hpp"
#include "subscription/replay_filter.hpp"

namespace outbox::cli {
namespace {

using RunState = store::ReplayState;

struct ReplayVerbOptions {
  std::optional<std::string> subscription;
  std::optional<std::uint64_t> from_seq;
  std::optional<std::uint64_t> until_seq;
  std::optional<std::string> from_time;
  std::optional<std::string> until_time;
  std::vector<std::string> ids;
  std::vector<std::string> types;
  std::vector<std::string> aggregate_types;
  std::vector<std::string> headers;
  std::optional<std::string> key;
  std::optional<std::string> archive;
  bool apply{false};
  bool no_wait{false};
  bool list{false};
  std::optional<std::uint64_t> show;
  std::optional<std::uint64_t> stop;
  std::optional<std::uint64_t> resume;
  std::uint64_t limit{20};
  bool json{false};
};

/// A clock may have gone back a little, so this much more is looked at on each side of a time.
constexpr std::int64_t kLookedAtUs = 1'000'000;
constexpr std::int64_t kAnySeq = std::numeric_limits<std::int64_t>::max() - 1;
constexpr std::chrono::milliseconds kLook{200};

struct OpenReplays {
  explicit OpenReplays(const config::Loaded& loaded, Decided decided)
      : store(Context::checked_store(loaded, std::move(decided))),
        rows(must(must(store->catalog())->subscriptions())),
        replays(must(store->replays())) {}

  std::unique_ptr<store::Store> store;
  std::vector<store::SubscriptionRow> rows;
  std::unique_ptr<store::Replays> replays;

  [[nodiscard]] const store::SubscriptionRow& row(const std::string& name) const {
    std::vector<std::string_view> known;
    for (const auto& one : rows) {
      if (one.spec.name == name) return one;
      known.emplace_back(one.spec.name);
    }
    throw Failure(kError, "unknown subscription: " + name,
                  did_you_mean(name, known, "`outbox subscription list` shows them"));
  }
  [[nodiscard]] std::string subscription_name(std::int32_t subscription) const {
    for (const auto& one : rows) {
      if (one.id == subscription) return one.spec.name;
    }
    return "(removed, id " + std::to_string(subscription) + ")";
  }
  [[nodiscard]] store::Replay find(std::uint64_t id) const {
    auto found = must(replays->find(static_cast<std::int64_t>(id)));
    if (!found)
      throw Failure(kError, "no such replay: " + std::to_string(id),
                    "outbox replay --list shows them");
    return std::move(*found);
  }
};

// ---- which events

std::int64_t check_seq(const char* option, std::uint64_t seq) {
  if (seq == 0 || seq > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) - 1)
    throw Failure(kUsage, fmt::format("{} {}: is not a seq", option, seq),
                  "outbox events shows seqs; the first one is 1");
  return static_cast<std::int64_t>(seq);
}

void check_range(const ReplayVerbOptions& options) {
  if (options.from_seq && options.from_time)
    throw Failure(kUsage, "--from-seq and --from-time: which of them?", "leave one out");
  if (options.until_seq && options.until_time)
    throw Failure(kUsage, "--until-seq and --until-time: which of them?", "leave one out");
  const bool range =
      options.from_seq || options.from_time || options.until_seq || options.until_time;
  if (!options.ids.empty() && range)
    throw Failure(kUsage, "--id names the events", "leave --from-... and --until-... out");
  if (options.from_seq && options.until_seq && *options.from_seq > *options.until_seq)
    throw Failure(
        kUsage,
        fmt::format("--from-seq {} is after --until-seq {}", *options.from_seq, *options.until_seq),
        "from the first to the last, both included");
}

subscription::ReplayChoice make_choice(const ReplayVerbOptions& options) {
  subscription::ReplayChoice choice{.event_types = options.types,
                                    .aggregate_types = options.aggregate_types};
  for (const std::string& text : options.headers) choice.match_headers.insert(parse_header(text));
  if (options.key) std::tie(choice.aggregate_type, choice.aggregate_id) = parse_key(*options.key);
  for (const std::string& text : options.ids) {
    const auto id = EventId::parse(text);
    if (!id) throw Failure(kUsage, "--id " + text + ": is not a UUID", "outbox events shows ids");
    choice.ids.push_back(*id);
  }
  if (options.from_time) choice.since_us = parse_moment("--from-time", *options.from_time);
  if (options.until_time) choice.until_us = parse_moment("--until-time", *options.until_time);
  if (choice.since_us && choice.until_us && *choice.since_us >= *choice.until_us)
    throw Failure(kUsage, "--from-time is not before --until-time",
                  "from the first, up to before the second");
  return choice;
}

/// Sets the range of the replay, from the first to the last event that has one of the ids.
void find_ids(const OpenReplays& open, const subscription::ReplayChoice& choice,
              store::Replay& replay) {
  const auto events = must(open.store->events());
  replay.first = std::numeric_limits<std::int64_t>::max();
  for (const EventId& id : choice.ids) {
    const auto page = must(events->list({.id = id}, 100, false));
    bool found = false;
    for (const auto& event : page.events) {
      if (!event.in_log) continue;
      found = true;
      replay.first = std::min(replay.first, event.seq);
      replay.last = std::max(replay.last, event.seq);
    }
    if (!found)
      throw Failure(kError, "--id " + id.str() + ": is not in the log",
                    "outbox events --id shows what is known of it; without an index only ids of "
                    "this program are looked for in the whole log");
  }
}

[[noreturn]] void too_early(std::int64_t time_us, const store::RetainedLog& log) {
  throw Failure(kError,
                fmt::format("--from-time {}: the log has everything only from seq {} on{}",
                            event::time_text(time_us), log.first,
                            log.first_us == 0 ? std::string()
                                              : ", written at " + event::time_text(log.first_us)),
                "begin there, or send what was removed from its archive with --archive DIR");
}

std::int64_t find_first(const ReplayVerbOptions& options, const subscription::ReplayChoice& choice,
                        const store::RetainedLog& log, store::Replays& replays) {
  if (options.from_seq) return check_seq("--from-seq", *options.from_seq);
  if (!choice.since_us) return log.first;
  if (log.removed && (log.first_us == 0 || *choice.since_us < log.first_us))
    too_early(*choice.since_us, log);
  return std::max(must(replays.seq_at(*choice.since_us - kLookedAtUs)), log.first);
}

std::int64_t find_last(const ReplayVerbOptions& options, const subscription::ReplayChoice& choice,
                       const store::RetainedLog& log, store::Replays& replays) {
  if (options.until_seq) return std::min(check_seq("--until-seq", *options.until_seq), log.last);
  if (!choice.until_us) return log.last;
  return must(replays.seq_at(*choice.until_us + kLookedAtUs)) - 1;
}

store::Replay make_replay(const ReplayVerbOptions& options, const OpenReplays& open,
                          const store::SubscriptionRow& row) {
  check_range(options);
  const subscription::ReplayChoice choice = make_choice(options);
  store::Replay replay{
      .subscription = row.id, .filter = subscription::to_json(choice), .actor = this_user()};
  if (options.archive) {
    replay.archived = true;
    replay.first = options.from_seq ? check_seq("--from-seq", *options.from_seq) : 1;
    replay.last = options.until_seq ? check_seq("--until-seq", *options.until_seq) : kAnySeq;
    return replay;
  }
  if (!choice.ids.empty()) {
    find_ids(open, choice, replay);
    return replay;
  }
  const auto log = must(open.replays->retained());
  replay.first = find_first(options, choice, log, *open.replays);
  replay.last = find_last(options, choice, log, *open.replays);
  // Also if nothing is left: "no events" would not say that they were removed.
  if (replay.first < log.first) must(Status(store::begins_too_early(replay.first, log)));
  return replay;
}

// ---- dry run

/// Chooses by the filters of the subscription and of the replay, in the range of the replay.
Chosen make_chosen(const store::Replay& replay, const store::SubscriptionRow& row) {
  return [wanted = subscription::Filter(row.spec),
          chosen = subscription::ReplayFilter(
              must(subscription::replay_choice_from_json(replay.filter))),
          first = replay.first, last = replay.last](const EventView& event) {
    return event.seq >= first && event.seq <= last && wanted.matches(event) &&
           chosen.matches(event);
  };
}

/// Counts the events of the replay that live delivery has passed by now.
ReplayCount count_events(const store::Replay& replay, const OpenReplays& open,
                         const store::SubscriptionRow& row) {
  const Chosen chosen = make_chosen(replay, row);
  ReplayCount count;
  Progress progress(Progress::Wanted::on_terminal, 0, "counting");
  std::uint64_t read = 0;
  for (const auto& strand : must(must(open.store->progress())->load(row.id, store::kAllLanes))) {
    store::ReplayRequest request{.replay = replay.id,
                                 .subscription = row.id,
                                 .archived = replay.archived,
                                 .lanes = strand.lanes,
                                 .live = strand.cursor,
                                 .position = replay.first - 1,
                                 .last = replay.last,
                                 .rows = 5000,
                                 .whole = false};
    for (bool ended = false; !ended;) {
      const auto page = must(open.replays->page(request));
      progress.at(read += page.events.size());
      for (std::size_t i = 0; i < page.events.size(); ++i) {
        if (!chosen(page.events[i])) continue;
        if (page.held[i] != 0) {
          ++count.held;
        } else {
          count.add(page.events[i]);
        }
      }
      request.position = page.position;
      ended = page.ended;
    }
  }
  return count;
}

// ---- showing

Json time_unless_zero(std::int64_t us) { return us == 0 ? Json() : Json(event::time_text(us)); }

Json to_json(const store::Replay& replay, const OpenReplays& open) {
  return {{"id", replay.id},
          {"subscription", open.subscription_name(replay.subscription)},
          {"state", to_string(replay.state)},
          {"reason", or_null(replay.reason)},
          {"first_seq", replay.first},
          {"last_seq", replay.last},
          {"position", replay.position},
          {"filter", try_parse_json<Json>(replay.filter)},
          {"archived", replay.archived},
          {"sent", replay.sent},
          {"skipped", replay.skipped},
          {"started_by", replay.actor},
          {"started_at", time_unless_zero(replay.started_at_us)},
          {"ended_at", time_unless_zero(replay.ended_at_us)}};
}

std::string progress_text(const store::Replay& replay) {
  const std::int64_t done = std::max<std::int64_t>(replay.position - replay.first + 1, 0);
  const std::int64_t all = std::max<std::int64_t>(replay.last - replay.first + 1, 1);
  return fmt::format("{} sent, {} skipped, seq {} to {}, {}% done", replay.sent, replay.skipped,
                     replay.first, replay.last, done * 100 / all);
}

int list(const ReplayVerbOptions& options, const OpenReplays& open) {
  if (options.limit == 0) throw Failure(kUsage, "--limit 0: nothing would be shown", "1 or more");
  const std::int32_t of = options.subscription ? open.row(*options.subscription).id : 0;
  const auto limit = static_cast<std::size_t>(std::min<std::uint64_t>(options.limit, 10'000));
  const auto all = must(open.replays->list(of, limit));
  if (options.json) {
    Json replays = Json::array();
    for (const auto& replay : all) replays.push_back(to_json(replay, open));
    print_json({{"replays", replays}});
    return kOk;
  }
  if (all.empty()) {
    print("no replays\n");
    return kOk;
  }
  Table table({"ID", "SUBSCRIPTION", "STATE", "FIRST SEQ", "LAST SEQ", "AT SEQ", "SENT", "SKIPPED",
               "STARTED", "BY"});
  for (const auto& replay : all) {
    table.add({std::to_string(replay.id), open.subscription_name(replay.subscription),
               to_string(replay.state), std::to_string(replay.first), std::to_string(replay.last),
               std::to_string(replay.position), std::to_string(replay.sent),
               std::to_string(replay.skipped), event::time_text(replay.started_at_us),
               plain(replay.actor)});
    if (!replay.reason.empty()) table.note("  reason: " + plain(replay.reason));
  }
  table.print();
  return kOk;
}

int show(const ReplayVerbOptions& options, const OpenReplays& open) {
  const auto replay = open.find(*options.show);
  const auto limit = static_cast<std::size_t>(store::kMostSkipped);
  Json json = to_json(replay, open);
  json["skipped_events"] = Json::array();
  for (const auto& skip : must(open.replays->skips(replay.id, limit))) {
    json["skipped_events"].push_back({{"seq", skip.seq},
                                      {"id", skip.id.str()},
                                      {"aggregate_type", skip.aggregate_type},
                                      {"aggregate_id", skip.aggregate_id},
                                      {"error", or_null(skip.error)}});
  }
  print_json(json);
  return kOk;
}

// ---- following one

/// What the replay skipped, and why: at most the first few events.
std::vector<std::string> skipped_lines(const store::Replay& replay, const OpenReplays& open) {
  std::vector<std::string> lines{
      fmt::format("replay {}: {} skipped: rejected, or behind a rejected one of the same key "
                  "(hint: outbox replay --show {} lists what was skipped)",
                  replay.id, count("event", replay.skipped, "was", "were"), replay.id)};
  for (const auto& skip : must(open.replays->skips(replay.id, 5)))
    lines.push_back(fmt::format("seq {} ({}): {}", skip.seq, skip.id.str(),
                                skip.error.empty() ? "behind one that was rejected" : skip.error));
  return lines;
}

/// A replay that was started goes on, also when this command cannot look at it any more.
store::Replay find_started(std::int64_t id, const OpenReplays& open) {
  const auto found = open.replays->find(id);
  if (found) return open.find(static_cast<std::uint64_t>(id));
  throw Failure(
      kInterrupted,
      fmt::format("replay {} goes on in the relays, but cannot be watched any more: {}", id,
                  found.error().message),
      fmt::format("outbox replay --show {} tells how far it is, --stop {} stops it", id, id));
}

/// Waits until the replay has ended. The relays carry it out; this function only looks.
int follow(std::int64_t id, const ReplayVerbOptions& options, const OpenReplays& open,
           const Signals& signals) {
  store::Replay replay = find_started(id, open);
  Progress progress(Progress::Wanted::on_terminal, 0, fmt::format("replay {}", id));
  while (replay.state == RunState::running) {
    if (signals.wait_for(kLook))
      throw Failure(
          kInterrupted, fmt::format("replay {} goes on in the relays", id),
          fmt::format("outbox replay --stop {} stops it, outbox replay --list shows it", id));
    replay = find_started(id, open);
    progress.say(progress_text(replay));
  }
  progress.clear();
  if (options.json) {
    print_json({{"replay", to_json(replay, open)}});
  } else {
    print("replay {} is {}: {} sent again\n", id, to_string(replay.state),
          count("event", replay.sent));
  }
  if (replay.state == RunState::stopped)
    throw Failure(kError, fmt::format("replay {} was stopped: {}", id, replay.reason),
                  fmt::format("outbox replay --resume {} goes on where it stopped", id));
  if (replay.skipped > 0) throw Failure(kCheckFailed, skipped_lines(replay, open));
  return kOk;
}

int after_start(std::int64_t id, const ReplayVerbOptions& options, const OpenReplays& open,
                const Signals& signals) {
  if (!options.json) print("replay {} started; live delivery of it waits meanwhile\n", id);
  const auto replay = find_started(id, open);
  for (const auto& row : open.rows) {
    if (row.id == replay.subscription && row.state != store::SubscriptionState::active)
      write_err(fmt::format("subscription {} is {}: it begins when that is resumed\n",
                            row.spec.name, store::to_string(row.state)));
  }
  if (!options.no_wait) return follow(id, options, open, signals);
  if (options.json) print_json({{"replay", to_json(replay, open)}});
  return kOk;
}

// ---- starting and stopping

/// If the answer was lost, the error says that the replay may have been started: another one would
/// be refused, or would send the events twice.
template <class T>
T must_start(Result<T> started) {
  if (started || started.error().effect != Effect::unknown) return must(std::move(started));
  throw Failure(kError, "the replay may have been started: " + started.error().message,
                "outbox replay --list shows whether it was");
}

[[noreturn]] void nothing_chosen() {
  throw Failure(kError, "there are no such events", "outbox events shows seqs and times");
}

/// Counts the events before the replay starts: only then are its first and last seq known.
std::int64_t start_archived(const ReplayVerbOptions& options, store::Replay replay,
                            const OpenReplays& open, const store::SubscriptionRow& row,
                            const Signals& signals) {
  const Chosen chosen = make_chosen(replay, row);
  const ReplayCount found = count_archive(*options.archive, chosen);
  if (found.events == 0) nothing_chosen();
  replay.first = found.first;
  replay.last = found.last;
  return load_archive(*options.archive, chosen, std::move(replay), *open.replays, signals);
}

void print_count(const ReplayCount& found, const ReplayVerbOptions& options,
                 const store::SubscriptionRow& row) {
  if (options.json) {
    print_json({{"subscription", row.spec.name},
                {"sink", row.spec.sink},
                {"events", found.events},
                {"parked_or_given_up", found.held},
                {"first_seq", found.first == 0 ? Json() : Json(found.first)},
                {"last_seq", found.last == 0 ? Json() : Json(found.last)},
                {"first_created_at", time_unless_zero(found.first_us)},
                {"last_created_at", time_unless_zero(found.last_us)},
                {"replay", nullptr}});
    return;
  }
  print("would send {} again to {} (sink {}, topic {})\n", count("event", found.events),
        row.spec.name, row.spec.sink, row.spec.topic.empty() ? "-" : plain(row.spec.topic));
  if (found.events > 0)
    print("  seq {} to {}, created {} to {}\n", found.first, found.last,
          event::time_text(found.first_us), event::time_text(found.last_us));
  if (found.held > 0)
    print("  {} left out: parked now, or discarded or corrected by a person\n",
          count("event", found.held, "is", "are"));
  if (options.archive) print("  events that the log still has are not sent from the archive\n");
  print("nothing was sent (--apply starts it; live delivery of {} then waits until it is done)\n",
        row.spec.name);
}

int start(const ReplayVerbOptions& options, const OpenReplays& open, const Signals& signals) {
  const auto& row = open.row(*options.subscription);
  const store::Replay replay = make_replay(options, open, row);
  if (!options.apply) {
    print_count(options.archive ? count_archive(*options.archive, make_chosen(replay, row))
                                : count_events(replay, open, row),
                options, row);
    return kOk;
  }
  if (options.archive)
    return after_start(start_archived(options, replay, open, row, signals), options, open, signals);
  if (replay.first > replay.last) nothing_chosen();
  return after_start(must_start(open.replays->start(replay)), options, open, signals);
}

/// A replay that was loading is not kept, so JSON shows it as it was, in the state "removed".
void print_removed(const store::Replay& replay, const ReplayVerbOptions& options,
                   const OpenReplays& open) {
  if (!options.json) {
    print("replay {} had not begun and is removed\n", replay.id);
    return;
  }
  Json removed = to_json(replay, open);
  removed["state"] = "removed";
  print_json({{"replay", removed}});
}

int stop(const ReplayVerbOptions& options, const OpenReplays& open) {
  const auto replay = open.find(*options.stop);
  if (!must(open.replays->stop(replay.id, "stopped by " + this_user())))
    throw Failure(kError, fmt::format("replay {} is {}", replay.id, to_string(replay.state)),
                  "only one that is running can be stopped");
  if (replay.state == RunState::loading) {
    print_removed(replay, options, open);
    return kOk;
  }
  const auto now = open.find(*options.stop);
  if (options.json) {
    print_json({{"replay", to_json(now, open)}});
  } else {
    print("replay {} is stopped, live delivery goes on: {}\n", now.id, progress_text(now));
  }
  return kOk;
}

int resume(const ReplayVerbOptions& options, const OpenReplays& open, const Signals& signals) {
  const auto replay = open.find(*options.resume);
  must(open.replays->resume(replay.id));
  return after_start(replay.id, options, open, signals);
}

/// What is recorded if the command changes something.
store::PersonDecision decision(const ReplayVerbOptions& options) {
  if (options.stop) return acting("replay stop", {{"replay", *options.stop}});
  if (options.resume) return acting("replay resume", {{"replay", *options.resume}});
  return acting("replay start", {{"from_seq", given(options.from_seq)},
                                 {"until_seq", given(options.until_seq)},
                                 {"from_time", given(options.from_time)},
                                 {"until_time", given(options.until_time)},
                                 {"ids", options.ids},
                                 {"types", options.types},
                                 {"aggregate_types", options.aggregate_types},
                                 {"headers", options.headers},
                                 {"key", given(options.key)},
                                 {"archive", given(options.archive)}});
}

int replay(const ReplayVerbOptions& options, const Context& context) {
  const int verbs = static_cast<int>(options.list) + static_cast<int>(options.show.has_value()) +
                    static_cast<int>(options.stop.has_value()) +
                    static_cast<int>(options.resume.has_value());
  if (verbs > 1)
    throw Failure(kUsage, "--list, --show, --stop, --resume: one at a time",
                  "outbox replay --help shows what each does");
  if (verbs == 0 && !options.subscription)
    throw Failure(
        kUsage, "of which subscription?",
        "outbox replay NAME shows what would be sent; outbox replay --list shows replays");
  if (options.list && options.apply)
    throw Failure(kUsage, "--list --apply: --list only shows replays, so there is nothing to do",
                  "leave --apply out; outbox replay NAME --apply starts a replay");
  if (verbs == 1 && (options.apply || (options.subscription && !options.list)))
    throw Failure(kUsage, "--show, --stop and --resume name a replay by its id",
                  "leave the subscription and --apply out");
  Signals signals(kInterrupted);
  signals.end_at(2);
  const OpenReplays open(context.store_configuration(), decision(options));
  if (options.list) return list(options, open);
  if (options.show) return show(options, open);
  if (options.stop) return stop(options, open);
  if (options.resume) return resume(options, open, signals);
  return start(options, open, signals);
}

constexpr const char* kReplayFooter =
    R"(The relays carry it out, and go on when this command ends. Live delivery of the subscription waits until the replay is done or
stopped, so the order of each key holds. Only what was delivered before is sent again, with the same ids and the header
outbox-replay. An event that the destination rejects is skipped, and what follows of its key: exit code 3.)";

}  // namespace

void add_replay(CLI::App& root, Context& context) {
  auto options = std::make_shared<ReplayVerbOptions>();
  CLI::App& verb = add_verb(root, "replay", "Send events of a subscription again, or show which",
                            [options, &context] { return replay(*options, context); });
  add_argument(verb, "SUBSCRIPTION", &options->subscription, "Whose events, to its sink");
  add_option(verb, "--from-seq", &options->from_seq, "SEQ", "From this event on");
  add_option(verb, "--until-seq", &options->until_seq, "SEQ", "Up to this event");
  add_option(verb, "--from-time", &options->from_time, "TIME",
             "Created at or after it: RFC 3339, or 15m ago");
  add_option(verb, "--until-time", &options->until_time, "TIME", "Created before it");
  add_option(verb, "--id", &options->ids, "UUID", "The event with this id; may be repeated");
  add_option(verb, "--type", &options->types, "GLOB", "With this event_type; may be repeated");
  add_option(verb, "--aggregate-type", &options->aggregate_types, "GLOB",
             "With this aggregate_type; may be repeated");
  add_option(verb, "--header", &options->headers, "NAME=VALUE",
             "With this header; may be repeated");
  add_option(verb, "--key", &options->key, "TYPE/ID", "With this aggregate_type and aggregate_id");
  add_option(verb, "--archive", &options->archive, "DIR",
             "Of the files that retention wrote before it removed events from the log");
  add_option(verb, "--apply", &options->apply, {}, "Do it; without it only shows how many");
  add_option(verb, "--no-wait", &options->no_wait, {}, "Do not wait until it is done");
  add_option(verb, "--list", &options->list, {}, "Show replays, the newest first");
  add_option(verb, "--limit", &options->limit, "N", "With --list: show at most this many");
  add_option(verb, "--show", &options->show, "ID", "Show a replay and what it skipped, as JSON");
  add_option(verb, "--stop", &options->stop, "ID", "Stop a replay; live delivery goes on");
  add_option(verb, "--resume", &options->resume, "ID", "Go on with a replay that was stopped");
  add_option(verb, "--json", &options->json, {}, "As JSON");
  add_footer(verb, kReplayFooter);
  add_example(verb, "outbox replay orders --from-time 2026-01-05T08:00:00Z --type \"Order*\"");
  add_example(verb, "outbox replay orders --from-seq 1200 --until-seq 1300 --apply");
  add_example(verb,
              "outbox replay orders --archive /var/lib/outbox/archive --from-time 90d --apply");
}

}  // namespace outbox::cli
