// outbox parked: lists, shows, retries, discards and corrects events that could not be delivered.
#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/count.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "cli/acting.hpp"
#include "cli/event_input.hpp"
#include "cli/exit.hpp"
#include "cli/output.hpp"
#include "cli/parked_errors.hpp"
#include "cli/parked_rows.hpp"
#include "cli/table.hpp"
#include "cli/verbs.hpp"
#include "event/headers.hpp"
#include "event/json_event.hpp"
#include "event/time_text.hpp"

namespace outbox::cli {
namespace {

struct ParkedOptions {
  std::vector<std::string> events;  ///< Ids or seqs.
  std::optional<std::string> subscription;
  std::optional<std::string> state;
  std::optional<std::string> type;
  std::optional<std::string> key;
  std::optional<std::string> error;
  std::optional<std::string> after;
  std::uint64_t limit{100};
  std::optional<std::string> reason;
  bool keep_attempts{false};
  // The options of edit.
  std::string event;
  std::optional<std::string> event_type;
  std::optional<std::string> payload;
  std::optional<std::string> payload_text;  ///< Never the name of a file.
  std::optional<std::string> content_type;
  std::vector<std::string> headers;
  std::vector<std::string> without_headers;
  bool apply{false};
  bool preview{false};
  bool json{false};
};

// ---- which events

std::int32_t find_subscription(const ParkedRows& open, const std::string& name) {
  std::vector<std::string_view> known;
  for (const auto& row : open.rows) {
    if (row.spec.name == name) return row.id;
    known.emplace_back(row.spec.name);
  }
  throw Failure(kError, "unknown subscription: " + name,
                did_you_mean(name, known, "`outbox subscription list` shows them"));
}

store::ParkedState state_of_word(const std::string& word) {
  for (const auto state : {store::ParkedState::retrying, store::ParkedState::waiting,
                           store::ParkedState::dead, store::ParkedState::running}) {
    if (word == to_string(state)) return state;
  }
  throw Failure(kUsage, "--state " + word + ": unknown", "retrying, waiting, dead or running");
}

store::ParkedFilter make_filter(const ParkedOptions& options, const ParkedRows& open) {
  store::ParkedFilter filter{.aggregate_type = options.type.value_or(""),
                             .aggregate_id = options.key.value_or(""),
                             .error = options.error.value_or("")};
  if (options.subscription) filter.subscription = find_subscription(open, *options.subscription);
  if (options.state) filter.state = state_of_word(*options.state);
  filter.after = parse_page_end(options.after);
  return filter;
}

/// Sets the id or the seq of the filter.
void add_event(store::ParkedFilter& filter, const std::string& text) {
  const bool digits =
      !text.empty() && text.size() < 19 &&
      std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  if (digits) {
    filter.seq = std::stoll(text);
    return;
  }
  const auto id = EventId::parse(text);
  if (!id)
    throw Failure(kUsage, text + ": is neither an id nor a seq", "`outbox parked` shows both");
  filter.id = *id;
}

std::vector<store::ParkedListing> find(const ParkedOptions& options, const ParkedRows& open,
                                       std::size_t limit, bool whole) {
  const store::ParkedFilter filter = make_filter(options, open);
  if (options.events.empty()) return must(open.parked->list(filter, limit, whole));
  std::vector<store::ParkedListing> all;
  for (const std::string& text : options.events) {
    store::ParkedFilter one = filter;
    add_event(one, text);
    auto found = must(open.parked->list(one, limit, whole));
    if (found.empty())
      throw Failure(kError, text + ": no such parked event",
                    "`outbox parked` lists them; it may have been delivered meanwhile");
    all.insert(all.end(), std::make_move_iterator(found.begin()),
               std::make_move_iterator(found.end()));
  }
  return all;
}

// ---- showing

std::string show_key(const store::ParkedListing& event) {
  return event.aggregate_id.empty() ? event.aggregate_type
                                    : event.aggregate_type + "/" + event.aggregate_id;
}

std::string next_attempt(const store::ParkedListing& event) {
  return event.state == store::ParkedState::retrying ? event::time_text(event.next_attempt_at_us)
                                                     : "-";
}

Json to_json(const store::ParkedListing& event, const ParkedRows& open, bool whole) {
  Json json{{"subscription", open.subscription_name(event.subscription)},
            {"seq", event.seq},
            {"id", event.id.str()},
            {"state", to_string(event.state)},
            {"attempts", event.attempts},
            {"error", or_null(event.error)},
            {"aggregate_type", event.aggregate_type},
            {"aggregate_id", event.aggregate_id},
            {"event_type", event.event_type},
            {"parked_at", event::time_text(event.parked_at_us)},
            {"next_attempt_at", event.state == store::ParkedState::retrying
                                    ? Json(event::time_text(event.next_attempt_at_us))
                                    : Json()}};
  if (whole) {
    json["content_type"] = or_null(event.content_type);
    json["headers"] = try_parse_json<Json>(event.headers);
    json["payload"] = event.payload;
  }
  return json;
}

int list(const ParkedOptions& options, const Context& context) {
  if (options.limit == 0) throw Failure(kUsage, "--limit 0: nothing would be shown", "1 or more");
  const ParkedRows open(context.store_configuration());
  const auto limit = static_cast<std::size_t>(std::min<std::uint64_t>(options.limit, 1'000'000));
  auto found = find(options, open, limit + 1, false);
  const bool more = found.size() > limit;
  if (more) found.resize(limit);
  if (options.json) {
    Json events = Json::array();
    for (const auto& event : found) events.push_back(to_json(event, open, false));
    print_json({{"events", events},
                {"more", more},
                {"next", more ? Json(page_end_text(found.back())) : Json()}});
    return kOk;
  }
  if (found.empty()) {
    print("no parked events\n");
    return kOk;
  }
  Table table({"SUBSCRIPTION", "SEQ", "STATE", "ATTEMPTS", "NEXT ATTEMPT", "KEY", "TYPE", "ID"});
  for (const auto& event : found) {
    table.add({open.subscription_name(event.subscription), std::to_string(event.seq),
               to_string(event.state), std::to_string(event.attempts), next_attempt(event),
               plain(show_key(event)), plain(event.event_type), event.id.str()});
    if (!event.error.empty()) table.note("  error: " + event.error);
  }
  table.print();
  if (more) print("... there are more: --after {} shows them\n", page_end_text(found.back()));
  return kOk;
}

// ---- by error

Json to_json(const ErrorGroup& group, const ParkedRows& open) {
  return {{"subscription", open.subscription_name(group.newest.subscription)},
          {"error", or_null(group.newest.error)},
          {"events", group.events},
          {"dead", group.dead},
          {"first_parked_at", event::time_text(group.first_us)},
          {"newest", to_json(group.newest, open, false)}};
}

void print_errors(const std::vector<ErrorGroup>& groups, const ParkedRows& open) {
  Table table({"SUBSCRIPTION", "EVENTS", "DEAD", "FIRST PARKED", "NEWEST"});
  for (const ErrorGroup& group : groups) {
    table.add({open.subscription_name(group.newest.subscription), std::to_string(group.events),
               std::to_string(group.dead), event::time_text(group.first_us),
               "seq " + std::to_string(group.newest.seq)});
    table.note(group.newest.error.empty() ? "  they wait for an earlier event of their key"
                                          : "  error: " + group.newest.error);
  }
  table.print();
}

int errors(const ParkedOptions& options, const Context& context) {
  if (options.limit == 0) throw Failure(kUsage, "--limit 0: nothing would be shown", "1 or more");
  const ParkedRows open(context.store_configuration());
  ParkedErrors errors;
  each_page(open, make_filter(options, open), [&](const auto& page) {
    for (const store::ParkedListing& event : page) {
      // A task that runs has no error; its text says how long it runs.
      if (event.state != store::ParkedState::running) errors.add(event);
    }
  });
  std::vector<ErrorGroup> groups = errors.groups();
  const bool more = groups.size() > options.limit || errors.others() > 0;
  if (groups.size() > options.limit) groups.resize(static_cast<std::size_t>(options.limit));
  if (options.json) {
    Json list = Json::array();
    for (const ErrorGroup& group : groups) list.push_back(to_json(group, open));
    print_json({{"errors", list}, {"more", more}});
    return kOk;
  }
  if (groups.empty()) {
    print("no parked events\n");
    return kOk;
  }
  print_errors(groups, open);
  if (more) print("... there are more errors: --limit N shows them\n");
  return kOk;
}

int show(const ParkedOptions& options, const Context& context) {
  const ParkedRows open(context.store_configuration());
  Json events = Json::array();
  for (const auto& event : find(options, open, store::kMostChanged, true))
    events.push_back(to_json(event, open, true));
  print_json({{"events", events}});
  return kOk;
}

// ---- changing

/// Which events a command is about must be said: by id or seq, or by a filter.
void require_choice(const ParkedOptions& options, const char* verb) {
  if (!options.events.empty() || options.subscription || options.state || options.type ||
      options.key || options.error)
    return;
  throw Failure(kUsage, std::string(verb) + ": which events?",
                "ids or seqs, or --subscription, --state, --type, --key, --error");
}

/// What is recorded of what the command changes. The new body of an event is not: it may be secret,
/// and the copy has it.
store::PersonDecision decision(const ParkedOptions& options, const char* verb) {
  return acting(verb,
                {{"events", options.events},
                 {"event", options.event},
                 {"subscription", given(options.subscription)},
                 {"state", given(options.state)},
                 {"type", given(options.type)},
                 {"key", given(options.key)},
                 {"error", given(options.error)},
                 {"keep_attempts", options.keep_attempts}},
                options.reason.value_or(""));
}

/// Calls `take` with the events that are named, or with all that fit.
template <class Take>
void each_chosen(const ParkedOptions& options, const ParkedRows& open, Take take) {
  if (options.events.empty()) return each_page(open, make_filter(options, open), take);
  take(find(options, open, store::kMostChanged, false));
}

/// Prints what a command would do with --apply.
void would(const char* what, const ParkedOptions& options, const ParkedRows& open,
           const char* apply) {
  constexpr std::size_t kShown = 100;
  std::size_t all = 0;
  each_chosen(options, open, [&](const std::vector<store::ParkedListing>& events) {
    for (const auto& event : events) {
      if (++all > kShown) continue;
      print("would {} {} seq {} ({}, {})\n", what, open.subscription_name(event.subscription),
            event.seq, plain(show_key(event)), event.id.str());
    }
  });
  if (all > kShown) print("... and {} more\n", all - kShown);
  print("{}; nothing was changed ({})\n", count("event", all), apply);
}

int retry(const ParkedOptions& options, const Context& context) {
  require_choice(options, "retry");
  const ParkedRows open(context.store_configuration(), decision(options, "parked retry"));
  if (options.preview || (options.events.empty() && !options.apply)) {
    would("send again", options, open, "--apply sends them again");
    return kOk;
  }
  std::size_t dead = 0;
  ChangeProgress progress;
  each_chosen(options, open, [&](const std::vector<store::ParkedListing>& events) {
    dead += count_overtaken(events);
    progress.changed(
        change_each(events, [&](std::int32_t subscription, const std::vector<std::int64_t>& seqs) {
          return open.parked->retry(subscription, seqs, options.keep_attempts);
        }));
  });
  print("{} sent again\n", count("event", progress.all(), "is", "are"));
  if (dead > 0)
    print("{} dead: later events of the same key may have been delivered before\n",
          count("event", dead, "was", "were"));
  return kOk;
}

int discard(const ParkedOptions& options, const Context& context) {
  require_choice(options, "discard");
  if (options.apply && !options.reason)
    throw Failure(kUsage, "discard: --reason is missing", "--reason \"duplicate of order 42\"");
  const ParkedRows open(context.store_configuration(), decision(options, "parked discard"));
  if (!options.apply) {
    would("discard", options, open, "--apply --reason TEXT discards them for good");
    return kOk;
  }
  ChangeProgress progress;
  each_chosen(options, open, [&](const std::vector<store::ParkedListing>& events) {
    progress.changed(
        change_each(events, [&](std::int32_t subscription, const std::vector<std::int64_t>& seqs) {
          return open.parked->discard(subscription, seqs, this_user(), *options.reason);
        }));
  });
  print("{} discarded\n", count("event", progress.all()));
  return kOk;
}

// ---- correcting

store::ParkedListing find_one(const ParkedOptions& options, const ParkedRows& open) {
  ParkedOptions one = options;
  one.events = {options.event};
  auto found = find(one, open, 2, true);
  if (found.size() > 1)
    throw Failure(kError, options.event + ": parked more than once",
                  "--subscription NAME, or the seq: outbox parked list");
  return std::move(found.front());
}

void remove_header(std::vector<Header>& headers, std::string_view name) {
  std::erase_if(headers, [&](const Header& one) { return equal_ignoring_case(one.first, name); });
}

/// The event with what the options replace.
Event corrected(const ParkedOptions& options, const store::ParkedListing& old) {
  Event event{.aggregate_type = old.aggregate_type,
              .aggregate_id = old.aggregate_id,
              .event_type = options.event_type.value_or(old.event_type),
              .payload = options.payload ? read_payload(*options.payload)
                                         : options.payload_text.value_or(old.payload),
              .headers = must(event::headers_from_json(old.headers)),
              .content_type = options.content_type.value_or(old.content_type)};
  remove_header(event.headers, event::kEditedFromHeader);
  for (const std::string& name : options.without_headers) remove_header(event.headers, name);
  for (const std::string& text : options.headers) {
    Header header = parse_header(text);
    remove_header(event.headers, header.first);
    event.headers.push_back(std::move(header));
  }
  if (const Status valid = validate(event); !valid)
    throw Failure(options.payload && is_read(*options.payload) ? kError : kUsage,
                  valid.error().text());
  return event;
}

int edit(const ParkedOptions& options, const Context& context) {
  if (!options.event_type && !options.payload && !options.payload_text && !options.content_type &&
      options.headers.empty() && options.without_headers.empty())
    throw Failure(kUsage, "edit: nothing to change",
                  "--payload, --event-type, --content-type, --header or --without-header");
  if (options.apply && !options.reason)
    throw Failure(kUsage, "edit: --reason is missing", "--reason \"amount had a comma\"");
  const ParkedRows open(context.store_configuration(), decision(options, "parked edit"));
  const store::ParkedListing old = find_one(options, open);
  Event event = corrected(options, old);
  const std::string place =
      fmt::format("{} seq {} ({}, {})", open.subscription_name(old.subscription), old.seq,
                  plain(show_key(old)), old.id.str());
  if (!options.apply) {
    print("would replace {}\n  type: {}\n  content type: {}\n  headers: {}\n  payload: {}\n", place,
          plain(event.event_type), plain(event.content_type),
          plain(event::headers_to_json(event.headers)), plain(event.payload));
    print("nothing was changed (--apply --reason TEXT puts this copy in its place)\n");
    return kOk;
  }
  event.headers.emplace_back(event::kEditedFromHeader, old.id.str());
  const EventId copy = EventId::generate();
  must(open.parked->edit({.subscription = old.subscription,
                          .seq = old.seq,
                          .id = old.id,
                          .new_id = copy,
                          .event_type = event.event_type,
                          .payload = event.payload,
                          .content_type = event.content_type,
                          .headers = event::headers_to_json(event.headers),
                          .actor = this_user(),
                          .reason = *options.reason}));
  print("replaced {}\nthe copy is sent next, as {}\n", place, copy.str());
  if (old.state == store::ParkedState::dead && !old.aggregate_id.empty())
    print("it was dead: later events of its key may have been delivered before it\n");
  return kOk;
}

// ---- options

void add_filter(CLI::App& verb, const std::shared_ptr<ParkedOptions>& options) {
  add_option(verb, "--subscription", &options->subscription, "NAME", "Of this subscription");
  add_option(verb, "--state", &options->state, "retrying|waiting|dead|running", "In this state");
  add_option(verb, "--type", &options->type, "TYPE", "With this aggregate_type");
  add_option(verb, "--key", &options->key, "ID", "With this aggregate_id");
  add_option(verb, "--error", &options->error, "TEXT", "Whose error contains this");
}

}  // namespace

void add_parked(CLI::App& root, Context& context) {
  auto options = std::make_shared<ParkedOptions>();
  CLI::App& verb = add_verb(root, "parked",
                            "List, retry, correct or discard events that could not be delivered");
  add_example(verb, "outbox parked list");
  CLI::App& listing = add_verb(verb, "list", "Show parked events",
                               [options, &context] { return list(*options, context); });
  add_filter(listing, options);
  add_option(listing, "--after", &options->after, "PLACE",
             "After the events that were shown, which end with the place of the next ones");
  add_option(listing, "--limit", &options->limit, "N", "Show at most this many");
  add_option(listing, "--json", &options->json, {}, "As JSON");
  add_example(listing, "outbox parked list --subscription orders --state dead");
  CLI::App& by_error =
      add_verb(verb, "errors", "Show which errors parked events have, and how many",
               [options, &context] { return errors(*options, context); });
  add_filter(by_error, options);
  add_option(by_error, "--limit", &options->limit, "N", "Show at most this many errors");
  add_option(by_error, "--json", &options->json, {}, "As JSON");
  add_example(by_error, "outbox parked errors --state dead");
  CLI::App& showing = add_verb(verb, "show", "Show events with payload and headers, as JSON",
                               [options, &context] { return show(*options, context); });
  add_argument(showing, "EVENT ...", &options->events, "Ids or seqs");
  add_option(showing, "--json", &options->json, {}, "As JSON, as without it");
  add_filter(showing, options);
  add_example(showing, "outbox parked show 1234");
  CLI::App& retrying =
      add_verb(verb, "retry", "Send events again now, or when it is their key's turn",
               [options, &context] { return retry(*options, context); });
  add_argument(retrying, "EVENT ...", &options->events, "Ids or seqs");
  add_filter(retrying, options);
  add_option(retrying, "--keep-attempts", &options->keep_attempts, {},
             "Do not count the attempts from 0 again");
  add_option(retrying, "--apply", &options->apply, {},
             "Do it to all that fit; without it only shows which");
  add_option(retrying, "--preview", &options->preview, {},
             "Only show which, also if they are named");
  add_example(retrying, "outbox parked retry --subscription orders --error \"too large\" --apply");
  CLI::App& discarding = add_verb(verb, "discard", "Give events up: they are never delivered",
                                  [options, &context] { return discard(*options, context); });
  add_argument(discarding, "EVENT ...", &options->events, "Ids or seqs");
  add_filter(discarding, options);
  add_option(discarding, "--apply", &options->apply, {}, "Do it; without it only shows which");
  add_option(discarding, "--reason", &options->reason, "TEXT", "Kept in the table parked_end");
  add_example(discarding, "outbox parked discard 1234 --apply --reason \"customer was deleted\"");
  CLI::App& editing = add_verb(verb, "edit", "Send a corrected copy in place of an event",
                               [options, &context] { return edit(*options, context); });
  add_argument(editing, "EVENT", &options->event, "Id or seq");
  add_option(editing, "--subscription", &options->subscription, "NAME", "Of this subscription");
  add_option(editing, "--payload", &options->payload, "TEXT",
             "The new body; @FILE reads a file, - reads stdin");
  add_option(editing, "--payload-text", &options->payload_text, "TEXT",
             "The new body as it is, also if it begins with @");
  add_option(editing, "--event-type", &options->event_type, "TYPE", "The new event_type");
  add_option(editing, "--content-type", &options->content_type, "TYPE",
             "The new media type of the payload");
  add_option(editing, "--header", &options->headers, "NAME=VALUE",
             "Set this header; may be repeated");
  add_option(editing, "--without-header", &options->without_headers, "NAME",
             "Remove this header; may be repeated");
  add_option(editing, "--apply", &options->apply, {}, "Do it; without it only shows the copy");
  add_option(editing, "--reason", &options->reason, "TEXT", "Kept in the table parked_end");
  add_example(
      editing,
      "outbox parked edit 1234 --payload @fixed.json --apply --reason \"amount had a comma\"");
}

}  // namespace outbox::cli
