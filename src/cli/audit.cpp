// outbox audit: what people have changed, who, when and why (docs/design/audit.md).
#include "store/audit.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "cli/event_input.hpp"
#include "cli/exit.hpp"
#include "cli/output.hpp"
#include "cli/table.hpp"
#include "cli/verbs.hpp"
#include "event/task_queue.hpp"
#include "event/time_text.hpp"

namespace outbox::cli {
namespace {

struct AuditOptions {
  std::optional<std::string> since;
  std::optional<std::uint64_t> before;
  std::optional<std::string> person;
  std::optional<std::string> subscription;
  std::uint64_t limit{100};
  bool json{false};
};

store::AuditFilter make_audit_filter(const AuditOptions& options) {
  store::AuditFilter filter{.actor = options.person.value_or(""),
                            .subscription = options.subscription.value_or("")};
  if (options.since) filter.since_us = parse_moment("--since", *options.since);
  if (options.before) filter.before = bounded_number(*options.before);
  return filter;
}

/// The queue of a subscription that delivers tasks; empty for any other.
std::string queue_changed(const store::AuditRow& row) {
  return event::queue_of_subscription(row.subscription).value_or("");
}

Json to_json(const store::AuditRow& row) {
  const store::PersonDecision& decision = row.decision;
  return {{"id", row.id},
          {"at", event::time_text(row.at_us)},
          {"person", decision.actor},
          {"origin", decision.origin},
          {"verb", decision.verb},
          {"subscription", or_null(row.subscription)},
          {"queue", or_null(queue_changed(row))},
          {"filter", try_parse_json<Json>(decision.filter)},
          {"count", row.count},
          {"reason", or_null(decision.reason)}};
}

void print_changes(const std::vector<store::AuditRow>& rows) {
  Table table({"ID", "WHEN", "PERSON", "FROM", "VERB", "SUBSCRIPTION", "COUNT"});
  for (const store::AuditRow& row : rows) {
    const store::PersonDecision& decision = row.decision;
    table.add({std::to_string(row.id), event::time_text(row.at_us), plain(decision.actor),
               plain(decision.origin), plain(decision.verb),
               row.subscription.empty() ? "-" : plain(row.subscription),
               std::to_string(row.count)});
    if (decision.filter != "{}") table.note("  filter: " + plain(decision.filter));
    if (!decision.reason.empty()) table.note("  reason: " + plain(decision.reason));
  }
  table.print();
}

int audit(const AuditOptions& options, const Context& context) {
  if (options.limit == 0) throw Failure(kUsage, "--limit 0: nothing would be shown", "1 or more");
  const store::AuditFilter filter = make_audit_filter(options);
  const auto store = Context::checked_store(context.store_configuration());
  const auto limit = static_cast<std::size_t>(std::min<std::uint64_t>(options.limit, 100'000));
  auto rows = must(must(store->audit())->list(filter, limit + 1));
  const bool more = rows.size() > limit;
  if (more) rows.resize(limit);
  if (options.json) {
    Json changes = Json::array();
    for (const store::AuditRow& row : rows) changes.push_back(to_json(row));
    print_json({{"changes", changes},
                {"more", more},
                {"next", more ? Json(std::to_string(rows.back().id)) : Json()}});
    return kOk;
  }
  if (rows.empty()) {
    print("nothing was changed by a person\n");
    return kOk;
  }
  print_changes(rows);
  if (more) print("... there are more: --before {} shows them\n", rows.back().id);
  return kOk;
}

}  // namespace

void add_audit(CLI::App& root, Context& context) {
  auto options = std::make_shared<AuditOptions>();
  CLI::App& verb = add_verb(root, "audit", "Show what people have changed: who, when and why",
                            [options, &context] { return audit(*options, context); });
  add_option(verb, "--since", &options->since, "TIME",
             "Changed at or after it: RFC 3339, or 15m ago");
  add_option(verb, "--before", &options->before, "ID", "Before the change with this id");
  add_option(verb, "--person", &options->person, "NAME", "By this person");
  add_option(verb, "--subscription", &options->subscription, "NAME", "Of this subscription");
  add_option(verb, "--limit", &options->limit, "N", "Show at most this many, the newest first");
  add_option(verb, "--json", &options->json, {}, "As JSON");
  add_footer(
      verb,
      "A row is written in the transaction of its change, by the command line and by the console; a command that changes\n"
      "much has one for each of its transactions. Rows are kept for audit.keep, and no verb changes them.");
  add_example(verb, "outbox audit --since 1d --subscription orders");
}

}  // namespace outbox::cli
