#include "metrics/relay_metrics.hpp"

#include <algorithm>
#include <array>

#include "base/steady.hpp"

namespace outbox::metrics {
namespace {

constexpr std::array<std::string_view, 5> kStates{"delivering", "unavailable", "paused", "stopped",
                                                  "replaying"};

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

/// The reports of a process as if one relay had made them: what they share is added up, so that no
/// sample is there twice.
RelayReport merge(const std::vector<RelayReport>& reports) {
  RelayReport all;
  for (const RelayReport& report : reports) {
    all.progress = std::min(all.progress, report.progress);
    all.subscriptions.insert(all.subscriptions.end(), report.subscriptions.begin(),
                             report.subscriptions.end());
    all.totals.insert(all.totals.end(), report.totals.begin(), report.totals.end());
    all.tasks.insert(all.tasks.end(), report.tasks.begin(), report.tasks.end());
    for (const auto& [group, lanes] : report.lanes) all.lanes[group] += lanes;
    for (const auto& [group, times] : report.takeovers) all.takeovers[group] += times;
    for (const auto& [of, errors] : report.store_errors) all.store_errors[of] += errors;
    for (const auto& [queue, tasks] : report.tasks_recovered) all.tasks_recovered[queue] += tasks;
    all.wakeups_by_commit += report.wakeups_by_commit;
    all.wakeups_by_time += report.wakeups_by_time;
  }
  return all;
}

/// The sink of the subscription, as its totals name it.
std::string_view sink_of(const RelayReport& report, const std::string& subscription) {
  const auto found =
      std::find_if(report.totals.begin(), report.totals.end(),
                   [&](const SubscriptionTotals& one) { return one.name == subscription; });
  return found == report.totals.end() ? std::string_view() : found->sink;
}

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
  const RelayReport all = merge(reports);
  for (const SubscriptionTotals& one : all.totals) add_totals(one, into);
  for (const SubscriptionReport& one : all.subscriptions)
    add_now(one, sink_of(all, one.name), into);
  for (const TaskTotals& one : all.tasks) add_tasks(one, into);
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

}  // namespace outbox::metrics

namespace outbox {

std::vector<MetricFamily> collect_metrics(const std::vector<RelayReport>& reports) {
  metrics::Families families;
  metrics::add_relays(
      reports, {.now = std::chrono::system_clock::now(), .now_steady = now_steady()}, families);
  return families.list();
}

}  // namespace outbox
