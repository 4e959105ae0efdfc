// Tests what a row of the history has: differences of totals, and the interval they belong to.
#include "history/work_done.hpp"

#include <gmock/gmock.h>

#include <algorithm>

namespace outbox::history {
namespace {

using std::chrono::microseconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

SubscriptionTotals make_totals(const std::string& name, std::uint64_t delivered,
                               std::uint64_t failed = 0) {
  SubscriptionTotals totals;
  totals.name = name;
  totals.sink = "http";
  totals.delivered = delivered;
  totals.sends.outcomes[static_cast<std::size_t>(Outcome::Kind::acked)] = delivered;
  totals.sends.outcomes[static_cast<std::size_t>(Outcome::Kind::retry)] = failed;
  for (std::uint64_t i = 0; i < delivered; ++i)
    totals.sends.latency.add(std::chrono::milliseconds(20));
  return totals;
}

RelayReport make_report(std::vector<SubscriptionTotals> totals) {
  RelayReport report;
  report.totals = std::move(totals);
  return report;
}

WorkDone find(const std::vector<WorkDone>& all, const std::string& name,
              const std::string& type = {}) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const WorkDone& one) {
    return one.subscription == name && one.row.type == type;
  });
  EXPECT_NE(found, all.end()) << name << " " << type;
  return found == all.end() ? WorkDone{} : *found;
}

TEST(WorkDone, a_row_has_the_difference_of_two_reports) {
  const auto before = make_report({make_totals("orders", 5, 1)});
  auto totals = make_totals("orders", 8, 5);
  totals.parked = 2;
  totals.dead = 1;
  const auto done = work_done(before, make_report({totals}));
  const WorkDone orders = find(done, "orders");
  EXPECT_TRUE(orders.any());
  EXPECT_EQ(orders.row.delivered, 3);
  EXPECT_EQ(orders.row.failed, 4);
  EXPECT_EQ(orders.row.parked, 2);
  EXPECT_EQ(orders.row.dead, 1);
  EXPECT_THAT(orders.row.latency, ElementsAre(0, 0, 3)) << "at most 25 ms, and no zeros behind";
}

TEST(WorkDone, without_a_change_nothing_was_done) {
  const auto report = make_report({make_totals("orders", 5, 1)});
  const auto done = work_done(report, report);
  EXPECT_FALSE(find(done, "orders").any());
  EXPECT_THAT(find(done, "orders").row.latency, IsEmpty());
}

TEST(WorkDone, what_was_delivered_before_the_first_report_is_not_done_again) {
  const auto done = work_done({}, make_report({make_totals("orders", 5)}));
  EXPECT_EQ(find(done, "orders").row.delivered, 5) << "a subscription that is new to this process";
  const auto smaller =
      work_done(make_report({make_totals("orders", 7)}), make_report({make_totals("orders", 5)}));
  EXPECT_EQ(find(smaller, "orders").row.delivered, 0);
}

TEST(WorkDone, the_totals_of_a_renamed_subscription_go_on) {
  const auto before =
      make_report({make_totals("a", 3), make_totals("mails", 40), make_totals("z", 1000)});
  const auto now = make_report({make_totals("a", 3), make_totals("letters", 42),
                                make_totals("new", 1), make_totals("z", 1000)});
  const auto done = work_done(before, now);
  EXPECT_EQ(find(done, "letters").row.delivered, 2);
  EXPECT_EQ(find(done, "new").row.delivered, 1) << "too few for those of mails";
  EXPECT_EQ(find(done, "z").row.delivered, 0);
}

TEST(WorkDone, tasks_have_a_row_for_each_type) {
  TaskTotals note{.queue = "mail", .type = "note"};
  note.completed = 4;
  RelayReport before;
  before.tasks = {note};
  note.completed = 6;
  note.failed = 1;
  note.duration.add(std::chrono::seconds(2));
  TaskTotals other{.queue = "mail", .type = "other"};
  other.dead = 1;
  RelayReport now;
  now.tasks = {note, other};
  const auto done = work_done(before, now);
  const WorkDone notes = find(done, "task.mail", "note");
  EXPECT_EQ(notes.row.delivered, 2);
  EXPECT_EQ(notes.row.failed, 1);
  EXPECT_EQ(notes.row.latency.size(), DurationHistogram::bucket(2) + 1);
  EXPECT_EQ(find(done, "task.mail", "other").row.dead, 1);
}

TEST(WorkDone, a_subscription_that_cannot_be_started_is_among_them) {
  RelayReport now;
  now.subscriptions = {{.name = "broken", .state = "broken", .reason = "no such topic"}};
  EXPECT_FALSE(find(work_done({}, now), "broken").any());
  EXPECT_TRUE(may_have_pending(now));
  EXPECT_TRUE(serves_subscription(now, "broken"));
  EXPECT_FALSE(serves_subscription(now, "orders"));
}

TEST(WorkDone, nothing_can_be_pending_while_all_make_progress_with_an_empty_window) {
  RelayReport report;
  report.subscriptions = {{.name = "orders", .state = "delivering", .reason = ""}};
  EXPECT_FALSE(may_have_pending(report));
  report.subscriptions.front().in_window = 1;
  EXPECT_TRUE(may_have_pending(report));
  report.subscriptions.front().in_window = 0;
  report.subscriptions.front().state = "backing-off";
  EXPECT_TRUE(may_have_pending(report));
}

TEST(IntervalBegin, a_time_belongs_to_the_interval_that_has_its_middle) {
  constexpr microseconds kMinute{60'000'000};
  const auto at = [&](double now_minutes, double length_minutes) {
    const auto us = [](double length) { return static_cast<std::int64_t>(length * 60e6); };
    return interval_begin(us(now_minutes), microseconds(us(length_minutes)), kMinute) / 60'000'000;
  };
  EXPECT_EQ(at(10.001, 1), 9) << "a whole minute, a little late";
  EXPECT_EQ(at(9.999, 1), 9) << "a little early";
  EXPECT_EQ(at(10.5, 0.5), 10) << "the part of a minute before a stop";
  EXPECT_EQ(at(10, 0.25), 9) << "the part of a minute after a start";
  EXPECT_EQ(at(10.001, 30), 9) << "after an outage all belongs to the last minute";
}

}  // namespace
}  // namespace outbox::history
