// Tests that each tick of a schedule is enqueued once, and that a change holds for the next tick.
#include <atomic>
#include <thread>

#include "conformance/store/fixture.hpp"
#include "event/arena.hpp"
#include "event/headers.hpp"
#include "event/time_text.hpp"
#include "schedule/schedule.hpp"

namespace outbox::conformance {
namespace {

using store::ScheduleRow;
using store::Tick;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::int64_t kSecond = 1'000'000;
constexpr std::int64_t kHour = 3600 * kSecond;

class ScheduleSuite : public StoreTest {
 protected:
  void SetUp() override {
    StoreTest::SetUp();
    schedules_ = std::move(*store_->schedules());
    start_ = load(subscribe(make_spec("mails")).id).cursor;
    now_ = schedules_->now_us().value() / kSecond * kSecond;
  }

  static Schedule nightly(const std::string& name = "nightly") {
    return {.name = name,
            .queue = "reports",
            .type = "report.make",
            .payload = "{\"n\": 1}\n",
            .key = "k",
            .headers = {{"team", "sales"}, {"umlaut", "\xc3\xa4"}},
            .cron = "0 3 * * *",
            .time_zone = "Europe/Berlin",
            .missed = MissedTicks::all};
  }
  bool apply(const Schedule& schedule, std::int64_t next_at) {
    const auto changed = schedules_->apply(schedule, next_at);
    EXPECT_TRUE(ok(changed));
    return changed.value_or(false);
  }
  ScheduleRow make_row(const std::string& name = "nightly") {
    const auto rows = schedules_->list();
    EXPECT_TRUE(ok(rows));
    for (const ScheduleRow& row : *rows) {
      if (row.schedule.name == name) return row;
    }
    ADD_FAILURE() << "no schedule " << name;
    return {};
  }
  std::vector<std::string> due(const std::vector<std::string>& queues = {"reports"}) {
    const auto found = schedules_->due(queues);
    EXPECT_TRUE(ok(found));
    std::vector<std::string> names;
    for (const ScheduleRow& row : found->due) names.push_back(row.schedule.name);
    return names;
  }
  bool tick(const ScheduleRow& row, std::int64_t next_at, bool with_task = true) {
    Tick tick{.at_us = row.next_at_us, .next_at_us = next_at};
    if (with_task) tick.task = schedule::make_event(row.schedule, row.next_at_us);
    const auto done = schedules_->tick(row, tick);
    EXPECT_TRUE(ok(done));
    return done.value_or(false);
  }
  /// The tasks in the log.
  std::vector<EventView> tasks() {
    drive_ = std::make_unique<LogDrive>(*store_, start_);
    return drive_->rest();
  }

