// outbox inbox: which messages consumers have received.
#include "store/inbox.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/event_input.hpp"
#include "cli/exit.hpp"
#include "cli/output.hpp"
#include "cli/table.hpp"
#include "cli/verbs.hpp"
#include "event/time_text.hpp"
#include "health/finding.hpp"

namespace outbox::cli {
namespace {

struct InboxOptions {
  std::string consumer;
  std::string id;
  std::string type;
  std::optional<std::string> since;
  std::optional<std::string> until;
  std::optional<std::string> before;
  std::uint64_t limit{100};
  bool messages{false};
  bool json{false};
};

/// The most messages of a consumer that are counted.
constexpr std::int64_t kMostCounted = 10'000;

/// The end of a page, such as "1795410928283123.7.billing.ID": the time, how long the consumer's
/// name is, the name, and the id, both of which may have any characters.
std::string place_text(const store::InboxRow& row) {
  return fmt::format("{}.{}.{}.{}", row.received_us, row.consumer.size(), row.consumer,
                     row.message_id);
}

store::InboxPlace parse_place(const std::string& text) {
  std::string_view rest = text;
  const auto number = [&rest](auto& into) {
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), into);
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    const bool found = error == std::errc() && rest.starts_with('.');
    if (found) rest.remove_prefix(1);
    return found;
  };
  store::InboxPlace place;
  std::size_t length = 0;
  const bool parsed = number(place.received_us) && event::is_time(place.received_us) &&
                      number(length) && length < rest.size() && rest[length] == '.';
  if (!parsed)
    throw Failure(kUsage, "--before " + text + ": is not a place in the list",
                  "the list ends with it when there are more");
  place.consumer = rest.substr(0, length);
  place.message_id = rest.substr(length + 1);
  return place;
}

store::InboxFilter make_inbox_filter(const InboxOptions& options) {
  store::InboxFilter filter{
      .consumer = options.consumer, .message_id = options.id, .event_type = options.type};
  if (options.since) filter.since_us = parse_moment("--since", *options.since);
  if (options.until) filter.until_us = parse_moment("--until", *options.until);
  if (options.before) filter.before = parse_place(*options.before);
  return filter;
}

Json to_json(const store::InboxRow& row) {
  return {{"consumer", row.consumer},
          {"id", row.message_id},
          {"type", or_null(row.event_type)},
          {"place", or_null(row.place)},
          {"task", row.task ? Json(row.task->str()) : Json()},
          {"received_at", event::time_text(row.received_us)},
          {"arrivals", row.arrivals}};
}

void print_messages(const std::vector<store::InboxRow>& rows) {
  Table table({"RECEIVED", "CONSUMER", "ID", "TYPE", "PLACE", "TASK", "ARRIVALS"});
  for (const store::InboxRow& row : rows) {
    const auto or_dash = [](const std::string& text) { return text.empty() ? "-" : plain(text); };
    table.add({event::time_text(row.received_us), plain(row.consumer), plain(row.message_id),
               or_dash(row.event_type), or_dash(row.place), row.task ? row.task->str() : "-",
               std::to_string(row.arrivals)});
  }
  table.print();
}

int print_consumers(const InboxOptions& options, store::Inbox& inbox) {
  const auto consumers = must(inbox.consumers(kMostCounted));
  if (options.json) {
    Json list = Json::array();
    for (const store::InboxConsumer& one : consumers)
      list.push_back({{"name", one.name},
                      {"messages", one.messages},
                      {"messages_is_more", one.more},
                      {"oldest_received_at", event::time_text(one.oldest_us)},
                      {"last_received_at", event::time_text(one.newest_us)}});
    print_json({{"consumers", list}});
    return kOk;
  }
  if (consumers.empty()) {
    print("the inbox is empty: no consumer has received a message\n");
    return kOk;
  }
  Table table({"CONSUMER", "MESSAGES", "OLDEST RECEIVED", "LAST RECEIVED"});
  for (const store::InboxConsumer& one : consumers)
    table.add({plain(one.name), std::to_string(one.messages) + (one.more ? "+" : ""),
               event::time_text(one.oldest_us), event::time_text(one.newest_us)});
  table.print();
  return kOk;
}

int print_page(const InboxOptions& options, const store::InboxFilter& filter, store::Inbox& inbox) {
  const auto limit = static_cast<std::size_t>(std::min<std::uint64_t>(options.limit, 100'000));
  auto rows = must(inbox.list(filter, limit + 1));
  const bool more = rows.size() > limit;
  if (more) rows.resize(limit);
  if (options.json) {
    Json messages = Json::array();
    for (const store::InboxRow& row : rows) messages.push_back(to_json(row));
    print_json({{"messages", messages},
                {"more", more},
                {"next", more ? Json(place_text(rows.back())) : Json()}});
    return kOk;
  }
  if (rows.empty()) {
    print(
        "no such message was received, or it was received so long ago that its row was removed\n");
    return kOk;
  }
  print_messages(rows);
  if (more)
    print("... there are more: --before {} shows them\n",
          plain(health::shell_word(place_text(rows.back()))));
  return kOk;
}

int inbox(const InboxOptions& options, const Context& context) {
  if (options.limit == 0) throw Failure(kUsage, "--limit 0: nothing would be shown", "1 or more");
  const store::InboxFilter filter = make_inbox_filter(options);
  const auto store = Context::checked_store(context.store_configuration());
  const auto inbox = must(store->inbox());
  const bool chosen = options.messages || !options.consumer.empty() || !options.id.empty() ||
                      !options.type.empty() || options.since || options.until || options.before;
  return chosen ? print_page(options, filter, *inbox) : print_consumers(options, *inbox);
}

}  // namespace

void add_inbox(CLI::App& root, Context& context) {
  auto options = std::make_shared<InboxOptions>();
  CLI::App& verb = add_verb(root, "inbox", "Show which messages consumers have received",
                            [options, &context] { return inbox(*options, context); });
  add_option(verb, "--consumer", &options->consumer, "NAME", "Of this consumer");
  add_option(verb, "--id", &options->id, "ID", "The message with this id");
  add_option(verb, "--type", &options->type, "TYPE", "Of this type");
  add_option(verb, "--since", &options->since, "TIME",
             "Received at or after it: RFC 3339, or 15m ago");
  add_option(verb, "--until", &options->until, "TIME", "Received before it");
  add_option(verb, "--before", &options->before, "PLACE",
             "Behind this place, with which a list ends that has more");
  add_option(verb, "--limit", &options->limit, "N", "Show at most this many, the newest first");
  add_option(verb, "--messages", &options->messages, {},
             "Show messages of all consumers, if no other option chooses some");
  add_option(verb, "--json", &options->json, {}, "As JSON");
  add_footer(
      verb,
      "Without an option it lists the consumers, and counts at most 10,000 messages of each. TASK is the task that a message\n"
      "became (outbox tasks show ID), and ARRIVALS how often the broker has delivered it: it became a task once.");
  add_example(verb, "outbox inbox --consumer billing --id 01a1fffe-b175-7652-8989-de74aa02b3f2");
}

}  // namespace outbox::cli
