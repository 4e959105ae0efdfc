// Tests the table of metrics, what is made of reports and of what the store knows, and the format.
#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

#include <outbox/prometheus.hpp>
#include <set>

#include "http/process_usage.hpp"
#include "http/store_metrics.hpp"
#include "metrics/families.hpp"
#include "metrics/metric.hpp"
#include "metrics/relay_metrics.hpp"

namespace outbox::http {
namespace {

using namespace metrics;  // NOLINT(google-build-using-namespace): what is tested here

std::string text_of(const Families& all) {
  std::vector<prometheus::MetricFamily> families;
  for (const MetricFamily& family : all.list()) families.push_back(to_prometheus(family));
  return prometheus::TextSerializer().Serialize(families);
}

bool has_line(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

TEST(Metrics, names_follow_the_rules_of_prometheus) {
  std::set<std::string_view> names;
  for (const Metric& one : all_metrics()) {
    EXPECT_TRUE(names.insert(one.name).second) << one.name;
    EXPECT_TRUE(one.name.starts_with("outbox_") || one.name.starts_with("process_")) << one.name;
    EXPECT_EQ(one.name.ends_with("_total"), one.type == MetricType::counter) << one.name;
    EXPECT_TRUE(one.help.ends_with('.')) << one.name;
    EXPECT_NE(metrics_page().find("| `" + std::string(one.name) + "` |"), std::string::npos);
  }
}

TEST(Metrics, the_text_has_help_type_and_escaped_labels) {
  Families all;
  all.add(metric::kDead, {"or\"de\\rs\n"}, 3);
  EXPECT_EQ(text_of(all), "# HELP outbox_events_dead_total " +
                              std::string(all_metrics()[metric::kDead].help) +
                              "\n# TYPE outbox_events_dead_total counter\n"
                              "outbox_events_dead_total{subscription=\"or\\\"de\\\\rs\\n\"} 3\n");
  EXPECT_EQ(text_of(Families()), "");
}

TEST(Metrics, large_counters_are_exact) {
  Families all;
  all.add(metric::kDelivered, {"a"}, 9'007'199'254'740'991.0);
  EXPECT_NE(text_of(all).find("} 9007199254740991\n"), std::string::npos) << text_of(all);
}

TEST(Metrics, a_relay_says_what_it_did_and_in_which_state_each_subscription_is) {
  const Moment moment{.now = std::chrono::system_clock::time_point(std::chrono::seconds(1000)),
                      .now_steady = std::chrono::steady_clock::time_point(std::chrono::hours(1))};
  RelayReport one;
  one.progress = moment.now_steady - std::chrono::seconds(2);
  SubscriptionTotals& orders = one.totals.emplace_back();
  orders = {
      .name = "orders", .sink = "kafka", .delivered = 5, .filtered = 7, .parked = 1, .dead = 2};
  orders.parked_for[static_cast<std::size_t>(ParkReason::culprit)] = 1;
  orders.sends.outcomes[static_cast<std::size_t>(Outcome::Kind::acked)] = 6;
  orders.sends.failures["OrderPlaced"] = 3;
  orders.sends.reconnects = 4;
  orders.sends.last_delivery = Timestamp(std::chrono::seconds(990));
  orders.sends.latency.add(std::chrono::milliseconds(20));
  orders.sends.latency.add(std::chrono::hours(2));
  one.subscriptions.push_back({.name = "orders", .state = "backing-off", .reason = "down"});
  one.subscriptions.back().in_flight = 8;
  one.subscriptions.back().window_bytes = 4096;
  one.subscriptions.back().insecure = true;
  one.lanes["default"] = 32;
  one.takeovers["default"] = 1;
  one.store_errors["57"] = 2;
  one.wakeups_by_commit = 11;
  one.wakeups_by_time = 12;
  one.subscriptions.push_back({.name = "mails", .state = "draining", .reason = ""});
  RelayReport other;  // It has not started.
  other.lanes["default"] = 0;
  TaskTotals& tasks = other.tasks.emplace_back();
  tasks = {.queue = "reports", .type = "make", .completed = 1, .dead = 2};
  tasks.duration.add(std::chrono::seconds(2));
  other.tasks_recovered["reports"] = 3;
  other.subscriptions.push_back({.name = "old", .state = "replaying", .reason = ""});
  Families all;
  add_relays({one, other}, moment, all);
  const std::string text = text_of(all);
  for (const char* const line :
       {"outbox_events_delivered_total{subscription=\"orders\"} 5",
        "outbox_events_filtered_total{subscription=\"orders\"} 7",
        "outbox_events_dead_total{subscription=\"orders\"} 2",
        "outbox_subscription_state{subscription=\"orders\",state=\"unavailable\"} 1",
        "outbox_subscription_state{subscription=\"orders\",state=\"delivering\"} 0",
        "outbox_subscription_state{subscription=\"mails\",state=\"delivering\"} 1",
        "outbox_subscription_state{subscription=\"old\",state=\"replaying\"} 1",
        "outbox_events_parked_total{subscription=\"orders\",reason=\"culprit\"} 1",
        "outbox_events_parked_total{subscription=\"orders\",reason=\"rejected\"} 0",
        "outbox_send_outcomes_total{subscription=\"orders\",sink=\"kafka\",outcome=\"acked\"} 6",
        "outbox_send_outcomes_total{subscription=\"orders\",sink=\"kafka\",outcome=\"retry\"} 0",
        "outbox_publish_failures_total{subscription=\"orders\",event_type=\"OrderPlaced\"} 3",
        "outbox_sink_reconnects_total{subscription=\"orders\",sink=\"kafka\"} 4",
        "outbox_last_delivery_timestamp_seconds{subscription=\"orders\"} 990",
        "outbox_delivery_latency_seconds_bucket{subscription=\"orders\",le=\"0.01\"} 0",
        "outbox_delivery_latency_seconds_bucket{subscription=\"orders\",le=\"0.025\"} 1",
        "outbox_delivery_latency_seconds_bucket{subscription=\"orders\",le=\"3600\"} 1",
        "outbox_delivery_latency_seconds_bucket{subscription=\"orders\",le=\"+Inf\"} 2",
        "outbox_delivery_latency_seconds_count{subscription=\"orders\"} 2",
        "outbox_in_flight_events{subscription=\"orders\"} 8",
        "outbox_window_bytes{subscription=\"orders\"} 4096",
        "outbox_insecure_transport{subscription=\"orders\",sink=\"kafka\"} 1",
        "outbox_lanes_held{group=\"default\"} 32",
        "outbox_takeovers_total{group=\"default\"} 1",
        "outbox_store_errors_total{class=\"57\"} 2",
        "outbox_wakeups_total{kind=\"notify\"} 11",
        "outbox_wakeups_total{kind=\"poll\"} 12",
        "outbox_tasks_finished_total{queue=\"reports\",type=\"make\",outcome=\"completed\"} 1",
        "outbox_tasks_finished_total{queue=\"reports\",type=\"make\",outcome=\"dead\"} 2",
        "outbox_task_duration_seconds_sum{queue=\"reports\",type=\"make\"} 2",
        "outbox_tasks_recovered_total{queue=\"reports\"} 3",
        "outbox_last_poll_timestamp_seconds 998"})
    EXPECT_TRUE(has_line(text, line)) << line << "\n" << text;
}

TEST(Metrics, an_application_gets_the_same_families) {
  struct Delivers {
    RelayReport report() const {
      RelayReport said;
      said.totals.push_back({.name = "orders", .sink = "kafka"});
      return said;
    }
  };
  const auto relay = std::make_unique<Delivers>();
  const auto reports = [&] { return std::vector{relay->report()}; };
  const auto collected = std::make_shared<outbox::PrometheusMetrics>(reports);
  const auto families = collected->Collect();
  const auto named = collect_metrics({relay->report()});
  ASSERT_EQ(families.size(), named.size());
  for (std::size_t i = 0; i < families.size(); ++i) {
    EXPECT_EQ(families[i].name, named[i].name);
    EXPECT_EQ(families[i].metric.size(), named[i].samples.size());
  }
}

TEST(Metrics, two_relays_with_the_same_subscription_make_one_sample) {
  RelayReport report;
  report.totals.push_back({.name = "orders", .sink = "kafka", .delivered = 2});
  report.totals.back().sends.latency.add(std::chrono::milliseconds(1));
  report.subscriptions.push_back({.name = "orders", .state = "delivering", .reason = ""});
  report.subscriptions.back().in_flight = 3;
  report.tasks.push_back({.queue = "reports", .type = "make", .completed = 4});
  RelayReport other = report;
  other.subscriptions.back().state = "backing-off";
  Families all;
  add_relays(
      {report, other},
      {.now = std::chrono::system_clock::now(), .now_steady = std::chrono::steady_clock::now()},
      all);
  for (const MetricFamily& family : all.list()) {
    std::set<std::vector<std::string>> labels;
    for (const MetricSample& sample : family.samples)
      EXPECT_TRUE(labels.insert(sample.labels).second) << family.name;
  }
  const std::string text = text_of(all);
  for (const char* const line :
       {"outbox_events_delivered_total{subscription=\"orders\"} 4",
        "outbox_delivery_latency_seconds_count{subscription=\"orders\"} 2",
        "outbox_in_flight_events{subscription=\"orders\"} 6",
        "outbox_subscription_state{subscription=\"orders\",state=\"unavailable\"} 1",
        "outbox_tasks_finished_total{queue=\"reports\",type=\"make\",outcome=\"completed\"} 8"})
    EXPECT_TRUE(has_line(text, line)) << line << "\n" << text;
}

TEST(Metrics, of_many_types_of_events_some_count_as_other) {
  SendTotals all;
  for (std::size_t i = 0; i < SendTotals::kMostTypes + 5; ++i) {
    SendTotals one;
    one.failures["type" + std::to_string(i)] = 2;
    all += one;
  }
  EXPECT_EQ(all.failures.size(), SendTotals::kMostTypes + 1);
  EXPECT_EQ(all.failures.at("other"), 10U);
}

TEST(Metrics, the_process_says_what_it_uses) {
  const ProcessUsage usage = read_usage();
  EXPECT_GT(usage.resident_bytes, 1U << 20U);
  EXPECT_GT(usage.virtual_bytes, usage.resident_bytes);
  EXPECT_GE(usage.open_files, 3U);
  EXPECT_GT(usage.max_files, usage.open_files);
  EXPECT_GE(usage.threads, 1U);
  const double now = static_cast<double>(std::time(nullptr));
  EXPECT_GT(usage.started_at, now - 3600);
  EXPECT_LT(usage.started_at, now + 60);
}

TEST(Metrics, a_process_has_started_when_all_of_it_has_and_lives_while_no_loop_hangs) {
  RelayReport waits;
  RelayReport runs;
  runs.progress = std::chrono::steady_clock::now();
  RelayReport hangs;
  hangs.progress = runs.progress - kHangs;
  EXPECT_TRUE(have_started({runs, hangs}));
  EXPECT_FALSE(have_started({runs, waits}));
  EXPECT_TRUE(lives({runs, waits})) << "what has not started cannot hang";
  EXPECT_FALSE(lives({runs, hangs}));
}

health::Deliveries deliveries() {
  store::SubscriptionOverview one;
  one.row.id = 1;
  one.row.spec.name = "orders";
  one.row.group = "default";
  one.progress.pending = 10'000;
  one.progress.pending_capped = true;
  one.progress.oldest_pending_at = "1970-01-01T00:16:40.5Z";
  one.parked = {.retrying = 1, .waiting = 2, .dead = 3};
  store::SubscriptionOverview alone;
  alone.row.id = 2;
  alone.row.spec.name = "audit";
  alone.row.group = "file:audit";
  health::Queues queues;
  queues.lines.push_back({.queue = "reports", .type = "make", .ready = 4, .dead = 1});
  queues.lines.back().oldest = std::chrono::seconds(10);
  queues.lines.push_back({.queue = "mails", .type = ""});
  store::WorkerRow worker;
  worker.note.types.push_back({.queue = "reports", .name = "make"});
  queues.workers.push_back(worker);
  worker.silent = std::chrono::hours(1);
  queues.workers.push_back(worker);
  store::RelayRow relay;
  relay.alive = true;
  relay.lanes = {{"default", 64}};
  store::RelayRow dead;
  dead.lanes = {{"file:audit", 64}};
  return {.subscriptions = {one, alone},
          .relays = std::vector{relay, dead},
          .holds = std::vector{store::Hold{.subscription = 1, .bytes = 4096}},
          .queues = queues,
          .verified =
              std::vector{store::VerifiedRow{.name = "orders", .events = 70, .differences = 2}}};
}

TEST(Metrics, the_store_says_what_is_pending_parked_and_served) {
  Families all;
  add_store(deliveries(), 1'000'000'000, all);
  const std::string text = text_of(all);
  for (const char* const line :
       {"outbox_pending_events{subscription=\"orders\"} 10000",
        "outbox_pending_estimated{subscription=\"orders\"} 1",
        "outbox_pending_estimated{subscription=\"audit\"} 0",
        "outbox_oldest_pending_timestamp_seconds{subscription=\"orders\"} 1000.5",
        "outbox_oldest_pending_timestamp_seconds{subscription=\"audit\"} 0",
        "outbox_parked_events{subscription=\"orders\",state=\"retrying\"} 1",
        "outbox_parked_events{subscription=\"orders\",state=\"waiting\"} 2",
        "outbox_parked_events{subscription=\"orders\",state=\"dead\"} 3",
        "outbox_relays_alive{group=\"default\"} 1",
        "outbox_relays_alive{group=\"file:audit\"} 0",
        "outbox_verified_events_total{subscription=\"orders\"} 70",
        "outbox_ledger_differences{subscription=\"orders\"} 2",
        "outbox_history_held{subscription=\"orders\"} 4096",
        "outbox_history_held{subscription=\"audit\"} 0",
        "outbox_tasks{queue=\"reports\",type=\"make\",state=\"pending\"} 4",
        "outbox_tasks{queue=\"reports\",type=\"make\",state=\"dead\"} 1",
        "outbox_oldest_task_timestamp_seconds{queue=\"reports\"} 990",
        "outbox_oldest_task_timestamp_seconds{queue=\"mails\"} 0",
        "outbox_workers_alive{queue=\"reports\"} 1",
        "outbox_workers_alive{queue=\"mails\"} 0"})
    EXPECT_TRUE(has_line(text, line)) << line << "\n" << text;
  EXPECT_EQ(text.find("outbox_tasks{queue=\"mails\""), std::string::npos) << "no type is known";
}

TEST(Metrics, the_store_says_how_large_it_is) {
  Families postgres;
  add_figures({.bytes = {{"events", 4096}, {"rest", 1}},
               .partitions_ahead = 3,
               .oldest_event_us = 2'500'000,
               .has_snapshots = true},
              postgres);
  for (const char* const line :
       {"outbox_store_bytes{table=\"events\"} 4096", "outbox_store_bytes{table=\"rest\"} 1",
        "outbox_partitions_ahead 3", "outbox_oldest_retained_timestamp_seconds 2.5",
        "outbox_oldest_snapshot_timestamp_seconds 0"})
    EXPECT_TRUE(has_line(text_of(postgres), line)) << line << "\n" << text_of(postgres);
  Families sqlite;
  add_figures({.bytes = {{"file", 8192}}}, sqlite);
  EXPECT_TRUE(has_line(text_of(sqlite), "outbox_oldest_retained_timestamp_seconds 0"));
  for (const char* const absent : {"outbox_partitions_ahead", "outbox_oldest_snapshot"})
    EXPECT_EQ(text_of(sqlite).find(absent), std::string::npos) << absent;
}

TEST(Metrics, what_could_not_be_read_is_absent) {
  health::Deliveries seen = deliveries();
  seen.relays = tl::unexpected(Error{});
  seen.holds = tl::unexpected(Error{});
  seen.queues = tl::unexpected(Error{});
  seen.verified = tl::unexpected(Error{});
  Families all;
  add_store(seen, 0, all);
  const std::string text = text_of(all);
  EXPECT_NE(text.find("outbox_pending_events"), std::string::npos);
  for (const char* const absent : {"outbox_relays_alive", "outbox_history_held", "outbox_tasks"})
    EXPECT_EQ(text.find(absent), std::string::npos) << absent;
}

}  // namespace
}  // namespace outbox::http