  std::unique_ptr<store::Schedules> schedules_;
  std::int64_t now_{0};
  store::Cursor start_;
  std::unique_ptr<LogDrive> drive_;
};

TEST_P(ScheduleSuite, one_is_kept_as_it_was_given) {
  EXPECT_TRUE(apply(nightly(), now_ + kHour));
  const ScheduleRow row = make_row();
  EXPECT_EQ(row.schedule, nightly());
  EXPECT_FALSE(row.paused);
  EXPECT_EQ(row.next_at_us, now_ + kHour);
  EXPECT_FALSE(row.last_at_us);
  EXPECT_FALSE(row.last_task);
  EXPECT_FALSE(apply(nightly(), now_ + 2 * kHour)) << "nothing changed";
  EXPECT_EQ(make_row().next_at_us, now_ + kHour);
}

TEST_P(ScheduleSuite, other_ticks_are_counted_from_now_and_anything_else_leaves_them) {
  apply(nightly(), now_ + kHour);
  Schedule other = nightly();
  other.payload = "[]";
  other.missed = MissedTicks::skip;
  EXPECT_TRUE(apply(other, now_ + 2 * kHour));
  EXPECT_EQ(make_row().schedule, other);
  EXPECT_EQ(make_row().next_at_us, now_ + kHour);
  other.time_zone = "UTC";
  EXPECT_TRUE(apply(other, now_ + 2 * kHour));
  EXPECT_EQ(make_row().next_at_us, now_ + 2 * kHour);
  other.cron = "0 4 * * *";
  EXPECT_TRUE(apply(other, now_ + 3 * kHour));
  EXPECT_EQ(make_row().next_at_us, now_ + 3 * kHour);
  other.cron = "";
  other.every = std::chrono::hours(1);
  EXPECT_TRUE(apply(other, now_ + 4 * kHour));
  EXPECT_EQ(make_row().next_at_us, now_ + 4 * kHour);
}

TEST_P(ScheduleSuite, a_paused_one_has_no_tick_and_is_still_there_for_the_tickers) {
  EXPECT_FALSE(schedules_->due(std::vector<std::string>{"reports"})->any);
  apply(nightly(), now_ - kSecond);
  ASSERT_TRUE(ok(schedules_->pause("nightly")));
  const auto found = schedules_->due(std::vector<std::string>{"reports"}).value();
  EXPECT_TRUE(found.any) << "a ticker looks again soon, since a person may resume it";
  EXPECT_FALSE(found.next_at_us);
  EXPECT_THAT(found.due, IsEmpty());
  EXPECT_FALSE(schedules_->due(std::vector<std::string>{"mails"})->any);
}

TEST_P(ScheduleSuite, what_is_due_is_read_in_the_order_of_the_ticks_of_the_queues) {
  const auto none = schedules_->due(std::vector<std::string>{"reports"});
  EXPECT_FALSE(none->next_at_us);
  apply(nightly("later"), now_ - 1 * kSecond);
  apply(nightly("first"), now_ - 2 * kSecond);
  apply(nightly("ahead"), now_ + kHour);
  Schedule other = nightly("other");
  other.queue = "mails";
  apply(other, now_ - 3 * kSecond);
  EXPECT_THAT(due(), ElementsAre("first", "later"));
  EXPECT_THAT(due({"mails", "reports"}), ElementsAre("other", "first", "later"));
  EXPECT_THAT(due({"nothing"}), IsEmpty());
  const auto found = schedules_->due(std::vector<std::string>{"reports", "mails"}).value();
  EXPECT_EQ(found.next_at_us, now_ - 3 * kSecond);
  EXPECT_GE(found.now_us, now_);
  EXPECT_EQ(found.due.back().schedule, nightly("later"));
}

TEST_P(ScheduleSuite, without_due_ones_the_next_tick_is_known) {
  apply(nightly(), now_ + kHour);
  const auto found = schedules_->due(std::vector<std::string>{"reports"}).value();
  EXPECT_THAT(found.due, IsEmpty());
  EXPECT_EQ(found.next_at_us, now_ + kHour);
}

TEST_P(ScheduleSuite, a_tick_enqueues_its_task_and_moves_on) {
  apply(nightly(), now_ - kHour);
  EXPECT_TRUE(tick(make_row(), now_ + kHour));
  const ScheduleRow row = make_row();
  EXPECT_EQ(row.next_at_us, now_ + kHour);
  EXPECT_EQ(row.last_at_us, now_ - kHour);
  const auto log = tasks();
  ASSERT_EQ(log.size(), 1U);
  EXPECT_EQ(row.last_task, log.front().id);
  EXPECT_EQ(log.front().aggregate_type, "outbox-task:reports");
  EXPECT_EQ(log.front().payload, "{\"n\": 1}\n");
  event::Arena arena;
  EXPECT_EQ(event::find_header(log.front().headers, kScheduledAtHeader, arena),
            event::time_text(now_ - kHour));
  EXPECT_THAT(due(), IsEmpty());
}

TEST_P(ScheduleSuite, one_that_was_read_before_another_ticked_does_nothing) {
  apply(nightly(), now_ - kHour);
  const ScheduleRow read = make_row();
  EXPECT_TRUE(tick(read, now_ - kHour));
  EXPECT_FALSE(tick(read, now_ + kHour)) << "also when the next tick is at the same time";
  EXPECT_EQ(tasks().size(), 1U);
  EXPECT_EQ(make_row().next_at_us, now_ - kHour);
}

TEST_P(ScheduleSuite, one_that_was_read_before_it_was_changed_does_nothing) {
  apply(nightly(), now_ - kHour);
  ScheduleRow read = make_row();
  Schedule other = nightly();
  other.payload = "[]";
  apply(other, now_);
  EXPECT_FALSE(tick(read, now_ + kHour)) << "the old payload";
  read = make_row();
  ASSERT_TRUE(schedules_->pause("nightly"));
  EXPECT_FALSE(tick(read, now_ + kHour));
  EXPECT_TRUE(ok(schedules_->remove("nightly")));
  EXPECT_FALSE(tick(read, now_ + kHour));
  EXPECT_THAT(tasks(), IsEmpty());
}

TEST_P(ScheduleSuite, a_tick_can_be_skipped) {
  apply(nightly(), now_ - kHour);
  EXPECT_TRUE(tick(make_row(), now_ + kHour, false));
  EXPECT_EQ(make_row().next_at_us, now_ + kHour);
  EXPECT_FALSE(make_row().last_at_us);
  EXPECT_THAT(tasks(), IsEmpty());
}

TEST_P(ScheduleSuite, a_task_that_is_not_valid_moves_nothing) {
  apply(nightly(), now_ - kHour);
  Tick bad{
      .task = schedule::make_event(nightly(), now_), .at_us = now_, .next_at_us = now_ + kHour};
  bad.task->payload = "{";
  EXPECT_FALSE(schedules_->tick(make_row(), bad));
  EXPECT_EQ(make_row().next_at_us, now_ - kHour);
}

TEST_P(ScheduleSuite, many_tick_one_schedule_and_each_tick_is_enqueued_once) {
  constexpr std::int64_t ticks = 60;
  apply(nightly(), now_ - ticks * kSecond);
  std::atomic<int> faults{0};
  {
    std::vector<std::jthread> workers;
    for (int i = 0; i < 4; ++i) {
      workers.emplace_back([&] {
        const auto mine = std::move(*store_->schedules());
        while (true) {
          const auto found = mine->due(std::vector<std::string>{"reports"});
          if (!found) ++faults;
          if (!found || found->due.empty() || found->due.front().next_at_us > now_) return;
          const ScheduleRow& row = found->due.front();
          const auto done =
              mine->tick(row, {.task = schedule::make_event(row.schedule, row.next_at_us),
                               .at_us = row.next_at_us,
                               .next_at_us = row.next_at_us + kSecond});
          if (!done && done.error().remedy == Remedy::fix) ++faults;
        }
      });
    }
  }
  EXPECT_EQ(faults, 0);
  std::vector<std::string> found;
  event::Arena arena;
  for (const EventView& task : tasks())
    found.emplace_back(event::find_header(task.headers, kScheduledAtHeader, arena));
  std::vector<std::string> expected;
  for (std::int64_t tick = now_ - ticks * kSecond; tick <= now_; tick += kSecond)
    expected.push_back(event::time_text(tick));
  EXPECT_EQ(found, expected) << "and in order";
}

TEST_P(ScheduleSuite, a_paused_one_is_not_due_and_resumes_at_the_tick_that_is_given) {
  apply(nightly(), now_ - kHour);
  ASSERT_TRUE(schedules_->pause("nightly"));
  EXPECT_TRUE(make_row().paused);
  EXPECT_THAT(due(), IsEmpty());
  EXPECT_FALSE(schedules_->due(std::vector<std::string>{"reports"})->next_at_us);
  Schedule other = nightly();
  other.payload = "[]";
  apply(other, now_);
  EXPECT_TRUE(make_row().paused) << "a configuration does not resume it";
  const ScheduleRow row = make_row();
  EXPECT_TRUE(ok(schedules_->resume(row, now_ + kHour)));
  EXPECT_FALSE(make_row().paused);
  EXPECT_EQ(make_row().next_at_us, now_ + kHour);
  EXPECT_FALSE(schedules_->resume(row, now_ + 2 * kHour).value()) << "it has changed";
  EXPECT_FALSE(schedules_->resume(make_row(), now_ + 2 * kHour).value()) << "it is not paused";
  EXPECT_EQ(make_row().next_at_us, now_ + kHour);
}

TEST_P(ScheduleSuite, one_that_is_removed_is_gone) {
  apply(nightly(), now_ - kHour);
  EXPECT_TRUE(schedules_->remove("nightly").value());
  EXPECT_FALSE(schedules_->remove("nightly").value());
  EXPECT_THAT(due(), IsEmpty());
  EXPECT_THAT(schedules_->list().value(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Store, ScheduleSuite, ::testing::ValuesIn(backends()), backend_name);

}  // namespace
}  // namespace outbox::conformance
