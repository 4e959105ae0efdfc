#include "health/health.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/count.hpp"
#include "base/error.hpp"
#include "base/units.hpp"
#include "event/task_queue.hpp"
#include "event/time_text.hpp"
#include "store/ownership.hpp"

namespace outbox::health {
namespace {

using store::SubscriptionOverview;
using store::SubscriptionState;

bool is_queue(const SubscriptionSpec& spec) {
  return event::queue_of_subscription(spec.name).has_value();
}

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
    command = "outbox work --queue " + shell_word(*queue);
  findings.problem(Severity::warning, "relays", row.spec.name,
                   fmt::format("no live relay has lanes of group {}", row.group),
                   "its events stay pending", std::move(command));
}

void judge_state(const SubscriptionOverview& one, Findings& findings) {
  const auto& row = one.row;
  const std::string& name = row.spec.name;
  if (row.state == SubscriptionState::stopped) {
    findings.problem(Severity::error, "subscriptions", name, "stopped: " + row.reason,
                     "none of its events is delivered until a person acts",
                     "outbox subscription resume " + shell_word(name));
  } else if (row.state == SubscriptionState::paused) {
    findings.add(Severity::note, "subscriptions", name, "paused: " + row.reason,
                 "its events stay pending, and hold history back",
                 "outbox subscription resume " + shell_word(name));
  } else if (row.trouble.starts_with(store::kOnTrial)) {
    findings.add(Severity::note, "subscriptions", name,
                 fmt::format("since {} {}", row.trouble_since, row.trouble),
                 "it is slower until that is over; then an event that kills relays is parked",
                 "outbox status");
  } else if (!row.trouble.empty()) {
    findings.add(Severity::warning, "subscriptions", name,
                 fmt::format("makes no progress since {}: {}", row.trouble_since, row.trouble),
                 "its events stay pending; none is lost", "outbox sinks " + shell_word(name));
  }
  if (matches_nothing(one)) {
    findings.add(Severity::warning, "subscriptions", name,
                 "its filter has matched none of " + outbox::count("event", one.progress.filtered),
                 "it delivers nothing: the filter is probably wrong", "outbox subscription list");
  }
}

/// Returns whether the subscription is behind.
bool judge_pending(const SubscriptionOverview& one, std::chrono::milliseconds max_lag,
                   Findings& findings) {
  const bool active = one.row.state == SubscriptionState::active;
  if (one.progress.pending == 0 || !active || one.progress.lag <= max_lag) return false;
  const std::string& trouble = one.row.trouble;
  findings.problem(
      Severity::warning, "pending", one.row.spec.name,
      fmt::format("{}{} pending, the oldest for {}, more than {}",
                  one.progress.pending_capped ? "more than " : "",
                  outbox::count("event", one.progress.pending, "is", "are"),
                  about(one.progress.lag), format_duration(max_lag)),
      "they are late, and hold history back" + (trouble.empty() ? "" : " (" + trouble + ")"),
      "outbox status");
  return true;
}

/// Returns whether some events of the subscription are dead.
bool judge_dead(const SubscriptionOverview& one, Findings& findings) {
  if (one.parked.dead == 0) return false;
  const auto queue = event::queue_of_subscription(one.row.spec.name);
  findings.problem(
      Severity::warning, "parked", one.row.spec.name,
      outbox::count(queue ? "dead task" : "dead event", one.parked.dead),
      queue ? "they do not run again until a person acts"
            : "they are not sent again until a person acts",
      queue ? fmt::format("outbox tasks list --queue {} --state dead", shell_word(*queue))
            : fmt::format("outbox parked list --subscription {} --state dead",
                          shell_word(one.row.spec.name)));
  return true;
}

Result<std::vector<store::Hold>> look_at_holds(store::Store& store,
                                               std::chrono::milliseconds keep) {
  OUTBOX_TRY(const auto retention, store.retention());
  OUTBOX_TRY(const auto pieces, retention->survey(keep));
  return store::find_holds(pieces);
}

Result<std::vector<store::VerifiedRow>> look_at_verified(store::Store& store) {
  OUTBOX_TRY(const auto verified, store.verified());
  return verified->list();
}

}  // namespace

