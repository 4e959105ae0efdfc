// [schedule.NAME] sections.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "configuration.hpp"

namespace outbox::config {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(Schedules, are_read) {
  Configuration file(R"([schedule.monthly]
queue = "reports"
type = "report.make"
payload = '{"kind": "${env:KIND}"}'
key = "k"
headers = { team = "sales" }
cron = "30 6 1 * *"
time_zone = "Europe/Berlin"
missed = "all"
[schedule."often.enough"]
type = "look"
every = "15min"
)");
  file.set("KIND", "sales");
  const auto schedules = file.loaded().config.worker.schedules;
  ASSERT_EQ(schedules.size(), 2U);
  EXPECT_EQ(schedules[0].name, "monthly");
  EXPECT_EQ(schedules[0].queue, "reports");
  EXPECT_EQ(schedules[0].type, "report.make");
  EXPECT_EQ(schedules[0].payload, R"({"kind": "sales"})");
  EXPECT_EQ(schedules[0].key, "k");
  EXPECT_THAT(schedules[0].headers, ElementsAre(Pair("team", "sales")));
  EXPECT_EQ(schedules[0].cron, "30 6 1 * *");
  EXPECT_EQ(schedules[0].time_zone, "Europe/Berlin");
  EXPECT_EQ(schedules[0].missed, MissedTicks::all);
  EXPECT_EQ(schedules[1],
            (Schedule{.name = "often.enough", .type = "look", .every = std::chrono::minutes(15)}));
  EXPECT_EQ(file.shown("schedule.monthly", "cron"), R"("30 6 1 * *" outbox.toml:7)");
  EXPECT_EQ(file.shown("schedule.monthly", "payload"),
            R"("{\"kind\": \"${env:KIND}\"}" outbox.toml:4)");
  EXPECT_EQ(file.shown("schedule.\"often.enough\"", "time_zone"), R"("UTC" default)");
}

TEST(Schedules, that_are_wrong_are_refused_with_the_place) {
  const auto problems = [](const std::string& lines) {
    return Configuration("[schedule.x]\n" + lines).problems();
  };
  EXPECT_THAT(problems("type = \"a\"\nevery = \"1h\"\n"), IsEmpty());
  EXPECT_THAT(problems("type = \"a\"\ncron = \"0 24 * * *\"\n"),
              ElementsAre("3 schedule.x: cron: hour: '24' is no number from 0 to 23"));
  EXPECT_THAT(
      problems("every = \"1h\"\n"),
      ElementsAre("1 schedule.x: type: is empty (what is to be done, such as report.make)"));
  EXPECT_THAT(
      problems("type = \"a\"\n"),
      ElementsAre("1 schedule.x: cron: neither cron nor every is set (cron = \"30 8 * * *\" "
                  "or every = \"15min\")"));
  EXPECT_THAT(
      problems("type = \"a\"\nevery = \"1h\"\ncron = \"@daily\"\n"),
      ElementsAre("4 schedule.x: cron: both cron and every are set (cron = \"30 8 * * *\" or "
                  "every = \"15min\")"));
  EXPECT_THAT(
      problems("type = \"a\"\ncron = \"@daily\"\ntime_zone = \"Mars\"\n"),
      ElementsAre("4 schedule.x: time_zone: 'Mars' is no time zone that this machine knows "
                  "(a name of the tz database such as Europe/Berlin; the package tzdata has "
                  "them (old names such as US/Eastern: tzdata-legacy, since Debian 13))"));
  EXPECT_THAT(problems("type = \"a\"\nevery = \"100ms\"\n"),
              ElementsAre("3 schedule.x: every: '100ms' is not from 1s to 366d"));
  EXPECT_EQ(problems("type = \"a\"\nevery = \"1h\"\npayload = \"{\"\n").size(), 1U);
  EXPECT_THAT(problems("type = \"a\"\nevery = \"1h\"\nmised = \"one\"\n"),
              ElementsAre("4 unknown setting schedule.x.mised (did you mean missed?)"));
  EXPECT_EQ(problems("type = \"a\"\nevery = \"1h\"\nmissed = \"none\"\n").size(), 1U);
  EXPECT_THAT(Configuration("[schedule.\"a b\"]\ntype = \"a\"\nevery = \"1h\"\n").problems(),
              ElementsAre("1 schedule.a b: name: 'a b' has characters that are not allowed (use "
                          "letters, digits, '-', '_' and '.')"));
}

}  // namespace
}  // namespace outbox::config
