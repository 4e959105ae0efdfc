#include "schedule/schedule.hpp"

#include <gmock/gmock.h>

#include <outbox/task.hpp>
#include <string>

#include "event/time_text.hpp"

namespace outbox::schedule {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr std::int64_t kSecond = 1'000'000;
constexpr std::int64_t kMinute = 60 * kSecond;

std::int64_t us(const std::string& text) { return event::read_time(text).value(); }

Schedule nightly() {
  return {.name = "nightly", .queue = "reports", .type = "report.make", .cron = "0 3 * * *"};
}
Schedule each(std::chrono::milliseconds every, MissedTicks missed = MissedTicks::one) {
  return {.name = "often", .type = "look", .every = every, .missed = missed};
}

std::string complaint(const Schedule& schedule) {
  const Status status = validate(schedule);
  return status ? "" : status.error().message;
}

TEST(Schedule, an_error_names_the_field) {
  EXPECT_EQ(complaint(nightly()), "");
  Schedule one = nightly();
  one.name = "a b";
  EXPECT_EQ(complaint(one), "name: 'a b' has characters that are not allowed");
  one = nightly();
  one.queue = "a b";
  EXPECT_EQ(complaint(one), "queue: 'a b' is no name of a queue");
  one = nightly();
  one.type = "";
  EXPECT_EQ(complaint(one), "type: is empty");
  one = nightly();
  one.payload = "month";
  EXPECT_EQ(complaint(one).substr(0, 20), "payload: is not JSON");
  one.content_type = "text/plain";
  EXPECT_EQ(complaint(one), "");
  one = nightly();
  one.headers = {{"Task-Schedule", "mine"}};
  EXPECT_EQ(complaint(one), "headers: 'Task-Schedule' is given twice");
  one = nightly();
  one.cron = "0 24 * * *";
  EXPECT_EQ(complaint(one), "cron: hour: '24' is no number from 0 to 23");
  one.cron = "";
  EXPECT_EQ(complaint(one), "cron: neither cron nor every is set");
  one = nightly();
  one.every = std::chrono::hours(1);
  EXPECT_EQ(complaint(one), "cron: both cron and every are set");
  one = nightly();
  one.time_zone = "Europe/Berln";
  EXPECT_EQ(complaint(one), "time_zone: 'Europe/Berln' is no time zone that this machine knows");
  one = each(std::chrono::milliseconds(500));
  EXPECT_EQ(complaint(one), "every: '500ms' is not from 1s to 366d");
  one = each(std::chrono::minutes(15));
  one.time_zone = "Europe/Berlin";
  EXPECT_EQ(complaint(one), "time_zone: has no meaning with every");
}

TEST(Schedule, its_task_says_which_tick_it_is_of) {
  Schedule schedule = nightly();
  schedule.key = "k";
  schedule.headers = {{"team", "sales"}};
  const Event event = make_event(schedule, us("2026-10-31T03:00:00Z"));
  EXPECT_EQ(event.aggregate_type, "outbox-task:reports");
  EXPECT_EQ(event.event_type, "report.make");
  EXPECT_EQ(event.aggregate_id, "k");
  EXPECT_EQ(event.payload, "{}");
  EXPECT_THAT(event.headers, ElementsAre(Pair("team", "sales"), Pair("task-schedule", "nightly"),
                                         Pair("task-scheduled-at", "2026-10-31T03:00:00.000000Z")));
}

TEST(Ticks, of_an_interval_are_its_multiples) {
  const auto ticks = Ticks::of(each(std::chrono::minutes(15))).value();
  EXPECT_EQ(ticks.next_us(us("2026-10-31T08:00:00Z")), us("2026-10-31T08:15:00Z"));
  EXPECT_EQ(ticks.next_us(us("2026-10-31T08:14:59.999999Z")), us("2026-10-31T08:15:00Z"));
  EXPECT_EQ(ticks.next_us(us("1969-12-31T23:50:00Z")), us("1970-01-01T00:00:00Z"));
  EXPECT_EQ(Ticks::of(each(std::chrono::seconds(7))).value().next_us(0), 7 * kSecond);
}

TEST(Ticks, of_cron_follow_the_zone) {
  Schedule schedule = nightly();
  schedule.time_zone = "Europe/Berlin";
  const auto ticks = Ticks::of(schedule).value();
  EXPECT_EQ(ticks.next_us(us("2026-10-24T12:00:00.5Z")), us("2026-10-25T02:00:00Z"));
  EXPECT_EQ(ticks.next_us(us("2026-10-25T02:00:00Z")), us("2026-10-26T02:00:00Z"));
  EXPECT_EQ(ticks.next_us(us("2026-10-25T01:59:59.999999Z")), us("2026-10-25T02:00:00Z"));
}

TEST(Ticks, the_newest_are_found_however_many_there_were) {
  const auto newest = [](const Schedule& schedule, const char* from, const char* until,
                         std::size_t most) {
    return Ticks::of(schedule).value().newest(us(from), us(until), most);
  };
  const auto nights = newest(nightly(), "2026-01-01T03:00:00Z", "2026-12-31T02:59:59Z", 2);
  EXPECT_THAT(nights.ticks, ElementsAre(us("2026-12-29T03:00:00Z"), us("2026-12-30T03:00:00Z")));
  EXPECT_TRUE(nights.more);
  const auto exact = newest(nightly(), "2026-12-29T03:00:00Z", "2026-12-30T03:00:00Z", 2);
  EXPECT_THAT(exact.ticks, ElementsAre(us("2026-12-29T03:00:00Z"), us("2026-12-30T03:00:00Z")))
      << "both ends included";
  EXPECT_FALSE(exact.more);
  Schedule yearly = nightly();
  yearly.cron = "* 0 1 1 *";
  const auto years = newest(yearly, "2000-01-01T00:00:00Z", "2026-12-30T00:00:00Z", 1);
  EXPECT_THAT(years.ticks, ElementsAre(us("2026-01-01T00:59:00Z")));
  EXPECT_TRUE(years.more);
  EXPECT_THAT(newest(nightly(), "2026-01-01T03:00:01Z", "2026-01-01T20:00:00Z", 5).ticks,
              IsEmpty());
}

TEST(Ticks, what_was_missed_is_made_up_for_as_the_schedule_says) {
  const std::int64_t next = us("2026-10-31T08:00:00Z");
  const auto due = [&](const Schedule& schedule, std::int64_t late) {
    return due_ticks(schedule, Ticks::of(schedule).value(), next, next + late);
  };
  EXPECT_THAT(due(each(std::chrono::minutes(1)), 0).ticks, ElementsAre(next));
  EXPECT_THAT(due(each(std::chrono::minutes(1)), 3 * kMinute).ticks,
              ElementsAre(next + 3 * kMinute));
  EXPECT_THAT(due(each(std::chrono::minutes(1), MissedTicks::all), 2 * kMinute).ticks,
              ElementsAre(next, next + kMinute, next + 2 * kMinute));
  EXPECT_FALSE(due(each(std::chrono::minutes(1), MissedTicks::all), 2 * kMinute).more);
  const auto many = due(each(std::chrono::minutes(1), MissedTicks::all), 1000 * kMinute);
  EXPECT_EQ(many.ticks.size(), 1000U);
  EXPECT_EQ(many.ticks.front(), next + kMinute);
  EXPECT_TRUE(many.more);
  EXPECT_THAT(due(each(std::chrono::minutes(1), MissedTicks::skip), 0).ticks, ElementsAre(next));
  EXPECT_THAT(due(each(std::chrono::minutes(2), MissedTicks::skip), 3 * kMinute).ticks,
              ElementsAre(next + 2 * kMinute));
  const auto skipped = due(each(std::chrono::hours(1), MissedTicks::skip), 2 * kMinute);
  EXPECT_THAT(skipped.ticks, IsEmpty());
  EXPECT_TRUE(skipped.more);
}

}  // namespace
}  // namespace outbox::schedule