Result<Deliveries> look_at_deliveries(store::Store& store, std::chrono::milliseconds keep,
                                      std::int64_t limit) {
  OUTBOX_TRY(const auto catalog, store.catalog());
  OUTBOX_TRY(auto subscriptions, catalog->overview(limit));
  auto queues = look_at_queues(store, subscriptions, limit);
  return Deliveries{.subscriptions = std::move(subscriptions),
                    .relays = catalog->relays(),
                    .holds = look_at_holds(store, keep),
                    .queues = std::move(queues),
                    .verified = look_at_verified(store)};
}

Findings judge(const Deliveries& seen, const HealthLimits& limits) {
  Findings findings;
  judge_subscriptions(seen.subscriptions, limits.max_lag, findings);
  findings.check("relays", seen.relays,
                 [&](const auto& relays) { judge_relays(relays, seen.subscriptions, findings); });
  findings.check("history", seen.holds, [&](const auto& holds) {
    judge_history(holds, seen.subscriptions, limits.quota, findings);
  });
  findings.check("queues", seen.queues,
                 [&](const Queues& queues) { judge_queues(queues, findings); });
  findings.check("verify", seen.verified,
                 [&](const auto& rows) { judge_verified(rows, findings); });
  return findings;
}

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
    return findings.problem(Severity::warning, "relays", "",
                            only_queues ? "no worker is alive" : "no relay is alive",
                            only_queues ? "no task is done" : "nothing is delivered",
                            only_queues ? "outbox work" : "outbox relay");
  }
  if (!has_owner(relays)) {
    return findings.problem(Severity::warning, "relays", "",
                            fmt::format("no live relay has lanes, {} for them",
                                        outbox::count("relay", alive, "waits", "wait")),
                            "nothing is delivered",
                            "see the relays' logs, and in a moment: outbox status");
  }
  for (const auto& one : subscriptions) judge_served(one, relays, findings);
  if (!findings.complains("relays")) findings.ok("relays", fmt::format("{} alive", alive));
}

void judge_subscriptions(const std::vector<SubscriptionOverview>& subscriptions,
                         std::optional<std::chrono::milliseconds> max_lag, Findings& findings) {
  if (subscriptions.empty()) {
    return findings.problem(Severity::warning, "subscriptions", "",
                            "the store has no subscriptions",
                            "events are kept for nobody, and removed when their time is over",
                            "outbox subscription apply");
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

void judge_verified(const std::vector<store::VerifiedRow>& rows, Findings& findings) {
  for (const store::VerifiedRow& row : rows) {
    if (row.differences == 0) continue;
    findings.problem(
        Severity::error, "verify", row.name,
        "the ledger differs from the log in " + outbox::count("place", row.differences),
        "events may be lost, or rows were changed by hand; the log of the relay that "
        "verifies names them",
        "outbox verify --subscription " + shell_word(row.name));
  }
  if (!findings.complains("verify")) findings.ok("verify", "no difference is known");
}

void judge_queues(const Queues& queues, Findings& findings) {
  for (const QueueLine& line : queues.lines) {
    if (line.has_handler || line.tasks_to_do() == 0 || !queues.has_worker(line.queue)) continue;
    findings.problem(
        Severity::warning, "queues", line.queue,
        fmt::format("no worker has a handler for type {}, and {}{}", line.type,
                    line.more ? "more than " : "",
                    outbox::count("task", line.tasks_to_do(), "of it waits", "of it wait")),
        "they wait until a worker has one",
        fmt::format("start a worker that has one; outbox tasks list --queue {} --type {}",
                    shell_word(line.queue), shell_word(line.type)));
  }
  if (!queues.lines.empty() && !findings.complains("queues"))
    findings.ok("queues", "the workers have a handler for each type of tasks that wait");
}

}  // namespace outbox::health
