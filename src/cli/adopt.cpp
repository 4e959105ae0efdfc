// outbox adopt: forwards the INSERTs of another outbox's table into the log, or shows how it would.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/count.hpp"
#include "base/text.hpp"
#include "cli/acting.hpp"
#include "cli/exit.hpp"
#include "cli/output.hpp"
#include "cli/table.hpp"
#include "cli/verbs.hpp"
#include "event/time_text.hpp"
#include "store/adoption.hpp"

namespace outbox::cli {
namespace {

using store::AdoptionRow;
using store::Backlog;

struct AdoptOptions {
  std::optional<std::string> table;
  std::vector<std::string> columns;
  std::vector<std::string> values;
  std::vector<std::string> headers;
  std::optional<std::string> sent_values;
  std::optional<std::string> pending_values;
  std::optional<std::string> backlog;
  std::chrono::milliseconds lock_wait{std::chrono::seconds(2)};
  std::chrono::milliseconds patience{std::chrono::minutes(1)};
  bool apply{false};
  bool undo{false};
  bool json{false};
};

/// Divides "NAME=VALUE" at the first =.
std::pair<std::string, std::string> parse_pair(const std::string& option, const std::string& text) {
  const auto equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    throw Failure(kUsage, option + " " + text + ": has no =", "write it as NAME=VALUE");
  return {text.substr(0, equals), text.substr(equals + 1)};
}

std::map<std::string, std::string> parse_map(const std::string& option,
                                             const std::vector<std::string>& texts) {
  std::map<std::string, std::string> all;
  for (const std::string& text : texts) {
    if (!all.insert(parse_pair(option, text)).second)
      throw Failure(kUsage, option + " " + text + ": is given twice", "give each name once");
  }
  return all;
}

std::vector<std::string> split_words(const std::optional<std::string>& text) {
  std::vector<std::string> words;
  for (std::string_view rest = text ? *text : std::string_view(); !rest.empty();) {
    const auto comma = rest.find(',');
    if (const auto word = trimmed(rest.substr(0, comma)); !word.empty()) words.emplace_back(word);
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
  }
  return words;
}

Backlog parse_backlog(const std::optional<std::string>& word) {
  if (!word) return Backlog::by_shape;
  constexpr std::array<std::string_view, 3> words{"pending", "all", "none"};
  if (*word == "pending") return Backlog::pending;
  if (*word == "all") return Backlog::all;
  if (*word == "none") return Backlog::none;
  throw Failure(kUsage, "--backlog " + *word + ": unknown word", did_you_mean(*word, words));
}

store::AdoptionOptions make_adoption_options(const AdoptOptions& options) {
  store::AdoptionOptions wanted;
  wanted.columns = parse_map("--column", options.columns);
  wanted.values = parse_map("--value", options.values);
  wanted.sent_values = split_words(options.sent_values);
  wanted.pending_values = split_words(options.pending_values);
  wanted.backlog = parse_backlog(options.backlog);
  for (const std::string& text : options.headers) {
    const bool named = text.find('=') != std::string::npos;
    wanted.headers.push_back(named ? parse_pair("--header", text) : std::pair(text, text));
  }
  return wanted;
}

store::AdoptionLocks choose_locks(const AdoptOptions& options) {
  const auto check = [](const char* option, std::chrono::milliseconds value) {
    if (value >= std::chrono::milliseconds(10) && value <= std::chrono::hours(24)) return;
    throw Failure(kUsage, std::string(option) + " is out of range", "10ms to 24h");
  };
  check("--lock-wait", options.lock_wait);
  check("--patience", options.patience);
  return {.wait = options.lock_wait, .patience = options.patience};
}

Json to_json(const AdoptionRow& row) {
  return {
      {"table", row.table},
      {"state", row.state},
      {"cut_lsn", row.cut_lsn},
      {"taken_over", row.taken_over},
      {"staged", row.staged},
      {"begun_at", event::time_text(row.begun_us)},
      {"forwarding_since", row.switched_us ? Json(event::time_text(*row.switched_us)) : Json()}};
}

int list(const AdoptOptions& options, store::Adopter& adopter) {
  const auto rows = must(repeatable(adopter.list()));
  const bool broken = std::any_of(rows.begin(), rows.end(),
                                  [](const AdoptionRow& row) { return row.state == "broken"; });
  if (options.json) {
    Json tables = Json::array();
    for (const auto& row : rows) tables.push_back(to_json(row));
    print_json({{"tables", tables}});
  } else if (rows.empty()) {
    print("no table is adopted\n");
  } else {
    Table table({"TABLE", "STATE", "TAKEN OVER", "BEGUN"});
    for (const auto& row : rows)
      table.add({plain(row.table), row.state, with_commas(row.taken_over),
                 event::time_text(row.begun_us)});
    table.print();
  }
  return broken ? kCheckFailed : kOk;
}

Json to_json(const store::AdoptionPlan& plan) {
  Json fields = Json::object();
  for (const auto& [field, from] : plan.fields) fields[field] = from;
  return {{"table", plan.table},
          {"state", plan.adopted ? Json(plan.adopted->state) : Json()},
          {"layout", or_null(plan.layout)},
          {"fields", fields},
          {"unused", plan.unused},
          {"pending", plan.pending},
          {"refused", plan.refused},
          {"problems", plan.problems},
          {"statements", plan.statements}};
}

/// What stands in the way of --apply. If anything does, the verb ends with exit code 3.
std::vector<std::string> obstacles(const store::AdoptionPlan& plan) {
  std::vector<std::string> lines;
  if (plan.adopted && plan.adopted->state == "broken")
    lines.push_back("table " + plan.table + ": " + store::broken_text(*plan.adopted) +
                    " (hint: outbox doctor, and docs/guide/adopt.md, \"The trigger is gone\")");
  if (plan.refused > 0) {
    lines.push_back(
        with_commas(plan.refused) + " of " + count("pending row", plan.pending, "is", "are") +
        " refused by the log, nothing was changed (hint: correct them, mark them as sent, or "
        "say what the columns are)");
    for (const auto& problem : plan.problems) lines.push_back(problem);
  }
  return lines;
}

void print_state(const AdoptionRow& row) {
  if (row.state == "forwarding") {
    print("{} is adopted: rows are forwarded since {}\n{} taken over\n", row.table,
          event::time_text(row.switched_us.value_or(row.begun_us)),
          count("pending row", row.taken_over, "was", "were"));
    return;
  }
  if (row.state == "broken") {
    print("{}: {}\n", row.table, store::broken_text(row));
    return;
  }
  print("{} is {}: new rows wait until its old ones were taken over (hint: --apply goes on)\n",
        row.table, row.state);
}

void print_plan(const store::AdoptionPlan& plan) {
  print("table {}, {}\n\n", plan.table, plan.layout);
  Table table({"FIELD", "FROM"});
  for (const auto& [field, from] : plan.fields) table.add({field, plain(from)});
  table.print();
  if (!plan.unused.empty()) {
    std::string names;
    for (const auto& column : plan.unused) names += (names.empty() ? "" : ", ") + column;
    print("\ncolumns that go nowhere: {} (hint: --header COLUMN)\n", plain(names));
  }
  print("\npending rows to take over: {}\n\n", with_commas(plan.pending));
  for (const auto& statement : plan.statements) print("{};\n\n", statement);
}

int show(const AdoptOptions& options, const store::AdoptionPlan& plan) {
  const auto lines = obstacles(plan);
  if (options.json) {
    print_json(to_json(plan));
  } else if (!plan.adopted) {
    print_plan(plan);
    if (lines.empty())
      print(
          "nothing was changed (--apply adopts it; first stop what sends these rows now, or they come twice)\n");
  } else {
    if (lines.empty()) print_state(*plan.adopted);
    if (lines.empty() && plan.misfit)
      print(
          "its trigger was made for columns that were changed since (hint: --apply makes it anew)\n");
  }
  if (!lines.empty()) throw Failure(kCheckFailed, lines);
  return kOk;
}

void report(const AdoptOptions& options, const store::Adopted& done) {
  if (options.json) {
    Json json = to_json(done.row);
    json["changed"] = done.changed;
    json["marked"] = done.marked;
    json["longest_lock_ms"] = std::round(done.longest_lock_ms * 10) / 10;
    print_json(json);
    return;
  }
  if (done.row.state == "ended") {
    print("{} is not adopted any more; {} marked as sent\n", done.row.table,
          count("row", done.marked, "was", "were"));
    if (done.unmarked)
      print(
          "nothing tells rows that were forwarded from those that were left out (--backlog none): mark as sent what was inserted since {} "
          "before the old job starts or the table is adopted again\n",
          event::time_text(done.row.begun_us));
    return;
  }
  print_state(done.row);
  if (done.remade) print("its trigger was made anew for the columns of now\n");
  if (!done.changed) {
    print("nothing to do\n");
    return;
  }
  print(
      "{} came meanwhile; writers waited {:.0f} ms at most\nthe first forwarded row lies behind {} in the write-ahead log\n",
      count("row", done.row.staged), std::ceil(done.longest_lock_ms), done.row.cut_lsn);
}

int undo(const AdoptOptions& options, store::Adopter& adopter, const store::AdoptionLocks& locks,
         const store::Adopter::Says& says) {
  const auto adopted = must(repeatable(adopter.find(*options.table)));
  if (!adopted)
    throw Failure(kError, "table " + *options.table + " is not adopted",
                  "outbox adopt lists those that are");
  if (options.apply) {
    report(options, must(repeatable(adopter.undo(*adopted, locks, says))));
  } else if (options.json) {
    print_json(to_json(*adopted));
  } else {
    print_state(*adopted);
    print("nothing was changed (--apply removes the trigger)\n");
  }
  return kOk;
}

/// What is recorded if the command changes something.
store::PersonDecision decision(const AdoptOptions& options) {
  return acting(options.undo ? "adopt undo" : "adopt", {{"table", given(options.table)},
                                                        {"columns", options.columns},
                                                        {"values", options.values},
                                                        {"headers", options.headers},
                                                        {"backlog", given(options.backlog)}});
}

int adopt(const AdoptOptions& options, const Context& context) {
  const auto wanted = make_adoption_options(options);
  const auto locks = choose_locks(options);
  if (options.undo && !wanted.empty())
    throw Failure(kUsage, "--undo takes no options about columns: outbox adopt", "leave them out");
  if (!options.table && (options.apply || options.undo || !wanted.empty()))
    throw Failure(kUsage, "no table: outbox adopt", "outbox adopt public.outbox");
  const auto loaded = context.store_configuration();
  const auto adopter =
      must(repeatable(store::open_adopter(Context::store_options(loaded, decision(options)))));
  if (!options.table) return list(options, *adopter);
  const auto says = [](const std::string& line) { write_err("outbox: " + plain(line) + "\n"); };
  if (options.undo) return undo(options, *adopter, locks, says);
  const auto plan = must(repeatable(adopter->plan(*options.table, wanted)));
  if (!options.apply) return show(options, plan);
  if (const auto lines = obstacles(plan); !lines.empty()) throw Failure(kCheckFailed, lines);
  report(options, must(repeatable(adopter->apply(plan, wanted, locks, says))));
  return kOk;
}

}  // namespace

void add_adopt(CLI::App& root, Context& context) {
  auto options = std::make_shared<AdoptOptions>();
  CLI::App& verb =
      add_verb(root, "adopt", "Forward the INSERTs of another outbox's table, or show how",
               [options, &context] { return adopt(*options, context); });
  add_argument(verb, "TABLE", &options->table,
               "The table; without it lists those that are adopted");
  add_option(
      verb, "--column", &options->columns, "FIELD=COLUMN",
      "id, aggregate_type, aggregate_id, event_type, payload, headers, order, occurred_at, sent; empty: none");
  add_option(verb, "--value", &options->values, "FIELD=TEXT",
             "The same in all rows: aggregate_type, event_type, content_type");
  add_option(verb, "--header", &options->headers, "COLUMN[=NAME]",
             "One more column as a header; may be repeated");
  add_option(verb, "--sent-values", &options->sent_values, "LIST",
             "Words of a status column that mean sent");
  add_option(verb, "--pending-values", &options->pending_values, "LIST",
             "Words that mean not sent");
  add_option(verb, "--backlog", &options->backlog, "WORD",
             "Rows in the table that are taken over: pending, all or none");
  add_option(verb, "--lock-wait", &options->lock_wait, "DURATION",
             "How long writers may wait for the table's lock (default 2s)");
  add_option(verb, "--patience", &options->patience, "DURATION",
             "How long the lock is tried for (default 1m)");
  add_option(verb, "--apply", &options->apply, {}, "Do it, or go on with what was interrupted");
  add_option(verb, "--undo", &options->undo, {}, "Remove the trigger; with --apply");
  add_option(verb, "--json", &options->json, {}, "As JSON");
  add_footer(
      verb,
      "PostgreSQL only. INSERTs stay as they are: a trigger forwards each row in its transaction, with the same id. Pending\n"
      "rows are taken over once, before those that come later. Stop what sends them now before --apply.");
  add_example(verb, "outbox adopt public.outbox");
  add_example(verb, "outbox adopt public.outbox --column sent=state --sent-values DONE --apply");
}

}  // namespace outbox::cli
