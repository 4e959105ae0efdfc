// outbox inbox: which messages consumers have received.
#include "store/inbox.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/event_input.hpp"
#include "cli/exit.hpp"
#include "cli/output.hpp"
#include "cli/table.hpp"
#include "cli/verbs.hpp"
#include "event/time_text.hpp"

namespace outbox::cli {
namespace {

struct InboxOptions {
  std::string consumer;
  std::string id;
  std::string type;
  std::optional<std::string> since;
  std::optional<std::string> until;
  std::uint64_t limit{100};
  bool json{false};
};

store::InboxFilter make_inbox_filter(const InboxOptions& options) {
  store::InboxFilter filter{
      .consumer = options.consumer, .message_id = options.id, .event_type = options.type};
  if (options.since) filter.since_us = parse_moment("--since", *options.since);
  if (options.until) filter.until_us = parse_moment("--until", *options.until);
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
  const auto consumers = must(inbox.consumers());
  if (options.json) {
    Json list = Json::array();
    for (const store::InboxRow& one : consumers)
      list.push_back(
          {{"name", one.consumer},
           {"last_received_at",
            time_or_null(one.received_us == 0 ? std::nullopt : std::optional(one.received_us))}});
    print_json({{"consumers", list}});
    return kOk;
  }
  if (consumers.empty()) {
    print("the inbox is empty: no consumer has received a message\n");
    return kOk;
  }
  Table table({"CONSUMER", "LAST RECEIVED"});
  for (const store::InboxRow& one : consumers)
    table.add(
        {plain(one.consumer), one.received_us == 0 ? "-" : event::time_text(one.received_us)});
  table.print();
  return kOk;
}

int inbox(const InboxOptions& options, const Context& context) {
  if (options.limit == 0) throw Failure(kUsage, "--limit 0: nothing would be shown", "1 or more");
  const store::InboxFilter filter = make_inbox_filter(options);
  const auto store = Context::checked_store(context.store_configuration());
  const auto inbox = must(store->inbox());
  const bool any = !options.consumer.empty() || !options.id.empty() || !options.type.empty() ||
                   options.since || options.until;
  if (!any) return print_consumers(options, *inbox);
  const auto limit = static_cast<std::size_t>(std::min<std::uint64_t>(options.limit, 100'000));
  auto rows = must(inbox->list(filter, limit + 1));
  const bool more = rows.size() > limit;
  if (more) rows.resize(limit);
  if (options.json) {
    Json messages = Json::array();
    for (const store::InboxRow& row : rows) messages.push_back(to_json(row));
    print_json({{"messages", messages}, {"more", more}});
    return kOk;
  }
  if (rows.empty()) {
    print(
        "no such message was received, or it was received so long ago that its row was removed\n");
    return kOk;
  }
  print_messages(rows);
  if (more)
    print("... there are more: --until {} shows older ones\n",
          event::time_text(rows.back().received_us));
  return kOk;
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
  add_option(verb, "--limit", &options->limit, "N", "Show at most this many, the newest first");
  add_option(verb, "--json", &options->json, {}, "As JSON");
  add_footer(
      verb,
      "Without an option it lists the consumers. TASK is the task that a message became (outbox tasks status ID), and\n"
      "ARRIVALS how often the broker has delivered it: it became a task once.");
  add_example(verb, "outbox inbox --consumer billing --id 01a1fffe-b175-7652-8989-de74aa02b3f2");
}

}  // namespace outbox::cli
