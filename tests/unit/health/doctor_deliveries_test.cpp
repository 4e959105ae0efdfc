// Tests the findings about relays, subscriptions, the configuration and destinations, which are
// made from facts.
#include "base/error.hpp"
#include "event/task_queue.hpp"
#include "findings.hpp"
#include "health/doctor/consumers.hpp"
#include "health/doctor/doctor.hpp"
#include "health/doctor/sinks.hpp"
#include "health/health.hpp"

namespace outbox::health {
namespace {

using store::SubscriptionOverview;
using ::testing::HasSubstr;

SubscriptionOverview subscription(const std::string& name) {
  SubscriptionOverview one;
  one.row.id = 7;
  one.row.spec.name = name;
  one.row.spec.sink = "file";
  one.row.group = "default";
  return one;
}

store::RelayRow relay(const std::string& group, bool alive = true) {
  return {.id = "r",
          .name = "host:1",
          .owner = true,
          .alive = alive,
          .heartbeat_at = {},
          .lanes = {{group, 64}}};
}

Findings of_relays(const std::vector<store::RelayRow>& relays, const SubscriptionOverview& one) {
  Findings findings;
  judge_relays(relays, {one}, findings);
  return findings;
}

Findings of(const SubscriptionOverview& one) {
  Findings findings;
  judge_subscriptions({one}, std::chrono::minutes(5), findings);
  return findings;
}

TEST(DoctorRelays, one_that_serves_the_group_is_enough) {
  expect_in_order(of_relays({relay("default")}, subscription("orders")), "relays");
  EXPECT_EQ(complaint(of_relays({relay("default", false)}, subscription("orders")), "relays").what,
            "no relay is alive");
  const Finding found = complaint(of_relays({relay("other")}, subscription("orders")), "relays");
  EXPECT_EQ(found.command, "outbox relay --group default");
  EXPECT_EQ(found.subject, "orders");
}

TEST(DoctorRelays, relays_that_all_wait_deliver_nothing) {
  auto waits = relay("default");
  waits.owner = false;
  waits.lanes.clear();
  EXPECT_EQ(complaint(of_relays({waits, waits}, subscription("orders")), "relays").text(),
            "relays: no live relay has lanes, 2 relays wait for them; nothing is delivered "
            "(hint: see the relays' logs, and in a moment: outbox status)");
}

TEST(DoctorRelays, a_priority_that_nobody_uses_needs_no_worker) {
  auto one = subscription("task.mail");
  ASSERT_TRUE(event::queue_of_subscription(one.row.spec.name));
  expect_in_order(of_relays({relay("other")}, one), "relays");
  one.progress.pending = 1;
  EXPECT_EQ(complaint(of_relays({relay("other")}, one), "relays").command,
            "outbox work --queue mail");
}

TEST(DoctorRelays, a_paused_one_needs_no_relay) {
  auto one = subscription("orders");
  one.row.state = store::SubscriptionState::paused;
  expect_in_order(of_relays({relay("other")}, one), "relays");
}

TEST(DoctorSubscriptions, one_that_delivers) {
  const Findings findings = of(subscription("orders"));
  for (const char* const check : {"subscriptions", "pending", "parked"})
    expect_in_order(findings, check);
}

TEST(DoctorSubscriptions, none) {
  Findings findings;
  judge_subscriptions({}, std::nullopt, findings);
  EXPECT_EQ(complaint(findings, "subscriptions").severity, Severity::warning);
  EXPECT_TRUE(complaint(findings, "subscriptions").problem);
}

TEST(DoctorSubscriptions, stopped_paused_and_in_trouble) {
  auto one = subscription("my orders");
  one.row.state = store::SubscriptionState::stopped;
  one.row.reason = "rejected";
  Finding found = complaint(of(one), "subscriptions");
  EXPECT_EQ(found.severity, Severity::error);
  EXPECT_EQ(found.command, "outbox subscription resume 'my orders'");
  one.row.state = store::SubscriptionState::paused;
  EXPECT_EQ(complaint(of(one), "subscriptions").severity, Severity::note);
  EXPECT_FALSE(complaint(of(one), "subscriptions").problem) << "it is what a person wished";
  one.row.state = store::SubscriptionState::active;
  one.row.trouble = "connection refused";
  one.row.trouble_since = "2026-01-01T00:00:00Z";
  found = complaint(of(one), "subscriptions");
  EXPECT_EQ(found.severity, Severity::warning);
  EXPECT_THAT(found.what, HasSubstr("connection refused"));
}

TEST(DoctorSubscriptions, late_and_dead_events) {
  auto one = subscription("orders");
  one.progress.pending = 12;
  one.progress.lag = std::chrono::minutes(4);
  one.parked.dead = 2;
  EXPECT_FALSE(of(one).complains("pending"));
  one.progress.lag = std::chrono::minutes(90);
  EXPECT_THAT(complaint(of(one), "pending").what,
              HasSubstr("12 events are pending, the oldest for 1 h, more than 5min"));
  EXPECT_EQ(complaint(of(one), "parked").command,
            "outbox parked list --subscription orders --state dead");
}

TEST(DoctorSubscriptions, a_filter_that_matches_nothing) {
  auto one = subscription("orders");
  one.progress.filtered = 5'000;
  EXPECT_THAT(complaint(of(one), "subscriptions").what, HasSubstr("none of 5000"));
}

TEST(DoctorHistory, more_than_the_quota_is_an_error) {
  for (const bool over : {false, true}) {
    Findings findings;
    judge_history({{.subscription = 7, .pieces = 2, .bytes = 1'000, .oldest_us = 1}},
                  {subscription("orders")}, over ? 999 : 1'000, findings);
    EXPECT_EQ(complaint(findings, "history").severity, over ? Severity::error : Severity::note);
  }
}

TEST(DoctorQueues, a_type_that_no_live_worker_has) {
  Queues queues;
  queues.lines = {{.queue = "mail", .type = "welcome", .ready = 2}};
  Findings findings;
  judge_queues(queues, findings);
  expect_in_order(findings, "queues");
  store::WorkerRow worker{.name = "w", .silent = {}, .running = 0, .note = {}};
  worker.note.types.push_back({.queue = "mail", .name = "other", .runs = {}});
  queues.workers.push_back(worker);
  judge_queues(queues, findings);
  EXPECT_EQ(complaint(findings, "queues").what,
            "no worker has a handler for type welcome, and 2 tasks of it wait");
  EXPECT_TRUE(complaint(findings, "queues").problem);
}

TEST(DoctorHealth, differences_that_a_relay_has_found_are_a_problem_until_they_are_acknowledged) {
  Findings findings;
  judge_verified({{.name = "orders", .events = 10}, {.name = "my mails", .differences = 2}},
                 findings);
  EXPECT_EQ(complaint(findings, "verify").subject, "my mails");
  EXPECT_EQ(complaint(findings, "verify").what, "the ledger differs from the log in 2 places");
  EXPECT_EQ(complaint(findings, "verify").command, "outbox verify --subscription 'my mails'");
  EXPECT_TRUE(complaint(findings, "verify").problem);
  Findings sound;
  judge_verified({{.name = "orders", .events = 10}}, sound);
  expect_in_order(sound, "verify");
}

TEST(DoctorHealth, a_part_that_could_not_be_read_leaves_the_others) {
  const Deliveries seen{.subscriptions = {subscription("orders")},
                        .relays = fail(Errc::deadline_exceeded, "no answer"),
                        .holds = {},
                        .queues = {},
                        .verified = {}};
  const Findings findings = judge(seen, {.max_lag = {}, .quota = 1});
  EXPECT_EQ(complaint(findings, "relays").what, "not checked: no answer");
  expect_in_order(findings, "subscriptions");
  expect_in_order(findings, "history");
}

TEST(DoctorDifference, between_the_configuration_and_the_store) {
  const auto judged = [](const std::vector<SubscriptionSpec>& wanted) {
    Findings findings;
    judge_difference(wanted, {subscription("orders")}, "shop.toml", findings);
    return findings;
  };
  SubscriptionSpec same = subscription("orders").row.spec;
  expect_in_order(judged({same}), "difference");
  EXPECT_TRUE(judged({}).all().empty()) << "without a configuration nothing differs";
  SubscriptionSpec changed = same;
  changed.topic = "other";
  EXPECT_THAT(complaint(judged({changed}), "difference").what, HasSubstr("differ in topic"));
  EXPECT_EQ(complaint(judged({changed}), "difference").command,
            "outbox subscription apply -c shop.toml");
  SubscriptionSpec more = same;
  more.name = "mails";
  EXPECT_EQ(complaint(judged({same, more}), "difference").subject, "mails");
  EXPECT_EQ(count(judged({more}).all(), Severity::note), 1U) << "orders is only in the store";
}

TEST(DoctorSinks, what_a_destination_says_of_itself) {
  const SubscriptionSpec spec = subscription("orders").row.spec;
  const auto judged = [&](const Result<sink::Inspection>& inspected) {
    Findings findings;
    judge_sink(spec, inspected, findings);
    return findings;
  };
  expect_in_order(
      judged(sink::Inspection{.destination = "x", .acked = {}, .duplicates = {}, .order = {}}),
      "sink");
  EXPECT_EQ(complaint(judged(fail(Errc::not_found, "no topic", "make it")), "sink").severity,
            Severity::error);
  sink::Inspection weak{.destination = "x", .acked = {}, .duplicates = {}, .order = {}};
  weak.weaknesses.push_back({"min.insync.replicas 1", "lost with one broker", "2"});
  const Finding found = complaint(judged(weak), "sink");
  EXPECT_EQ(found.severity, Severity::warning);
  EXPECT_EQ(found.what, "min.insync.replicas 1");
}

class DoctorConsumers : public ::testing::Test {
 protected:
  static Findings judged(const Result<source::Inspection>& inspected,
                         std::chrono::milliseconds remembered = std::chrono::hours(30 * 24)) {
    Findings findings;
    judge_consumer({.name = "billing", .source = "kafka"}, inspected, remembered, findings);
    return findings;
  }
  static source::Inspection keeps(std::chrono::milliseconds longest) {
    source::Inspection found{.broker = "b:1", .reads = {"topic orders"}};
    found.add({.longest = longest, .what = "it keeps them", .shorten = "its limit"});
    return found;
  }
};

TEST_F(DoctorConsumers, a_broker_that_cannot_be_used_and_a_topic_that_is_not_there_are_errors) {
  const Finding away =
      complaint(judged(fail(Errc::unavailable, "no answer", "start it")), "consumer");
  EXPECT_EQ(away.severity, Severity::error);
  EXPECT_EQ(away.subject, "billing");
  EXPECT_EQ(away.command, "start it");
  source::Inspection found{.broker = "b:1"};
  found.missing.push_back({"no topic orders", "nothing to read", "create it"});
  EXPECT_EQ(complaint(judged(found), "consumer").severity, Severity::error);
}

TEST_F(DoctorConsumers, a_broker_must_not_keep_messages_for_longer_than_the_inbox) {
  using std::chrono::hours;
  expect_in_order(judged(keeps(hours(30 * 24))), "consumer");
  const Finding longer = complaint(judged(keeps(hours(31 * 24))), "consumer");
  EXPECT_EQ(longer.severity, Severity::warning);
  EXPECT_EQ(longer.what, "it keeps them, and the inbox remembers them for 30d (inbox.retention)");
  EXPECT_EQ(longer.command, "inbox.retention above 31d, or shorten its limit");
  const Finding forever = complaint(judged(keeps(source::Keeping::kForever)), "consumer");
  EXPECT_EQ(forever.command, "shorten its limit");
  source::Inspection several = keeps(hours(1));
  several.add({.longest = hours(48), .what = "the other", .shorten = "x"});
  several.add({.longest = hours(2), .what = "the last", .shorten = "x"});
  EXPECT_THAT(complaint(judged(several, hours(1)), "consumer").what,
              ::testing::StartsWith("the other, and"));
}

TEST_F(DoctorConsumers, what_the_user_may_not_ask_is_a_note) {
  source::Inspection found{.broker = "b:1"};
  found.unasked.push_back(fail(Errc::permission_denied, "how long", "a right").value());
  const Finding note = complaint(judged(found), "consumer");
  EXPECT_EQ(note.severity, Severity::note);
  EXPECT_EQ(note.subject, "billing");
  EXPECT_EQ(note.what, "not checked: how long");
}

class DoctorSizes : public ::testing::Test {
 protected:
  Finding only(const PayloadSizes& sizes) const {
    Findings findings;
    SubscriptionSpec spec = subscription("orders").row.spec;
    spec.on_reject = on_reject_;
    judge_message_size(spec, inspection_, sizes, findings);
    return complaint(findings, "sink");
  }
  [[nodiscard]] bool silent(const PayloadSizes& sizes) const {
    Findings findings;
    judge_message_size(subscription("orders").row.spec, inspection_, sizes, findings);
    return findings.all().empty();
  }

  sink::Inspection inspection_;
  OnReject on_reject_{OnReject::park};
};

TEST_F(DoctorSizes, nothing_is_said_where_all_fits_or_nothing_is_known) {
  EXPECT_TRUE(silent({.limit = 1 << 20, .recent = 1 << 20}));
  inspection_.largest = {"max_payload", 1 << 20, "raise it"};
  EXPECT_TRUE(silent({.limit = 1 << 20, .recent = 1 << 20}));
  inspection_.own = inspection_.largest;
  EXPECT_TRUE(silent({.limit = 1 << 20, .recent = 0}));
}

TEST_F(DoctorSizes, the_store_takes_more_than_the_destination) {
  inspection_.largest = {"max_payload", 1 << 10, "raise it"};
  const Finding found = only({.limit = 1 << 20, .recent = 0});
  EXPECT_EQ(found.severity, Severity::warning);
  EXPECT_EQ(found.subject, "orders");
  EXPECT_EQ(found.what, "max_payload is 1.0 KiB, and the store takes payloads of 1.0 MiB");
  EXPECT_EQ(found.command, "raise it");
}

TEST_F(DoctorSizes, what_becomes_of_a_larger_event_is_as_on_reject_says) {
  inspection_.largest = {"max_payload", 1 << 10, "raise it"};
  EXPECT_EQ(only({.limit = 1 << 20, .recent = 0}).reason, "a larger event is rejected, and parked");
  on_reject_ = OnReject::stop;
  EXPECT_EQ(only({.limit = 1 << 20, .recent = 0}).reason,
            "a larger event is rejected, and the subscription stops at it (on_reject = \"stop\")");
}

TEST_F(DoctorSizes, an_event_that_is_there_is_larger_than_the_destination_takes) {
  inspection_.largest = {"max_payload", 1 << 10, "raise it"};
  // There is only this finding, because one about the store's larger limit would say less.
  EXPECT_EQ(only({.limit = 1 << 20, .recent = 2 << 10}).what,
            "max_payload is 1.0 KiB, and a payload of the newest events has 2.0 KiB");
  EXPECT_EQ(only({.limit = 1 << 9, .recent = 2 << 10}).severity, Severity::warning);
  EXPECT_TRUE(silent({.limit = 1 << 9, .recent = 1 << 10}));
}

TEST_F(DoctorSizes, the_subscription_allows_more_than_the_destination) {
  inspection_.largest = {"max.message.bytes of the topic", 1 << 20, "raise max.message.bytes"};
  inspection_.own = {"kafka.message.max.bytes", 2 << 20, ""};
  const Finding found = only({.limit = 1 << 20, .recent = 0});
  EXPECT_EQ(found.what,
            "kafka.message.max.bytes is 2.0 MiB, and max.message.bytes of the topic is 1.0 MiB");
  EXPECT_EQ(found.command, "raise max.message.bytes, or lower kafka.message.max.bytes");
}

}  // namespace
}  // namespace outbox::health
