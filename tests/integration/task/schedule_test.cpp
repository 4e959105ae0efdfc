// Tests schedules on both stores. Each tick is one task, however many workers there are, and missed
// ticks are made up for as the schedule says.
#include "schedule/schedule.hpp"

#include <gmock/gmock.h>

#include <map>
#include <mutex>
#include <outbox/worker.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "event/arena.hpp"
#include "event/headers.hpp"
#include "event/time_text.hpp"
#include "integration/relay/both_stores.hpp"

namespace outbox::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::int64_t kSecond = 1'000'000;
constexpr std::int64_t kHour = 3600 * kSecond;
constexpr std::int64_t kDay = 24 * kHour;

class ScheduleTest : public OnBothStores {
 protected:
  void SetUp() override {
    OnBothStores::SetUp();
    if (IsSkipped()) return;
    schedules_ = store_->schedules().value();
    now_ = schedules_->now_us().value() / kSecond * kSecond;
    handlers_.on("look", [this](std::string_view /*payload*/, const TaskRun& run) {
      event::Arena arena;
      const std::string schedule(event::find_header(run.headers, kScheduleHeader, arena));
      const std::string tick(event::find_header(run.headers, kScheduledAtHeader, arena));
      const std::scoped_lock lock(mutex_);
      tasks_[schedule].emplace(tick, run.id);
    });
  }

  static Schedule often(const std::string& name, MissedTicks missed = MissedTicks::all) {
    return {.name = name,
            .queue = "mail",
            .type = "look",
            .every = std::chrono::seconds(1),
            .missed = missed};
  }
  /// A daily schedule whose time of day was six hours ago.
  [[nodiscard]] Schedule daily(const std::string& name, MissedTicks missed) const {
    const std::int64_t minutes = (now_ - 6 * kHour) / (60 * kSecond);
    return {
        .name = name,
        .queue = "mail",
        .type = "look",
        .cron = std::to_string(minutes % 60) + " " + std::to_string(minutes / 60 % 24) + " * * *",
        .missed = missed};
  }
  [[nodiscard]] std::int64_t newest_daily() const {
    return (now_ - 6 * kHour) / (60 * kSecond) * (60 * kSecond);
  }
  void put(const Schedule& schedule, std::int64_t next_at) {
    const auto put = schedules_->apply(schedule, next_at);
    ASSERT_TRUE(put) << put.error().text();
  }
  store::ScheduleRow read_row(const std::string& name) {
    const auto rows = schedules_->list();
    EXPECT_TRUE(rows) << rows.error().text();
    for (const auto& row : *rows) {
      if (row.schedule.name == name) return row;
    }
    return {};
  }
  std::unique_ptr<Worker> start(std::vector<Schedule> schedules = {}) {
    auto worker = Worker::create({.relay = {.store_url = url_},
                                  .queues = {"mail"},
                                  .threads = 2,
                                  .schedules = std::move(schedules)},
                                 handlers_);
    EXPECT_TRUE(worker) << worker.error().text();
    const Status started = (*worker)->start();
    EXPECT_TRUE(started) << started.error().text();
    return std::move(*worker);
  }
  /// The ticks whose tasks have run. A tick occurs as often as it has tasks.
  std::vector<std::string> ticks(const std::string& schedule) {
    const std::scoped_lock lock(mutex_);
    std::vector<std::string> all;
    for (const auto& [tick, id] : tasks_[schedule]) all.push_back(tick);
    return all;
  }
  [[nodiscard]] bool all_is_done() const {
    const auto catalog = store_->catalog().value();
    const auto rows = catalog->subscriptions().value();
    return !rows.empty() && catalog->progress(rows.front(), 1).value().pending == 0;
  }
  /// Pauses the schedule, waits until all its tasks have run, and returns the ticks that it has
  /// enqueued until then.
  std::vector<std::string> ended(const std::string& schedule) {
    EXPECT_TRUE(schedules_->pause(schedule));
    EXPECT_TRUE(eventually([&] { return all_is_done(); }));
    return ticks(schedule);
  }
  static std::vector<std::string> times(std::int64_t first, std::int64_t last, std::int64_t step) {
    std::vector<std::string> all;
    for (std::int64_t time = first; time <= last; time += step)
      all.push_back(event::time_text(time));
    return all;
  }

  std::unique_ptr<store::Schedules> schedules_;
  std::int64_t now_{0};
  Handlers handlers_;
  std::mutex mutex_;
  /// The tick and the id of each task, by schedule. A task that runs twice is there once.
  std::map<std::string, std::set<std::pair<std::string, EventId>>> tasks_;
};

INSTANTIATE_TEST_SUITE_P(Store, ScheduleTest, ::testing::Values(true, false),
                         [](const auto& store) { return store.param ? "Postgres" : "Sqlite"; });

