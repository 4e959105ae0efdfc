// Tests the table of metrics, what is made of reports and of what the store knows, and the format.
#include <gtest/gtest.h>

#include <set>

#include "http/exposition.hpp"
#include "http/metric.hpp"
#include "http/relay_metrics.hpp"
#include "http/store_metrics.hpp"

namespace outbox::http {
namespace {

bool has_line(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

TEST(Metrics, names_follow_the_rules_of_prometheus) {
  std::set<std::string_view> names;
  for (const Metric* const one : all_metrics()) {
    EXPECT_TRUE(names.insert(one->name).second) << one->name;
    EXPECT_TRUE(one->name.starts_with("outbox_")) << one->name;
    EXPECT_EQ(one->name.ends_with("_total"), one->type == MetricType::counter) << one->name;
    EXPECT_TRUE(one->help.ends_with('.')) << one->name;
    EXPECT_NE(metrics_page().find("| `" + std::string(one->name) + "` |"), std::string::npos);
  }
}

TEST(Metrics, the_text_has_help_type_and_escaped_labels) {
  Exposition all;
  all.add(metric::kDead, {"or\"de\\rs\n"}, 3);
  EXPECT_EQ(all.text(), "# HELP outbox_events_dead_total " + std::string(metric::kDead.help) +
                            "\n# TYPE outbox_events_dead_total counter\n"
                            "outbox_events_dead_total{subscription=\"or\\\"de\\\\rs\\n\"} 3\n");
  EXPECT_EQ(Exposition().text(), "");
}

TEST(Metrics, large_counters_are_exact) {
  Exposition all;
  all.add(metric::kDelivered, {"a"}, 9'007'199'254'740'991.0);
  EXPECT_NE(all.text().find("} 9007199254740991\n"), std::string::npos) << all.text();
}

TEST(Metrics, a_relay_says_what_it_did_and_in_which_state_each_subscription_is) {
  const Moment moment{.now = std::chrono::system_clock::time_point(std::chrono::seconds(1000)),
                      .now_steady = std::chrono::steady_clock::time_point(std::chrono::hours(1))};
  RelayReport one;
  one.progress = moment.now_steady - std::chrono::seconds(2);
  one.totals.push_back({.name = "orders", .delivered = 5, .filtered = 7, .parked = 1, .dead = 2});
  one.subscriptions.push_back({.name = "orders", .state = "backing-off", .reason = "down"});
  one.subscriptions.push_back({.name = "mails", .state = "draining", .reason = ""});
  RelayReport other;  // It has not started.
  other.subscriptions.push_back({.name = "old", .state = "replaying", .reason = ""});
  Exposition all;
  add_relays({one, other}, moment, all);
  const std::string text = all.text();
  for (const char* const line :
       {"outbox_events_delivered_total{subscription=\"orders\"} 5",
        "outbox_events_filtered_total{subscription=\"orders\"} 7",
        "outbox_events_dead_total{subscription=\"orders\"} 2",
        "outbox_subscription_state{subscription=\"orders\",state=\"unavailable\"} 1",
        "outbox_subscription_state{subscription=\"orders\",state=\"delivering\"} 0",
        "outbox_subscription_state{subscription=\"mails\",state=\"delivering\"} 1",
        "outbox_subscription_state{subscription=\"old\",state=\"replaying\"} 1",
        "outbox_last_poll_timestamp_seconds 998"})
    EXPECT_TRUE(has_line(text, line)) << line << "\n" << text;
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
          .queues = queues};
}

TEST(Metrics, the_store_says_what_is_pending_parked_and_served) {
  Exposition all;
  add_store(deliveries(), 1'000'000'000, all);
  const std::string text = all.text();
  for (const char* const line :
       {"outbox_pending_events{subscription=\"orders\"} 10000",
        "outbox_pending_estimated{subscription=\"orders\"} 1",
        "outbox_pending_estimated{subscription=\"audit\"} 0",
        "outbox_oldest_pending_timestamp_seconds{subscription=\"orders\"} 1000.5",
        "outbox_oldest_pending_timestamp_seconds{subscription=\"audit\"} 0",
        "outbox_parked_events{subscription=\"orders\",state=\"retrying\"} 1",
        "outbox_parked_events{subscription=\"orders\",state=\"waiting\"} 2",
        "outbox_parked_events{subscription=\"orders\",state=\"dead\"} 3",
        "outbox_relays_alive{group=\"default\"} 1", "outbox_relays_alive{group=\"file:audit\"} 0",
        "outbox_history_held{subscription=\"orders\"} 4096",
        "outbox_history_held{subscription=\"audit\"} 0",
        "outbox_tasks{queue=\"reports\",type=\"make\",state=\"pending\"} 4",
        "outbox_tasks{queue=\"reports\",type=\"make\",state=\"dead\"} 1",
        "outbox_oldest_task_timestamp_seconds{queue=\"reports\"} 990",
        "outbox_oldest_task_timestamp_seconds{queue=\"mails\"} 0",
        "outbox_workers_alive{queue=\"reports\"} 1", "outbox_workers_alive{queue=\"mails\"} 0"})
    EXPECT_TRUE(has_line(text, line)) << line << "\n" << text;
  EXPECT_EQ(text.find("outbox_tasks{queue=\"mails\""), std::string::npos) << "no type is known";
}

TEST(Metrics, what_could_not_be_read_is_absent) {
  health::Deliveries seen = deliveries();
  seen.relays = tl::unexpected(Error{});
  seen.holds = tl::unexpected(Error{});
  seen.queues = tl::unexpected(Error{});
  Exposition all;
  add_store(seen, 0, all);
  const std::string text = all.text();
  EXPECT_NE(text.find("outbox_pending_events"), std::string::npos);
  for (const char* const absent : {"outbox_relays_alive", "outbox_history_held", "outbox_tasks"})
    EXPECT_EQ(text.find(absent), std::string::npos) << absent;
}

}  // namespace
}  // namespace outbox::http
