#include "ops/doctor/subscriptions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/count.hpp"
#include "base/units.hpp"
#include "event/spec.hpp"
#include "event/task_queue.hpp"
#include "event/time_text.hpp"
#include "store/ownership.hpp"

namespace outbox::ops {
namespace {

using store::SubscriptionOverview;
using store::SubscriptionState;

bool is_queue(const SubscriptionSpec& spec) {
  return event::queue_of_subscription(spec.name).has_value();
}

/// "-c outbox.toml"
std::string with(const std::string& file) { return file.empty() ? "" : " -c " + shell_word(file); }

void judge_served(const SubscriptionOverview& one, const std::vector<store::RelayRow>& relays,
                  Findings& findings) {
  const auto& row = one.row;
  const bool served = std::any_of(relays.begin(), relays.end(), [&](const auto& relay) {
    return relay.alive && relay.lanes.contains(row.group);
  });
  // A priority or a type that nobody uses needs no worker.
  const bool unused = is_queue(row.spec) && one.progress.pending == 0;
  if (served || unused || row.state != SubscriptionState::active) return;
  std::string command = "outbox relay --group " + shell_word(row.group);
  if (row.spec.sink == "custom") command = "start the service that gives its sink to Relay::use()";
  if (const auto queue = event::queue_of_subscription(row.spec.name))
    command = "outbox work (queue " + *queue + ")";
  findings.add({.severity = Severity::warning,
                .check = "relays",
                .subject = row.spec.name,
                .what = fmt::format("no live relay has lanes of group {}", row.group),
                .reason = "its events stay pending",
                .command = std::move(command),
                .problem = true});
}

void judge_state(const SubscriptionOverview& one, Findings& findings) {
  const auto& row = one.row;
  const std::string& name = row.spec.name;
  if (row.state == SubscriptionState::stopped) {
    findings.add({.severity = Severity::error,
                  .check = "subscriptions",
                  .subject = name,
                  .what = "stopped: " + row.reason,
                  .reason = "none of its events is delivered until a person acts",
                  .command = "outbox subscription resume " + shell_word(name),
                  .problem = true});
  } else if (row.state == SubscriptionState::paused) {
    findings.add({.severity = Severity::note,
                  .check = "subscriptions",
                  .subject = name,
                  .what = "paused: " + row.reason,
                  .reason = "its events stay pending, and hold history back",
                  .command = "outbox subscription resume " + shell_word(name)});
  } else if (row.trouble.starts_with(store::kOnTrial)) {
    findings.add(
        {.severity = Severity::note,
         .check = "subscriptions",
         .subject = name,
         .what = fmt::format("since {} {}", row.trouble_since, row.trouble),
         .reason = "it is slower until that is over; then an event that kills relays is parked",
         .command = "outbox status"});
  } else if (!row.trouble.empty()) {
    findings.add(
        {.severity = Severity::warning,
         .check = "subscriptions",
         .subject = name,
         .what = fmt::format("makes no progress since {}: {}", row.trouble_since, row.trouble),
         .reason = "its events stay pending; none is lost",
         .command = "outbox sinks " + shell_word(name)});
  }
  if (matches_nothing(one)) {
    findings.add(
        {.severity = Severity::warning,
         .check = "subscriptions",
         .subject = name,
         .what = "its filter has matched none of " + outbox::count("event", one.progress.filtered),
         .reason = "it delivers nothing: the filter is probably wrong",
         .command = "outbox subscription list"});
  }
}

/// True: it is behind.
bool judge_pending(const SubscriptionOverview& one, std::chrono::milliseconds max_lag,
                   Findings& findings) {
  const bool active = one.row.state == SubscriptionState::active;
  if (one.progress.pending == 0 || !active || one.progress.lag <= max_lag) return false;
  const std::string& trouble = one.row.trouble;
  findings.add({.severity = Severity::warning,
                .check = "pending",
                .subject = one.row.spec.name,
                .what = fmt::format("{}{} pending, the oldest for {}, more than {}",
                                    one.progress.pending_capped ? "more than " : "",
                                    outbox::count("event", one.progress.pending, "is", "are"),
                                    about(one.progress.lag), format_duration(max_lag)),
                .reason = "they are late, and hold history back" +
                          (trouble.empty() ? "" : " (" + trouble + ")"),
                .command = "outbox status",
                .problem = true});
  return true;
}

/// True: some are dead.
bool judge_dead(const SubscriptionOverview& one, Findings& findings) {
  if (one.parked.dead == 0) return false;
  const auto queue = event::queue_of_subscription(one.row.spec.name);
  findings.add({.severity = Severity::warning,
                .check = "parked",
                .subject = one.row.spec.name,
                .what = outbox::count(queue ? "dead task" : "dead event", one.parked.dead),
                .reason = queue ? "they do not run again until a person acts"
                                : "they are not sent again until a person acts",
                .command = queue ? fmt::format("outbox tasks list --queue {} --state dead",
                                               shell_word(*queue))
                                 : fmt::format("outbox parked list --subscription {} --state dead",
                                               shell_word(one.row.spec.name)),
                .problem = true});
  return true;
}

}  // namespace

bool matches_nothing(const SubscriptionOverview& one) {
  return one.progress.matches_nothing() && !event::is_of_queue(one.row.spec);
}

bool has_owner(const std::vector<store::RelayRow>& relays) {
  return std::any_of(relays.begin(), relays.end(),
                     [](const auto& relay) { return relay.owner && relay.alive; });
}

void judge_relays(const std::vector<store::RelayRow>& relays,
                  const std::vector<SubscriptionOverview>& subscriptions, Findings& findings) {
  const auto alive =
      std::count_if(relays.begin(), relays.end(), [](const auto& relay) { return relay.alive; });
  if (alive == 0) {
    const bool only_queues = !subscriptions.empty() &&
                             std::all_of(subscriptions.begin(), subscriptions.end(),
                                         [](const auto& one) { return is_queue(one.row.spec); });
    return findings.add({.severity = Severity::warning,
                         .check = "relays",
                         .subject = {},
                         .what = only_queues ? "no worker is alive" : "no relay is alive",
                         .reason = only_queues ? "no task is done" : "nothing is delivered",
                         .command = only_queues ? "outbox work" : "outbox relay",
                         .problem = true});
  }
  if (!has_owner(relays)) {
    return findings.add({.severity = Severity::warning,
                         .check = "relays",
                         .subject = {},
                         .what = fmt::format("no live relay has lanes, {} for them",
                                             outbox::count("relay", alive, "waits", "wait")),
                         .reason = "nothing is delivered",
                         .command = "outbox status in a moment, then see the relays' logs",
                         .problem = true});
  }
  for (const auto& one : subscriptions) judge_served(one, relays, findings);
  if (!findings.complains("relays")) findings.ok("relays", fmt::format("{} alive", alive));
}

void judge_subscriptions(const std::vector<SubscriptionOverview>& subscriptions,
                         std::optional<std::chrono::milliseconds> max_lag, Findings& findings) {
  if (subscriptions.empty()) {
    return findings.add(
        {.severity = Severity::warning,
         .check = "subscriptions",
         .subject = {},
         .what = "the store has no subscriptions",
         .reason = "events are kept for nobody, and removed when their time is over",
         .command = "outbox subscription apply",
         .problem = true});
  }
  bool late = false;
  bool dead = false;
  for (const auto& one : subscriptions) {
    judge_state(one, findings);
    late = (max_lag && judge_pending(one, *max_lag, findings)) || late;
    dead = judge_dead(one, findings) || dead;
  }
  if (!findings.complains("subscriptions"))
    findings.ok("subscriptions",
                fmt::format("{} of them, none stopped or in trouble", subscriptions.size()));
  if (max_lag && !late)
    findings.ok("pending", fmt::format("no event is older than {}", about(*max_lag)));
  if (!dead) findings.ok("parked", "no event is dead");
}

void judge_history(const std::vector<store::Hold>& holds,
                   const std::vector<SubscriptionOverview>& subscriptions, std::size_t quota,
                   Findings& findings) {
  for (const store::Hold& hold : holds) {
    const auto row = std::find_if(subscriptions.begin(), subscriptions.end(),
                                  [&](const auto& one) { return one.row.id == hold.subscription; });
    if (row == subscriptions.end()) continue;
    const bool over = static_cast<std::size_t>(hold.bytes) > quota;
    findings.add(
        {.severity = over ? Severity::error : Severity::note,
         .check = "history",
         .subject = row->row.spec.name,
         .what = fmt::format("holds back history since {} that could be removed ({}{})",
                             event::time_text(hold.oldest_us), about_bytes(hold.bytes),
                             over ? fmt::format(", more than relay.quota, {}",
                                                about_bytes(static_cast<std::int64_t>(quota)))
                                  : ""),
         .reason = "the log grows until it has delivered that; nothing undelivered is removed",
         .command = "outbox prune",
         .problem = over});
  }
  if (!findings.complains("history")) findings.ok("history", "no subscription holds history back");
}

void judge_difference(const std::vector<SubscriptionSpec>& wanted,
                      const std::vector<SubscriptionOverview>& subscriptions,
                      const std::string& file, Findings& findings) {
  const auto add = [&](Severity severity, const std::string& name, std::string what,
                       std::string reason, std::string command) {
    findings.add(
        {severity, "difference", name, std::move(what), std::move(reason), std::move(command)});
  };
  if (wanted.empty()) return;
  const std::string apply = "outbox subscription apply" + with(file);
  for (const SubscriptionSpec& spec : wanted) {
    const auto row = std::find_if(subscriptions.begin(), subscriptions.end(),
                                  [&](const auto& one) { return one.row.spec.name == spec.name; });
    if (row == subscriptions.end()) {
      add(Severity::warning, spec.name, "is in the configuration, but not in the store",
          "no event is delivered for it, nor kept", apply);
      continue;
    }
    const auto differences = event::differences(row->row.spec, spec);
    if (differences.empty()) continue;
    std::string settings;
    for (const auto& one : differences)
      settings.append(settings.empty() ? "" : ", ").append(one.setting);
    add(Severity::warning, spec.name, "the configuration and the store differ in " + settings,
        "relays deliver by what is in the store; one that gets its lanes applies its own file",
        apply);
  }
  for (const auto& one : subscriptions) {
    const bool named = std::any_of(wanted.begin(), wanted.end(), [&](const auto& spec) {
      return spec.name == one.row.spec.name;
    });
    if (named || is_queue(one.row.spec) || event::is_of_queue(one.row.spec)) continue;
    add(Severity::note, one.row.spec.name, "is in the store, but not in this configuration",
        "it is delivered as the store says, and holds history back", "outbox subscription list");
  }
  if (!findings.complains("difference"))
    findings.ok("difference", "the store has the subscriptions of the configuration");
}

}  // namespace outbox::ops
