// outbox enqueue: writes one event given as arguments, or many given as JSON lines.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/signals.hpp"
#include "cli/enqueue_lines.hpp"
#include "cli/event_input.hpp"
#include "cli/exit.hpp"
#include "cli/output.hpp"
#include "cli/verbs.hpp"
#include "event/time_text.hpp"

namespace outbox::cli {
namespace {

struct EnqueueOptions {
  std::optional<std::string> aggregate_type;
  std::optional<std::string> aggregate_id;
  std::optional<std::string> event_type;
  std::optional<std::string> payload;
  std::vector<std::string> headers;
  std::optional<std::string> id;
  std::optional<std::string> content_type;
  std::optional<std::string> occurred_at;
  std::optional<std::string> jsonl;
  bool ids{false};
  bool json{false};
  bool progress{false};
};

Timestamp parse_time(const std::string& text) {
  const auto us = event::read_time(text);
  if (!us)
    throw Failure(kUsage, "--occurred-at " + text + ": is not a time",
                  "RFC 3339, for example 2026-01-05T08:09:12.5Z");
  return Timestamp(std::chrono::microseconds(*us));
}

Event make_event(const EnqueueOptions& options) {
  if (!options.payload) {
    throw Failure(kUsage, "missing arguments: outbox enqueue",
                  "AGGREGATE_TYPE AGGREGATE_ID EVENT_TYPE PAYLOAD, or --jsonl");
  }
  Event event{.aggregate_type = *options.aggregate_type,
              .aggregate_id = *options.aggregate_id,
              .event_type = *options.event_type,
              .payload = read_payload(*options.payload)};
  for (const auto& header : options.headers) event.headers.push_back(parse_header(header));
  if (options.id) {
    const auto id = EventId::parse(*options.id);
    if (!id) throw Failure(kUsage, id.error().text());
    event.id = *id;
  }
  if (options.content_type) event.content_type = *options.content_type;
  if (options.occurred_at) event.occurred_at = parse_time(*options.occurred_at);
  if (const Status valid = validate(event); !valid)
    throw Failure(is_read(*options.payload) ? kError : kUsage, valid.error().text());
  return event;
}

int enqueue_one(const EnqueueOptions& options, const Context& context) {
  // A single event is written or not: a signal may end the process at any time.
  Signals signals(kInterrupted);
  signals.end_at(1);
  const Event event = make_event(options);
  const auto store = Context::checked_store(context.store_configuration());
  const auto writer = must(store->writer());
  const auto ids = must(writer->write({&event, 1}));
  const std::string id = ids.front().str();
  if (options.json) {
    print_json({{"id", id}});
  } else {
    print("{}\n", id);
  }
  return kOk;
}

int enqueue(const EnqueueOptions& options, const Context& context) {
  if (!options.jsonl) return enqueue_one(options, context);
  if (options.aggregate_type || !options.headers.empty() || options.id || options.content_type ||
      options.occurred_at) {
    throw Failure(kUsage, "--jsonl takes everything from the lines: outbox enqueue",
                  "leave the other arguments out");
  }
  // Ids are printed while the lines are read, so they cannot be part of one JSON object.
  if (options.ids && options.json) {
    throw Failure(kUsage, "--ids and --json exclude each other: outbox enqueue",
                  "--ids alone prints one id per line");
  }
  const auto store = Context::checked_store(context.store_configuration());
  return enqueue_lines({.path = *options.jsonl,
                        .ids = options.ids,
                        .json = options.json,
                        .progress = options.progress},
                       *store);
}

constexpr const char* kEnqueueFooter = R"(A line of JSON:
  {"aggregate_type": "order", "aggregate_id": "42", "event_type": "OrderPlaced", "payload": {"total": 12.5},
   "headers": {"trace": "a1"}, "id": "...", "content_type": "...", "occurred_at": "2026-01-05T08:09:12.5Z"}
Up to 1000 lines or 4 MiB are one transaction. When a line is bad nothing of its transaction is written, and the message says
how many events were committed before and with which line to go on.

To change data and enqueue in one transaction use the library or outbox.enqueue() in SQL: this verb has a transaction of its
own.)";

}  // namespace

void add_enqueue(CLI::App& root, Context& context) {
  auto options = std::make_shared<EnqueueOptions>();
  CLI::App& verb =
      add_verb(root, "enqueue", "Write events: one from arguments, many from JSON lines",
               [options, &context] { return enqueue(*options, context); });
  add_argument(verb, "AGGREGATE_TYPE", &options->aggregate_type,
               "What kind of thing changed: order");
  add_argument(verb, "AGGREGATE_ID", &options->aggregate_id,
               "Which one; \"\" for an event without key and order");
  add_argument(verb, "EVENT_TYPE", &options->event_type, "What happened: OrderPlaced");
  add_argument(verb, "PAYLOAD", &options->payload, "The body; @FILE reads a file, - reads stdin");
  add_option(verb, "--header", &options->headers, "NAME=VALUE", "A header; may be repeated");
  add_option(verb, "--id", &options->id, "UUID", "The event's id; else a new one");
  add_option(verb, "--content-type", &options->content_type, "TYPE",
             "Media type of the payload; else application/json");
  add_option(verb, "--occurred-at", &options->occurred_at, "TIME",
             "When it happened, RFC 3339; else now");
  add_option_or(verb, "--jsonl", &options->jsonl, "-", "FILE",
                "One event per line, from the file or from stdin");
  add_option(verb, "--ids", &options->ids, {},
             "With --jsonl: print the ids, one per line; not with --json");
  add_option(verb, "--progress", &options->progress, {},
             "With --jsonl: a line on stderr every second, terminal or not");
  add_option(verb, "--json", &options->json, {},
             "Print the id, or with --jsonl a summary, as JSON");
  add_footer(verb, kEnqueueFooter);
  add_example(verb, "outbox enqueue order 42 OrderPlaced '{\"total\": 12.5}' --header tenant=7");
  add_example(verb, "producer | outbox enqueue --jsonl --ids > ids.txt");
}

}  // namespace outbox::cli
