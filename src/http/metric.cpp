#include "http/metric.hpp"

#include <array>

namespace outbox::http {

const char* to_string(MetricType type) noexcept {
  return type == MetricType::counter ? "counter" : "gauge";
}

namespace metric {

using enum MetricType;
using enum MetricSource;

const Metric kBuildInfo{"outbox_build_info", gauge, process, "version,store",
                        "Always 1. The labels name the version and the kind of store."};
const Metric kDelivered{
    "outbox_events_delivered_total", counter, process, "subscription",
    "Events that the destination has taken, counted when their settlement is written."};
const Metric kFiltered{"outbox_events_filtered_total", counter, process, "subscription",
                       "Events that the subscription's filter does not match."};
const Metric kDead{"outbox_events_dead_total", counter, process, "subscription",
                   "Events that were given up after max_attempts. A person decides about each."};
const Metric kState{"outbox_subscription_state", gauge, process, "subscription,state",
                    "1 for the state that the subscription has in this process, 0 for the others: "
                    "delivering, unavailable (the destination cannot be used), paused, stopped or "
                    "replaying."};
const Metric kLastPoll{
    "outbox_last_poll_timestamp_seconds", gauge, process, "",
    "When the main loop last went round, which it does about once a second, also while the store or "
    "a destination cannot be used."};
const Metric kStoreUp{"outbox_store_up", gauge, process, "",
                      "1 if the store answered when it was last asked for these metrics, else 0."};

const Metric kPending{"outbox_pending_events", gauge, store, "subscription",
                      "Events that are committed and not settled. Exact up to 10,000; with more, "
                      "outbox_pending_estimated is 1."};
const Metric kPendingEstimated{
    "outbox_pending_estimated", gauge, store, "subscription",
    "1 if outbox_pending_events is a lower bound, because more are pending than are counted."};
const Metric kOldestPending{"outbox_oldest_pending_timestamp_seconds", gauge, store, "subscription",
                            "When the oldest pending event was created. 0 if none is pending."};
const Metric kParkedEvents{
    "outbox_parked_events", gauge, store, "subscription,state",
    "Parked events. Retrying ones and those that wait behind them are sent by themselves; dead ones "
    "wait for a person."};
const Metric kRelaysAlive{"outbox_relays_alive", gauge, store, "group",
                          "Live relays that have lanes of the group."};
const Metric kHistoryHeld{
    "outbox_history_held", gauge, store, "subscription",
    "Bytes of history that could be removed if the subscription had delivered "
    "them."};
const Metric kTasks{"outbox_tasks", gauge, store, "queue,type,state",
                    "Tasks by state: pending, scheduled, running, retrying, waiting or dead."};
const Metric kOldestTask{"outbox_oldest_task_timestamp_seconds", gauge, store, "queue",
                         "When the task that has waited longest became due. 0 if none waits."};
const Metric kWorkersAlive{"outbox_workers_alive", gauge, store, "queue",
                           "Live workers that serve the queue."};

}  // namespace metric

std::span<const Metric* const> all_metrics() noexcept {
  using namespace metric;  // NOLINT(google-build-using-namespace): of this file
  static const std::array kAll{&kBuildInfo,     &kDelivered,    &kFiltered,
                               &kDead,          &kState,        &kLastPoll,
                               &kStoreUp,       &kPending,      &kPendingEstimated,
                               &kOldestPending, &kParkedEvents, &kRelaysAlive,
                               &kHistoryHeld,   &kTasks,        &kOldestTask,
                               &kWorkersAlive};
  return kAll;
}

std::string metrics_page() {
  std::string page =
      "<!-- Made by `outbox config reference --metrics` from the table of metrics. Do not edit. -->\n\n"
      "# Metrics\n\n"
      "`outbox relay` and `outbox work` answer `/metrics` in Prometheus' text format if `http.listen` is\n"
      "set ([settings](settings.md)). [Running it](../guide/operations.md#metrics-and-health) says how to use them.\n";
  const auto add_table = [&page](MetricSource source) {
    page += "\n| metric | type | labels | |\n|---|---|---|---|\n";
    for (const Metric* const one : all_metrics()) {
      if (one->source != source) continue;
      std::string labels(one->labels);
      for (std::size_t at = 0; (at = labels.find(',', at)) != std::string::npos; at += 2)
        labels.replace(at, 1, ", ");
      page.append("| `").append(one->name).append("` | ").append(to_string(one->type));
      page.append(" | ").append(labels).append(" | ").append(one->help).append(" |\n");
    }
  };
  page +=
      "\n## What a process did itself\n\nThe sum over all processes is everything: `sum by (subscription) (rate(outbox_events_delivered_total[5m]))`.\n";
  add_table(MetricSource::process);
  page +=
      "\n## What the store knows\n\nEach process asks the store every `metrics.interval`, and all get the same answer: `max by (subscription) (outbox_pending_events)`.\n"
      "While the store does not answer these metrics are absent, and `outbox_store_up` is 0.\n";
  add_table(MetricSource::store);
  return page;
}

}  // namespace outbox::http
