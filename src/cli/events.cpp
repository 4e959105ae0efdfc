// outbox events: events of the log, and what became of each in every subscription.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/count.hpp"
#include "base/json.hpp"
#include "cli/event_input.hpp"
#include "cli/exit.hpp"
#include "cli/output.hpp"
#include "cli/table.hpp"
#include "cli/verbs.hpp"
#include "event/time_text.hpp"

namespace outbox::cli {
namespace {

struct EventsOptions {
  std::optional<std::string> id;
  std::optional<std::string> key;
  std::optional<std::string> type;
  std::optional<std::string> since;
  std::optional<std::string> until;
  std::optional<std::uint64_t> before;
  std::uint64_t limit{20};
  bool payload{false};
  bool json{false};
};

// ---- which events

store::EventFilter make_filter(const EventsOptions& options) {
  store::EventFilter filter{.event_type = options.type.value_or("")};
  if (options.id) {
    const auto id = EventId::parse(*options.id);
    if (!id)
      throw Failure(kUsage, "--id " + *options.id + ": is not a UUID", "outbox events shows ids");
    if (options.key || options.type || options.since || options.until || options.before)
      throw Failure(kUsage, "--id names the event: outbox events", "leave the other options out");
    filter.id = *id;
  }
  if (options.key) {
    std::tie(filter.aggregate_type, filter.aggregate_id) = parse_key(*options.key);
  }
  if (options.since) filter.since_us = parse_moment("--since", *options.since);
  if (options.until) filter.until_us = parse_moment("--until", *options.until);
  if (options.before) filter.before = bounded_number(*options.before);
  return filter;
}

// ---- showing

std::string time_or_dash(std::optional<std::int64_t> us) {
  return us ? event::time_text(*us) : "-";
}

std::string show_key(const store::EventListing& event) {
  return event.aggregate_id.empty() ? event.aggregate_type
                                    : event.aggregate_type + "/" + event.aggregate_id;
}

/// A line such as "orders: retrying, 3 attempts, next 2026-...: too large".
std::string describe_life(const store::EventLife& life) {
  std::string line = "  " + life.subscription + ": " + life.state;
  if (life.published_by_us) line += " by " + event::time_text(*life.published_by_us);
  if (life.attempts) line += ", " + count("attempt", *life.attempts);
  if (life.next_attempt_at_us) line += ", next " + event::time_text(*life.next_attempt_at_us);
  if (life.waiting_for) {
    line += ", behind " + life.waiting_for->str() + " (seq " +
            std::to_string(life.waiting_for_seq.value_or(0)) + ")";
  }
  if (life.replaced_by) line += ", its copy is " + life.replaced_by->str();
  if (!life.ended_by.empty()) line += ", by " + life.ended_by;
  for (const std::string& why : {life.reason, life.error}) {
    if (!why.empty()) line += ": " + why;
  }
  return line;
}

template <class Value>
Json value_or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json();
}

Json id_or_null(const std::optional<EventId>& id) { return id ? Json(id->str()) : Json(); }

Json to_json(const store::EventLife& life) {
  return {{"subscription", life.subscription},
          {"state", life.state},
          {"published_by", time_or_null(life.published_by_us)},
          {"attempts", value_or_null(life.attempts)},
          {"next_attempt_at", time_or_null(life.next_attempt_at_us)},
          {"error", or_null(life.error)},
          {"waiting_for", id_or_null(life.waiting_for)},
          {"waiting_for_seq", value_or_null(life.waiting_for_seq)},
          {"ended_by", or_null(life.ended_by)},
          {"reason", or_null(life.reason)},
          {"replaced_by", id_or_null(life.replaced_by)}};
}

Json to_json(const store::EventListing& event, bool payload) {
  Json json{{"seq", event.seq},
            {"id", event.id.str()},
            {"aggregate_type", event.aggregate_type},
            {"aggregate_id", event.aggregate_id},
            {"event_type", event.content_kept ? Json(event.event_type) : Json()},
            {"content_type", or_null(event.content_type)},
            {"created_at", event::time_text(event::to_us(event.created_at))},
            {"occurred_at", time_or_null(event.occurred_at)},
            {"in_log", event.in_log},
            {"content_kept", event.content_kept},
            {"subscriptions", Json::array()}};
  for (const auto& life : event.subscriptions) json["subscriptions"].push_back(to_json(life));
  if (payload) {
    json["headers"] = event.content_kept ? try_parse_json<Json>(event.headers) : Json();
    json["payload"] = event.content_kept ? Json(event.payload) : Json();
  }
  return json;
}

void print_text(const store::EventPage& page, bool payload) {
  if (page.events.empty()) {
    print("no events\n");
    return;
  }
  Table table({"SEQ", "CREATED", "KEY", "TYPE", "ID"});
  for (const auto& event : page.events) {
    table.add({std::to_string(event.seq), time_or_dash(event::to_us(event.created_at)),
               show_key(event), event.content_kept ? event.event_type : "-", event.id.str()});
    if (!event.content_kept) {
      table.note("  a corrected copy: its type, payload and headers are not kept after its end");
    } else if (!event.in_log) {
      table.note("  not in the log: a corrected copy, or removed from it");
    }
    for (const auto& life : event.subscriptions) table.note(describe_life(life));
    if (!payload || !event.content_kept) continue;
    table.note("  headers: " + event.headers);
    table.note("  payload: " + event.payload);
  }
  table.print();
}

int events(const EventsOptions& options, const Context& context) {
  if (options.limit == 0) throw Failure(kUsage, "--limit 0: nothing would be shown", "1 or more");
  const store::EventFilter filter = make_filter(options);
  const auto store = Context::checked_store(context.store_configuration());
  const auto limit = static_cast<std::size_t>(std::min<std::uint64_t>(options.limit, 100'000));
  auto page = must(must(store->events())->list(filter, limit + 1, options.payload));
  if (filter.id && page.events.empty()) event_not_found(*options.id, "event", page.complete);
  const bool more = page.events.size() > limit;
  if (more) page.events.resize(limit);
  const bool partly = !filter.id && !page.complete && !more;
  std::optional<std::int64_t> next;
  if (more) next = page.events.back().seq;
  if (partly) next = page.searched_from;
  if (options.json) {
    Json list = Json::array();
    for (const auto& event : page.events) list.push_back(to_json(event, options.payload));
    print_json({{"events", list},
                {"more", more},
                {"complete", !partly},
                {"next", next ? Json(std::to_string(*next)) : Json()}});
    return kOk;
  }
  print_text(page, options.payload);
  if (more) print("... there are more: --before {} shows them\n", *next);
  if (partly) {
    print(
        "... only {} events were looked at (hint: --before {} goes on; for a key also outbox migrate "
        "--with-lookup-indexes)\n",
        store::kMostSearched, *next);
  }
  return kOk;
}

constexpr const char* kEventsFooter = R"(What became of an event in a subscription:
  pending     not passed yet
  published   accepted by the destination after it was created and by the time shown
  filtered    the subscription does not want it
  skipped     the subscription began after it
  retrying, waiting, dead, discarded, edited   parked: outbox parked
  running                                      a task whose worker runs it)";

}  // namespace

void add_events(CLI::App& root, Context& context) {
  auto options = std::make_shared<EventsOptions>();
  CLI::App& verb =
      add_verb(root, "events", "Show events, and what became of them in every subscription",
               [options, &context] { return events(*options, context); });
  add_option(verb, "--id", &options->id, "UUID", "The event with this id");
  add_option(verb, "--key", &options->key, "TYPE/ID", "With this aggregate_type and aggregate_id");
  add_option(verb, "--type", &options->type, "TYPE", "With this event_type");
  add_option(verb, "--since", &options->since, "TIME",
             "Created at or after it: RFC 3339, or 15m ago");
  add_option(verb, "--until", &options->until, "TIME", "Created before it");
  add_option(verb, "--before", &options->before, "SEQ", "Before the event with this seq");
  add_option(verb, "--limit", &options->limit, "N", "Show at most this many, the newest first");
  add_option(verb, "--payload", &options->payload, {}, "With payload and headers");
  add_option(verb, "--json", &options->json, {}, "As JSON");
  add_footer(verb, kEventsFooter);
  add_example(verb, "outbox events --key order/42");
  add_example(verb, "outbox events --id 0198c5b2-6d1f-7c3a-9d5e-0a1b2c3d4e5f");
}

}  // namespace outbox::cli
