#include "metrics/metric.hpp"

#include <algorithm>
#include <array>
#include <functional>

namespace outbox {

const char* to_string(MetricType type) noexcept {
  switch (type) {
    case MetricType::counter: return "counter";
    case MetricType::gauge: return "gauge";
    case MetricType::histogram: return "histogram";
  }
  return "?";
}

namespace metrics {
namespace metric {

using enum MetricType;
using enum MetricSource;

constexpr std::array<Metric, kDifferences + 1> kTable{{
    {kBuildInfo, "outbox_build_info", gauge, process, "version,store",
     "Always 1. The labels name the version and the kind of store."},
    {kDelivered, "outbox_events_delivered_total", counter, process, "subscription",
     "Events that the destination has taken, counted when their settlement is written."},
    {kFiltered, "outbox_events_filtered_total", counter, process, "subscription",
     "Events that the subscription's filter does not match."},
    {kParked, "outbox_events_parked_total", counter, process, "subscription,reason",
     "Events that were set aside: rejected by the destination, failing while others succeed, slow, culprit (relays died while they sent it), behind (an earlier event of the key is parked) or postponed (its time has not come)."},
    {kDead, "outbox_events_dead_total", counter, process, "subscription",
     "Events that were given up after max_attempts. A person decides about each."},
    {kOutcomes, "outbox_send_outcomes_total", counter, process, "subscription,sink,outcome",
     "Outcomes of sends: acked, unknown (it may have been delivered), retry, rejected (the event is at fault), blocked (the destination is at fault) or postponed. An event that is sent again has several."},
    {kFailures, "outbox_publish_failures_total", counter, process, "subscription,event_type",
     "Sends that were not acked. From the 101st event type on, types count as other."},
    {kLatency, "outbox_delivery_latency_seconds", histogram, process, "subscription",
     "From the creation of an event to its ack. Replays do not count."},
    {kSendDuration, "outbox_send_duration_seconds", histogram, process, "subscription",
     "From handing an event to the sink to its outcome."},
    {kBatchDuration, "outbox_batch_duration_seconds", histogram, process, "subscription",
     "From reading a page of the log until its settlement is written."},
    {kLastDelivery, "outbox_last_delivery_timestamp_seconds", gauge, process, "subscription",
     "When the destination last took an event from this process. 0 if it took none."},
    {kInFlight, "outbox_in_flight_events", gauge, process, "subscription",
     "Events that the sink has and has not reported on."},
    {kWindowBytes, "outbox_window_bytes", gauge, process, "subscription",
     "The size of the pages that are read and not settled."},
    {kState, "outbox_subscription_state", gauge, process, "subscription,state",
     "1 for the state that the subscription has in this process, 0 for the others: delivering, unavailable (the destination cannot be used), paused, stopped or replaying."},
    {kReconnects, "outbox_sink_reconnects_total", counter, process, "subscription,sink",
     "How often the sink was opened again."},
    {kInsecure, "outbox_insecure_transport", gauge, process, "subscription,sink",
     "1 if others in the network can read or change what is sent: the connection has no TLS and leaves the machine, or the certificate is not checked."},
    {kLanes, "outbox_lanes_held", gauge, process, "group",
     "Lanes of the group that this process has, of 64."},
    {kTakeovers, "outbox_takeovers_total", counter, process, "group",
     "How often this process has taken lanes over from a relay that was taken for dead."},
    {kWakeups, "outbox_wakeups_total", counter, process, "kind",
     "How often reading the log began because a commit said so (notify), and because a pause was over (poll)."},
    {kLastPoll, "outbox_last_poll_timestamp_seconds", gauge, process, "",
     "When the main loop last went round, which it does about once a second, also while the store or a destination cannot be used."},
    {kStoreErrors, "outbox_store_errors_total", counter, process, "class",
     "Errors of the store that interrupted delivery, by class: the first two characters of SQLSTATE, or SQLite's result code."},
    {kStoreUp, "outbox_store_up", gauge, process, "",
     "1 if the store answered when it was last asked for these metrics, else 0."},
    {kTasksFinished, "outbox_tasks_finished_total", counter, process, "queue,type,outcome",
     "Runs of tasks that ended: completed, failed (the task runs again), dead (a person decides), cancelled or snoozed."},
    {kTaskDuration, "outbox_task_duration_seconds", histogram, process, "queue,type",
     "From the beginning of a run to its end."},
    {kTaskPickup, "outbox_task_pickup_seconds", histogram, process, "queue,type",
     "From when a task was due to the beginning of its first run."},
    {kTasksRecovered, "outbox_tasks_recovered_total", counter, process, "queue",
     "Runs of dead workers that this process gave back, so that the tasks run again."},
    {kMessagesReceived, "outbox_messages_received_total", counter, process, "consumer,outcome",
     "Messages that a consumer has received: new (it became a task), duplicate (it had arrived before), unreadable (it is stored as a dead task) or older (skip_older left it out)."},
    {kConsumerState, "outbox_consumer_state", gauge, process, "consumer,state",
     "1 for the state that the consumer is in: connecting (to the database or the broker), reading, paused (its queue is longer than max_pending) or stopped."},
    {kConsumerLag, "outbox_consumer_lag", gauge, process, "consumer",
     "Messages at the broker that this consumer has not received yet, as far as the broker tells."},
    {kCpu, "process_cpu_seconds_total", counter, process, "",
     "User and system CPU time of the process."},
    {kResidentMemory, "process_resident_memory_bytes", gauge, process, "",
     "Resident memory of the process."},
    {kVirtualMemory, "process_virtual_memory_bytes", gauge, process, "",
     "Virtual memory of the process."},
    {kOpenFds, "process_open_fds", gauge, process, "", "Open file descriptors of the process."},
    {kMaxFds, "process_max_fds", gauge, process, "",
     "The most file descriptors that the process may open."},
    {kThreads, "process_threads", gauge, process, "", "Threads of the process."},
    {kStartTime, "process_start_time_seconds", gauge, process, "", "When the process was started."},
    {kPending, "outbox_pending_events", gauge, store, "subscription",
     "Events that are committed and not settled. Exact up to 10,000; with more, outbox_pending_estimated is 1."},
    {kPendingEstimated, "outbox_pending_estimated", gauge, store, "subscription",
     "1 if outbox_pending_events is a lower bound, because more are pending than are counted."},
    {kOldestPending, "outbox_oldest_pending_timestamp_seconds", gauge, store, "subscription",
     "When the oldest pending event was created. 0 if none is pending."},
    {kParkedEvents, "outbox_parked_events", gauge, store, "subscription,state",
     "Parked events. Retrying ones and those that wait behind them are sent by themselves; dead ones wait for a person."},
    {kRelaysAlive, "outbox_relays_alive", gauge, store, "group",
     "Live relays that have lanes of the group."},
    {kHistoryHeld, "outbox_history_held", gauge, store, "subscription",
     "Bytes of history that could be removed if the subscription had delivered them."},
    {kTasks, "outbox_tasks", gauge, store, "queue,type,state",
     "Tasks by state: pending, scheduled, running, retrying, waiting or dead."},
    {kOldestTask, "outbox_oldest_task_timestamp_seconds", gauge, store, "queue",
     "When the task that has waited longest became due. 0 if none waits."},
    {kWorkersAlive, "outbox_workers_alive", gauge, store, "queue",
     "Live workers that serve the queue."},
    {kStoreBytes, "outbox_store_bytes", gauge, store, "table",
     "The size of the outbox in the store: events, progress (the ledger), parked and rest; of SQLite the file."},
    {kPartitionsAhead, "outbox_partitions_ahead", gauge, store, "",
     "Partitions of the log that are ready for events to come. PostgreSQL only."},
    {kOldestRetained, "outbox_oldest_retained_timestamp_seconds", gauge, store, "",
     "When the oldest event that is still in the log was created. 0 if the log is empty."},
    {kOldestSnapshot, "outbox_oldest_snapshot_timestamp_seconds", gauge, store, "",
     "When the oldest open transaction began that holds up what may be read and removed. 0 if there is none. PostgreSQL only."},
    {kVerified, "outbox_verified_events_total", counter, store, "subscription",
     "Events whose settlement was compared with the log by continuous "
     "verification (relay.verify)."},
    {kDifferences, "outbox_ledger_differences", gauge, store, "subscription",
     "Differences between the ledger and the log that continuous verification has found since a "
     "person has acknowledged them (outbox verify --acknowledge)."},
}};
// Each id has its row: the ids grow from row to row.
static_assert(std::ranges::is_sorted(kTable, std::ranges::less_equal(), &Metric::id));

}  // namespace metric

std::span<const Metric> all_metrics() noexcept { return metric::kTable; }

std::string metrics_page() {
  std::string page =
      "<!-- Made by `outbox config reference --metrics` from the table of metrics. Do not edit. -->\n\n"
      "# Metrics\n\n"
      "`outbox relay` and `outbox work` answer `/metrics` in Prometheus' text format if `http.listen` is\n"
      "set ([settings](settings.md)). [Running it](../guide/operations.md#metrics-and-health) says how to use them.\n";
  const auto add_table = [&page](MetricSource source) {
    page += "\n| metric | type | labels | |\n|---|---|---|---|\n";
    for (const Metric& one : all_metrics()) {
      if (one.source != source) continue;
      std::string labels(one.labels);
      for (std::size_t at = 0; (at = labels.find(',', at)) != std::string::npos; at += 2)
        labels.replace(at, 1, ", ");
      page.append("| `").append(one.name).append("` | ").append(to_string(one.type));
      page.append(" | ").append(labels).append(" | ").append(one.help).append(" |\n");
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

}  // namespace metrics
}  // namespace outbox