TEST_P(ScheduleTest, however_many_workers_each_tick_is_one_task) {
  const std::int64_t first = now_ - 2 * kSecond;
  put(often("often"), first);
  const auto one = start({often("often")});
  const auto two = start({often("often")});
  const auto three = start({often("often")});
  EXPECT_TRUE(eventually([&] { return ticks("often").size() >= 6; }));
  const auto found = ended("often");
  EXPECT_EQ(found, times(first, read_row("often").next_at_us - kSecond, kSecond));
  EXPECT_EQ(read_row("often").last_at_us, read_row("often").next_at_us - kSecond);
  for (const auto& worker : {one.get(), two.get(), three.get()})
    EXPECT_TRUE(worker->stop(seconds(10)).drained);
  expect_sound_ledger("task.mail");
}

TEST_P(ScheduleTest, a_worker_that_leaves_takes_no_tick_with_it) {
  const std::int64_t first = now_ - 2 * kSecond;
  put(often("often"), first);
  const auto stays = start();
  for (std::size_t i = 1; i <= 3; ++i) {
    const auto leaves = start();
    EXPECT_TRUE(eventually([&] { return ticks("often").size() >= 2 * i; }));
  }
  const auto found = ended("often");
  EXPECT_EQ(found, times(first, read_row("often").next_at_us - kSecond, kSecond));
}

TEST_P(ScheduleTest, a_worker_writes_its_schedules_and_leaves_the_others) {
  put(often("other"), now_ + kHour);
  Schedule mine = daily("mine", MissedTicks::one);
  mine.payload = R"({"a": 1})";
  {
    const auto worker = start({mine});
    EXPECT_TRUE(eventually([&] { return read_row("mine").schedule == mine; }));
    EXPECT_EQ(read_row("mine").next_at_us, newest_daily() + kDay);
    EXPECT_EQ(read_row("other").next_at_us, now_ + kHour);
  }
  mine.payload = "[]";
  const auto worker = start({mine});
  EXPECT_TRUE(eventually([&] { return read_row("mine").schedule == mine; }));
  EXPECT_THAT(ticks("mine"), IsEmpty());
}

TEST_P(ScheduleTest, missed_ticks_are_made_up_for_as_the_schedule_says) {
  for (const MissedTicks missed : {MissedTicks::one, MissedTicks::skip, MissedTicks::all})
    put(daily(std::string(to_word(missed)), missed), newest_daily() - 2 * kDay);
  const auto worker = start();
  for (const std::string name : {"one", "skip", "all"})
    EXPECT_TRUE(eventually([&] { return read_row(name).next_at_us == newest_daily() + kDay; }))
        << name;
  EXPECT_THAT(ended("one"), ElementsAre(event::time_text(newest_daily())));
  EXPECT_THAT(ended("skip"), IsEmpty());
  EXPECT_EQ(ended("all"), times(newest_daily() - 2 * kDay, newest_daily(), kDay));
}

TEST_P(ScheduleTest, a_paused_one_misses_nothing) {
  put(daily("paused", MissedTicks::all), newest_daily() - 2 * kDay);
  ASSERT_TRUE(schedules_->pause("paused"));
  put(often("often"), now_);
  const auto worker = start({daily("paused", MissedTicks::all), often("often")});
  EXPECT_TRUE(eventually([&] { return ticks("often").size() >= 3; }));
  EXPECT_TRUE(read_row("paused").paused) << "starting a worker does not resume it";
  const auto plan = schedule::Ticks::of(daily("paused", MissedTicks::all)).value();
  EXPECT_TRUE(schedules_->resume(read_row("paused"), *plan.next_us(now_)).value());
  const std::size_t before = ticks("often").size();
  EXPECT_TRUE(eventually([&] { return ticks("often").size() >= before + 2; }));
  EXPECT_EQ(read_row("paused").next_at_us, newest_daily() + kDay);
  EXPECT_THAT(ticks("paused"), IsEmpty());
}

TEST_P(ScheduleTest, one_that_cannot_tick_holds_no_other_up) {
  Schedule wrong = daily("wrong", MissedTicks::all);
  wrong.time_zone = "Nowhere/Land";
  put(wrong, now_ - kDay);
  Schedule worse = often("worse");
  worse.payload = "{";
  put(worse, now_ - kDay);
  put(often("often"), now_);
  const auto worker = start();
  EXPECT_TRUE(eventually([&] { return ticks("often").size() >= 3; }));
  EXPECT_EQ(read_row("wrong").next_at_us, now_ - kDay)
      << "it stays due, for a worker that knows the zone";
  EXPECT_EQ(read_row("worse").next_at_us, now_ - kDay);
}

TEST_P(ScheduleTest, wrong_ones_are_refused_with_their_name) {
  Schedule wrong = often("often");
  wrong.cron = "* * * * *";
  WorkerOptions options{.relay = {.store_url = url_}, .schedules = {often("other"), wrong}};
  EXPECT_EQ(Worker::create(options, handlers_).error().message,
            "schedules: 'often': cron: both cron and every are set");
  options.schedules = {often("often"), often("often")};
  EXPECT_EQ(Worker::create(options, handlers_).error().message,
            "schedules: 'often' is there twice");
}

}  // namespace
}  // namespace outbox::test
