#include "metrics/relay_metrics.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>

#include "base/steady.hpp"

namespace outbox::metrics {
namespace {

constexpr std::array<std::string_view, 5> kStates{"delivering", "unavailable", "paused", "stopped",
                                                  "replaying"};

constexpr std::array<std::string_view, 4> kConsumerStates{"connecting", "reading", "paused",
                                                          "stopped"};

/// The state of a report in the words of the metric.
std::string_view state(const SubscriptionReport& report) {
  if (report.state == "paused" || report.state == "stopped" || report.state == "replaying")
    return report.state;
  const bool unavailable = report.state == "backing-off" || report.state == "broken";
  return unavailable ? "unavailable" : "delivering";
}

double number(std::uint64_t count) { return static_cast<double>(count); }

double seconds_since_1970(std::chrono::system_clock::time_point time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

void add_totals(const SubscriptionTotals& one, Families& into) {
  into.add(metric::kDelivered, {one.name}, number(one.delivered));
  into.add(metric::kFiltered, {one.name}, number(one.filtered));
  into.add(metric::kDead, {one.name}, number(one.dead));
  for (std::size_t i = 0; i < one.parked_for.size(); ++i) {
    const char* const reason = to_string(static_cast<ParkReason>(i));
    into.add(metric::kParked, {one.name, reason}, number(one.parked_for[i]));
  }
  const SendTotals& sends = one.sends;
  for (std::size_t i = 0; i < sends.outcomes.size(); ++i) {
    const char* const outcome = to_string(static_cast<Outcome::Kind>(i));
    into.add(metric::kOutcomes, {one.name, one.sink, outcome}, number(sends.outcomes[i]));
  }
  for (const auto& [type, failures] : sends.failures)
    into.add(metric::kFailures, {one.name, type}, number(failures));
  into.add(metric::kLatency, {one.name}, sends.latency);
  into.add(metric::kSendDuration, {one.name}, sends.send);
  into.add(metric::kBatchDuration, {one.name}, sends.batch);
  into.add(metric::kReconnects, {one.name, one.sink}, number(sends.reconnects));
  into.add(metric::kLastDelivery, {one.name}, seconds_since_1970(sends.last_delivery));
}

void add_now(const SubscriptionReport& one, std::string_view sink, Families& into) {
  for (const std::string_view each : kStates)
    into.add(metric::kState, {one.name, each}, each == state(one) ? 1 : 0);
  into.add(metric::kInFlight, {one.name}, number(one.in_flight));
  into.add(metric::kWindowBytes, {one.name}, number(one.window_bytes));
  into.add(metric::kInsecure, {one.name, sink}, one.insecure ? 1 : 0);
}

void add_tasks(const TaskTotals& one, Families& into) {
  const auto add = [&](std::string_view outcome, std::uint64_t runs) {
    into.add(metric::kTasksFinished, {one.queue, one.type, outcome}, number(runs));
  };
  add("completed", one.completed);
  add("failed", one.failed);
  add("dead", one.dead);
  add("cancelled", one.cancelled);
  add("snoozed", one.snoozed);
  into.add(metric::kTaskDuration, {one.queue, one.type}, one.duration);
  into.add(metric::kTaskPickup, {one.queue, one.type}, one.pickup);
}

/// What the relays and workers of a process did together. Several of them may have the same
/// subscription, each on its own lanes, and no sample may be there twice.
struct Process {
  std::map<std::string, SubscriptionTotals> totals;
  std::map<std::string, SubscriptionReport> subscriptions;
  std::map<std::pair<std::string, std::string>, TaskTotals> tasks;
  RelayReport rest;

  explicit Process(const std::vector<RelayReport>& reports) {
    for (const RelayReport& report : reports) add(report);
  }

 private:
  void add(const RelayReport& report) {
    for (const SubscriptionTotals& one : report.totals) totals[one.name] += one;
    for (const SubscriptionReport& one : report.subscriptions) add(one);
    for (const TaskTotals& one : report.tasks) add(one);
    for (const auto& [group, lanes] : report.lanes) rest.lanes[group] += lanes;
    for (const auto& [group, times] : report.takeovers) rest.takeovers[group] += times;
    for (const auto& [of, errors] : report.store_errors) rest.store_errors[of] += errors;
    for (const auto& [queue, runs] : report.tasks_recovered) rest.tasks_recovered[queue] += runs;
    rest.wakeups_by_commit += report.wakeups_by_commit;
    rest.wakeups_by_time += report.wakeups_by_time;
    rest.progress = std::min(rest.progress, report.progress);
  }
  /// A state other than "delivering" counts, whoever reports it.
  void add(const SubscriptionReport& one) {
    const auto [found, fresh] = subscriptions.try_emplace(one.name, one);
    if (fresh) return;
    SubscriptionReport& all = found->second;
    if (state(all) == "delivering") all.state = one.state;
    all.in_flight += one.in_flight;
    all.window_bytes += one.window_bytes;
    all.insecure = all.insecure || one.insecure;
  }
  void add(const TaskTotals& one) {
    const auto [found, fresh] = tasks.try_emplace({one.queue, one.type}, one);
    if (fresh) return;
    TaskTotals& all = found->second;
    all.completed += one.completed;
    all.failed += one.failed;
    all.dead += one.dead;
    all.cancelled += one.cancelled;
    all.snoozed += one.snoozed;
    all.duration += one.duration;
    all.pickup += one.pickup;
  }
};

}  // namespace

bool have_started(const std::vector<RelayReport>& reports) {
  return std::ranges::none_of(reports, [](const RelayReport& report) {
    return report.progress == std::chrono::steady_clock::time_point::max();
  });
}

bool lives(const std::vector<RelayReport>& reports) {
  return std::ranges::all_of(reports, [now = now_steady()](const RelayReport& report) {
    return now - report.progress < kHangs;
  });
}

void add_process(std::string_view version, std::string_view store, Families& into) {
  into.add(metric::kBuildInfo, {version, store}, 1);
}

void add_relays(const std::vector<RelayReport>& reports, const Moment& moment, Families& into) {
  const Process process(reports);
  for (const auto& [name, one] : process.totals) add_totals(one, into);
  for (const auto& [name, one] : process.subscriptions) {
    const auto totals = process.totals.find(name);
    add_now(one, totals == process.totals.end() ? std::string() : totals->second.sink, into);
  }
  for (const auto& [place, one] : process.tasks) add_tasks(one, into);
  const RelayReport& all = process.rest;
  for (const auto& [group, lanes] : all.lanes) into.add(metric::kLanes, {group}, number(lanes));
  for (const auto& [group, times] : all.takeovers)
    into.add(metric::kTakeovers, {group}, number(times));
  for (const auto& [of, errors] : all.store_errors)
    into.add(metric::kStoreErrors, {of}, number(errors));
  for (const auto& [queue, tasks] : all.tasks_recovered)
    into.add(metric::kTasksRecovered, {queue}, number(tasks));
  into.add(metric::kWakeups, {"notify"}, number(all.wakeups_by_commit));
  into.add(metric::kWakeups, {"poll"}, number(all.wakeups_by_time));
  const auto ago = moment.now_steady - std::min(all.progress, moment.now_steady);
  into.add(metric::kLastPoll, {},
           seconds_since_1970(
               moment.now - std::chrono::duration_cast<std::chrono::system_clock::duration>(ago)));
}

void add_consumers(const std::vector<ConsumerReport>& reports, Families& into) {
  for (const ConsumerReport& one : reports) {
    const auto add = [&](std::string_view outcome, std::uint64_t messages) {
      into.add(metric::kMessagesReceived, {one.name, outcome}, static_cast<double>(messages));
    };
    add("new", one.received_new);
    add("duplicate", one.duplicates);
    add("unreadable", one.unreadable);
    add("older", one.older);
    const std::string_view state = kConsumerStates.at(static_cast<std::size_t>(one.state));
    for (const std::string_view each : kConsumerStates)
      into.add(metric::kConsumerState, {one.name, each}, each == state ? 1 : 0);
    if (one.lag) into.add(metric::kConsumerLag, {one.name}, static_cast<double>(*one.lag));
  }
}

bool live(const std::vector<ConsumerReport>& reports) {
  return std::ranges::all_of(reports,
                             [](const ConsumerReport& report) { return report.silent < kHangs; });
}

}  // namespace outbox::metrics

namespace outbox {

std::vector<MetricFamily> collect_metrics(const std::vector<RelayReport>& reports) {
  metrics::Families families;
  metrics::add_relays(
      reports, {.now = std::chrono::system_clock::now(), .now_steady = now_steady()}, families);
  return families.list();
}

}  // namespace outbox
