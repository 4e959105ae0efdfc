// outbox prune: removes delivered history, or shows what would go and what holds the rest.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/count.hpp"
#include "base/units.hpp"
#include "cli/acting.hpp"
#include "cli/exit.hpp"
#include "cli/output.hpp"
#include "cli/progress.hpp"
#include "cli/table.hpp"
#include "cli/verbs.hpp"
#include "event/time_text.hpp"
#include "history/pruning.hpp"
#include "relay/retention.hpp"

namespace outbox::cli {
namespace {

using PieceState = store::LogPiece::State;

struct PruneOptions {
  std::optional<std::string> archive;
  std::optional<std::string> older_than;
  bool apply{false};
  bool json{false};
};

struct Names {
  std::vector<store::SubscriptionRow> rows;

  [[nodiscard]] std::string of(std::int32_t subscription) const {
    for (const auto& row : rows) {
      if (row.id == subscription) return row.spec.name;
    }
    return "(removed, id " + std::to_string(subscription) + ")";
  }
};

relay::RetentionRules make_rules(const PruneOptions& options, const config::Loaded& loaded) {
  relay::RetentionRules rules{.keep = loaded.config.relay.retention,
                              .archive = options.archive.value_or(loaded.config.relay.archive),
                              .keep_inbox = loaded.config.relay.inbox_retention,
                              .keep_audit = loaded.config.relay.audit_keep};
  if (!options.older_than) return rules;
  const auto keep = parse_duration(*options.older_than);
  if (!keep)
    throw Failure(kUsage, "--older-than " + *options.older_than + ": is not a duration",
                  keep.error().hint);
  rules.keep = std::chrono::duration_cast<std::chrono::milliseconds>(*keep);
  return rules;
}

std::string size_text(std::int64_t bytes) {
  constexpr std::array<const char*, 5> units{"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < units.size(); ++unit) value /= 1024;
  return fmt::format("{:.{}f} {}", value, unit == 0 ? 0 : 1, units.at(unit));
}

std::string holders(const store::LogPiece& piece, const Names& names) {
  if (piece.state != PieceState::held) return "-";
  if (piece.held_by.empty()) return "(there is no subscription)";
  std::string text;
  for (const std::int32_t subscription : piece.held_by)
    text += (text.empty() ? "" : ", ") + names.of(subscription);
  return text;
}

void print_pieces(const std::vector<store::LogPiece>& pieces, const Names& names) {
  if (pieces.empty()) return;
  Table table({"PART", "STATE", "SIZE", "NEWEST EVENT", "HELD BY"});
  for (const auto& piece : pieces) {
    table.add({piece.name, to_string(piece.state), size_text(piece.bytes),
               piece.newest_us == 0 ? "-" : event::time_text(piece.newest_us),
               plain(holders(piece, names))});
  }
  table.print();
  print("\n");
}

Json to_json(const store::LogPiece& piece, const Names& names) {
  Json held_by = Json::array();
  for (const std::int32_t subscription : piece.held_by) held_by.push_back(names.of(subscription));
  return {{"part", piece.name},
          {"state", to_string(piece.state)},
          {"bytes", piece.bytes},
          {"newest_at", piece.newest_us == 0 ? Json() : Json(event::time_text(piece.newest_us))},
          {"held_by", held_by}};
}

Json to_json(const std::vector<store::LogPiece>& pieces, const Names& names) {
  Json parts = Json::array();
  for (const auto& piece : pieces) parts.push_back(to_json(piece, names));
  Json holds = Json::array();
  for (const auto& hold : store::find_holds(pieces)) {
    holds.push_back({{"subscription", names.of(hold.subscription)},
                     {"parts", hold.pieces},
                     {"bytes", hold.bytes},
                     {"oldest_at", event::time_text(hold.oldest_us)}});
  }
  return {{"parts", parts}, {"holds", holds}};
}

std::size_t count_removable(const std::vector<store::LogPiece>& pieces) {
  return static_cast<std::size_t>(std::count_if(
      pieces.begin(), pieces.end(),
      [](const store::LogPiece& piece) { return piece.state == PieceState::removable; }));
}

void show(const PruneOptions& options, store::Retention& retention, const Names& names,
          const relay::RetentionRules& rules) {
  const auto pieces = must(retention.survey(rules.keep));
  if (options.json) {
    Json json = to_json(pieces, names);
    json["removed"] = nullptr;
    print_json(json);
    return;
  }
  print_pieces(pieces, names);
  std::int64_t bytes = 0;
  for (const auto& piece : pieces) {
    if (piece.state == PieceState::removable) bytes += piece.bytes;
  }
  print("would remove {}, {}, older than {}; nothing was changed (--apply removes them)\n",
        count("part", count_removable(pieces)), size_text(bytes), format_duration(rules.keep));
}

/// `prune_history` removes old rows of the history, and returns how many.
void apply(const PruneOptions& options, store::Retention& retention, const Names& names,
           const relay::RetentionRules& rules, const std::function<std::int64_t()>& prune_history) {
  Json archived = Json::array();
  std::optional<Waiting> waiting;  // shown between two parts
  const std::size_t all = count_removable(must(retention.survey(rules.keep)));
  std::size_t part = 1;
  const auto wait = [&] {
    if (part <= all) waiting.emplace(fmt::format("removing part {} of {}", part, all));
  };
  const auto on_removed = [&](const store::LogPiece& piece, const store::Removal& removal) {
    waiting.reset();
    if (!removal.archived.empty()) archived.push_back(removal.archived);
    if (!options.json) {
      print("removed {}: {}{}\n", piece.name, count("event", removal.events),
            removal.archived.empty() ? "" : ", archived in " + removal.archived);
    }
    ++part;
    wait();
  };
  wait();
  const auto pass =
      must(relay::remove_history(retention, EventId::generate(), rules, on_removed, {}));
  waiting.reset();
  if (pass.elsewhere)
    throw Failure(kNotNow, "another process removes history now",
                  "a relay does so by itself; try again in a moment");
  const std::int64_t history = prune_history();
  if (options.json) {
    Json json = to_json(pass.left, names);
    json["removed"] = {{"parts", pass.pieces}, {"events", pass.events}, {"rows", pass.rows},
                       {"history", history},   {"locked", pass.locked}, {"archives", archived}};
    print_json(json);
    return;
  }
  if (pass.pieces > 0) print("\n");
  print_pieces(pass.left, names);
  print("removed {}, and {} about them\n", count("event", pass.events), count("row", pass.rows));
  if (history > 0) print("removed {} of the history\n", count("row", history));
  if (pass.locked > 0)
    print("{} locked by other sessions; try again later\n",
          count("part", pass.locked, "stays,", "stay,"));
}

int prune(const PruneOptions& options, const Context& context) {
  const auto loaded = context.configuration(Subscriptions::unused);
  const relay::RetentionRules rules = make_rules(options, loaded);
  const auto store = Context::checked_store(
      loaded,
      acting("prune", {{"older_than", format_duration(rules.keep)}, {"archive", rules.archive}}));
  const Names names{must(must(store->catalog())->subscriptions())};
  const auto retention = must(store->retention());
  if (options.apply) {
    apply(options, *retention, names, rules,
          [&] { return must(history::prune(*store, loaded.config.relay.history, {})); });
  } else {
    show(options, *retention, names, rules);
  }
  return kOk;
}

}  // namespace

void add_prune(CLI::App& root, Context& context) {
  auto options = std::make_shared<PruneOptions>();
  CLI::App& verb =
      add_verb(root, "prune", "Remove events that all subscriptions have passed, or show which",
               [options, &context] { return prune(*options, context); });
  add_option(verb, "--older-than", &options->older_than, "DURATION",
             "Events written longer ago; without it relay.retention");
  add_option(verb, "--archive", &options->archive, "DIR",
             "First write them to a file in this folder; without it relay.archive");
  add_option(verb, "--apply", &options->apply, {}, "Do it; without it only shows what would go");
  add_option(verb, "--json", &options->json, {}, "As JSON");
  add_footer(
      verb,
      "A relay does this by itself. What a subscription has not passed is never removed, also if the subscription is\n"
      "paused or stopped. PostgreSQL: a part is a partition, and goes as a whole. With --apply rows of the history that are\n"
      "older than history.keep go, too.");
  add_example(verb, "outbox prune --older-than 30d");
  add_example(verb, "outbox prune --archive /var/lib/outbox/archive --apply");
}

}  // namespace outbox::cli
