#include "schedule/cron.hpp"

#include <gmock/gmock.h>

#include <array>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "event/time_text.hpp"
#include "zone_clock.hpp"

namespace outbox::schedule {
namespace {

using std::chrono::seconds;
using std::chrono::sys_seconds;
using ::testing::ElementsAre;

sys_seconds at(const std::string& text) {
  return std::chrono::floor<seconds>(std::chrono::sys_time<std::chrono::microseconds>(
      std::chrono::microseconds(event::read_time(text).value())));
}

/// The next ones, as "03-29 01:00", UTC.
std::vector<std::string> ticks(const std::string& cron, const std::string& zone,
                               const std::string& after, std::size_t count) {
  const auto parsed = Cron::parse(cron);
  EXPECT_TRUE(parsed) << parsed.error().text();
  const auto found = TimeZone::find(zone).value();
  std::vector<std::string> all;
  sys_seconds time = at(after);
  while (parsed && all.size() < count) {
    time = parsed->next(time, found).value();
    const std::string text =
        event::time_text(std::chrono::microseconds(time.time_since_epoch()).count());
    all.push_back(text.substr(5, 5) + " " + text.substr(11, 5));
  }
  return all;
}
std::vector<std::string> ticks(const std::string& cron, const std::string& after,
                               std::size_t count) {
  return ticks(cron, "UTC", after, count);
}

std::string complaint(const std::string& cron) {
  const auto parsed = Cron::parse(cron);
  return parsed ? "" : parsed.error().message;
}

TEST(Cron, five_fields_say_when) {
  EXPECT_THAT(ticks("30 8 * * *", "2026-01-01T08:30:00Z", 2),
              ElementsAre("01-02 08:30", "01-03 08:30"));
  EXPECT_THAT(ticks("*/20 * * * *", "2026-01-01T08:39:59Z", 3),
              ElementsAre("01-01 08:40", "01-01 09:00", "01-01 09:20"));
  EXPECT_THAT(
      ticks("5,10-12,58-59/2 23 31 12 *", "2026-01-01T00:00:00Z", 5),
      ElementsAre("12-31 23:05", "12-31 23:10", "12-31 23:11", "12-31 23:12", "12-31 23:58"));
  EXPECT_THAT(ticks("0 0 29 2 *", "2097-01-01T00:00:00Z", 1), ElementsAre("02-29 00:00"));
  EXPECT_THAT(ticks("0 9 * Jan-mar MON-Fri", "2026-01-30T10:00:00Z", 2),
              ElementsAre("02-02 09:00", "02-03 09:00"));
  EXPECT_THAT(ticks("0 9 * * 7", "2026-01-01T00:00:00Z", 1), ElementsAre("01-04 09:00"));
  EXPECT_THAT(ticks("0 9 * * sun", "2026-01-01T00:00:00Z", 1), ElementsAre("01-04 09:00"));
  EXPECT_THAT(ticks("0 9 * * fri-sun", "2026-01-01T00:00:00Z", 4),
              ElementsAre("01-02 09:00", "01-03 09:00", "01-04 09:00", "01-09 09:00"));
}

TEST(Cron, of_two_kinds_of_days_either_suffices_unless_one_has_a_star) {
  EXPECT_THAT(ticks("0 0 13 * fri", "2026-01-01T00:00:00Z", 4),
              ElementsAre("01-02 00:00", "01-09 00:00", "01-13 00:00", "01-16 00:00"));
  EXPECT_THAT(ticks("0 0 */2 * fri", "2026-01-01T00:00:00Z", 3),
              ElementsAre("01-09 00:00", "01-23 00:00", "02-13 00:00"));
}

TEST(Cron, there_are_short_forms) {
  EXPECT_THAT(ticks("@hourly", "2026-01-01T08:30:00Z", 1), ElementsAre("01-01 09:00"));
  EXPECT_THAT(ticks("@daily", "2026-01-01T08:30:00Z", 1), ElementsAre("01-02 00:00"));
  EXPECT_THAT(ticks("@Weekly", "2026-01-01T08:30:00Z", 1), ElementsAre("01-04 00:00"));
  EXPECT_THAT(ticks("@monthly", "2026-01-01T08:30:00Z", 1), ElementsAre("02-01 00:00"));
  EXPECT_THAT(ticks(" @yearly ", "2026-01-01T08:30:00Z", 1), ElementsAre("01-01 00:00"));
}

TEST(Cron, an_error_names_the_field) {
  EXPECT_EQ(complaint("0 25 * * *"), "hour: '25' is no number from 0 to 23");
  EXPECT_EQ(complaint("60 * * * *"), "minute: '60' is no number from 0 to 59");
  EXPECT_EQ(complaint("* * 0 * *"), "day of month: '0' is no number from 1 to 31");
  EXPECT_EQ(complaint("* * * foo *"),
            "month: 'foo' is no number from 1 to 12, and no name such as jan");
  EXPECT_EQ(complaint("* * * * 8"),
            "day of week: '8' is no number from 0 to 7, and no name such as sun");
  EXPECT_EQ(complaint("9-5 * * * *"), "minute: '9-5' ends before it begins");
  EXPECT_EQ(complaint("5/10 * * * *"), "minute: '5/10' has a step, but no range");
  EXPECT_EQ(complaint("*/0 * * * *"), "minute: '*/0' has a step that is no number from 1 to 59");
  EXPECT_EQ(complaint("1,,2 * * * *"), "minute: has an empty item in its list");
  EXPECT_EQ(complaint("0 0 30 2 *"), "day of month: none of its months has a day 30");
  EXPECT_EQ(complaint("0 0 31 4,6,9,11 *"), "day of month: none of its months has a day 31");
  EXPECT_EQ(complaint("0 0 29 2 *"), "");
  EXPECT_EQ(complaint("0 0 30 2 mon"), "") << "Mondays in February";
  EXPECT_EQ(complaint("* * * *"), "'* * * *' has 4 fields instead of 5");
  EXPECT_EQ(complaint("0 * * * * *"), "'0 * * * * *' has 6 fields instead of 5");
  EXPECT_EQ(complaint("  "), "is empty");
  EXPECT_EQ(complaint("@reboot"), "'@reboot' is unknown");
  for (const char* text : {"*5 * * * *", "1- * * * *", "-1 * * * *", "+1 * * * *", "1-2-3 * * * *",
                           "*/ * * * *", "*/1/2 * * * *", "? * * * *", "0 0 L * *", "0 0 * * 1#2",
                           "99999999999 * * * *", "1.5 * * * *", "**/2 * * * *"})
    EXPECT_NE(complaint(text), "") << text;
}

// ---- The clock changes. Berlin: 2026-03-29 02:00 -> 03:00 (01:00 UTC), 2026-10-25 03:00 -> 02:00 (01:00 UTC).

TEST(Cron, a_time_that_does_not_exist_is_the_first_moment_after_the_gap) {
  EXPECT_THAT(ticks("30 2 * * *", "Europe/Berlin", "2026-03-28T00:00:00Z", 3),
              ElementsAre("03-28 01:30", "03-29 01:00", "03-30 00:30"));
  EXPECT_THAT(ticks("*/10 2,3 29 3 *", "Europe/Berlin", "2026-03-28T12:00:00Z", 2),
              ElementsAre("03-29 01:00", "03-29 01:10"))
      << "once";
  EXPECT_THAT(ticks("0 */2 * * *", "Europe/Berlin", "2026-03-28T22:30:00Z", 3),
              ElementsAre("03-28 23:00", "03-29 01:00", "03-29 02:00"))
      << "03:00 in place of 02:00";
  EXPECT_THAT(ticks("30 2 * * *", "America/New_York", "2026-03-08T00:00:00Z", 2),
              ElementsAre("03-08 07:00", "03-09 06:30"));
  // 2026-10-04 02:00 -> 02:30 (15:30 UTC the day before).
  EXPECT_THAT(ticks("15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z", 2),
              ElementsAre("10-03 15:30", "10-04 15:15"));
  EXPECT_THAT(ticks("45 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z", 2),
              ElementsAre("10-03 15:45", "10-04 15:45"));
  // The clock of Samoa left 2011-12-30 out.
  EXPECT_THAT(ticks("0 8 * * *", "Pacific/Apia", "2011-12-29T18:30:00Z", 2),
              ElementsAre("12-30 10:00", "12-30 18:00"));
}

TEST(Cron, a_time_that_is_there_twice_runs_at_its_first) {
  EXPECT_THAT(ticks("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", 2),
              ElementsAre("10-25 00:30", "10-26 01:30"));
  EXPECT_THAT(ticks("30 1-3 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", 4),
              ElementsAre("10-24 23:30", "10-25 00:30", "10-25 02:30", "10-26 00:30"));
  EXPECT_THAT(ticks("30 1 * * *", "America/New_York", "2026-10-31T12:00:00Z", 2),
              ElementsAre("11-01 05:30", "11-02 06:30"));
  // 2026-04-05 02:00 -> 01:30 (15:00 UTC the day before).
  EXPECT_THAT(ticks("45 1 * * *", "Australia/Lord_Howe", "2026-04-04T00:00:00Z", 2),
              ElementsAre("04-04 14:45", "04-05 15:15"));
  EXPECT_THAT(ticks("0 2 * * *", "Australia/Lord_Howe", "2026-04-04T00:00:00Z", 2),
              ElementsAre("04-04 15:30", "04-05 15:30"))
      << "02:00 itself is there once";
}

TEST(Cron, what_runs_in_every_hour_runs_whenever_the_clock_shows_its_minute) {
  EXPECT_THAT(ticks("5 * * * *", "Europe/Berlin", "2026-03-29T00:00:00Z", 3),
              ElementsAre("03-29 00:05", "03-29 01:05", "03-29 02:05"));
  EXPECT_THAT(ticks("5 * * * *", "Europe/Berlin", "2026-10-25T00:00:00Z", 3),
              ElementsAre("10-25 00:05", "10-25 01:05", "10-25 02:05"));
  EXPECT_THAT(ticks("0 */2 * * *", "Europe/Berlin", "2026-10-24T21:00:00Z", 4),
              ElementsAre("10-24 22:00", "10-25 00:00", "10-25 01:00", "10-25 03:00"))
      << "a step runs in both";
  EXPECT_THAT(ticks("*/15 * * * *", "Australia/Lord_Howe", "2026-10-03T15:00:00Z", 4),
              ElementsAre("10-03 15:15", "10-03 15:30", "10-03 15:45", "10-03 16:00"));
  EXPECT_THAT(ticks("45 * * * *", "Australia/Lord_Howe", "2026-04-04T14:00:00Z", 3),
              ElementsAre("04-04 14:45", "04-04 15:15", "04-04 16:15"));
}

TEST(Cron, years_ahead_have_summer_too) {
  EXPECT_THAT(ticks("30 8 1 7 *", "Europe/Berlin", "2050-01-01T00:00:00Z", 1),
              ElementsAre("07-01 06:30"));
}

// ---- Against a search of each minute that reads the clock of the C library.

struct FieldText {
  std::string text;
  std::set<int> values;
};

/// A field at random, and what it means.
FieldText any_field(std::mt19937_64& random, int least, int most, bool hour = false) {
  const auto pick = [&](int from, int to) {
    return from + static_cast<int>(random() % static_cast<std::uint64_t>(to - from + 1));
  };
  FieldText field;
  const auto add = [&](int first, int last, int step) {
    for (int value = first; value <= last; value += step) field.values.insert(value);
  };
  switch (pick(0, 4)) {
    case 0:
    case 1:
      field.text = "*";
      add(least, most, 1);
      break;
    case 2: {
      const int step = pick(1, hour ? 6 : most / 2);
      field.text = "*/" + std::to_string(step);
      add(least, most, step);
      break;
    }
    case 3: {
      const int first = pick(least, most);
      const int last = pick(first, most);
      const int step = pick(1, 3);
      field.text = std::to_string(first) + "-" + std::to_string(last) +
                   (step == 1 ? "" : "/" + std::to_string(step));
      add(first, last, step);
      break;
    }
    default:
      for (int i = pick(1, 3); i > 0; --i) {
        const int value = pick(least, most);
        field.text += (field.text.empty() ? "" : ",") + std::to_string(value);
        field.values.insert(value);
      }
  }
  return field;
}

struct AnyCron {
  std::array<FieldText, 5> fields;

  explicit AnyCron(std::mt19937_64& random)
      : fields{any_field(random, 0, 59), any_field(random, 0, 23, true), any_field(random, 1, 31),
               any_field(random, 1, 12), any_field(random, 0, 6)} {}
  [[nodiscard]] std::string text() const {
    std::string all;
    for (const FieldText& field : fields) all += (all.empty() ? "" : " ") + field.text;
    return all;
  }
  [[nodiscard]] bool shows(const std::tm& local) const {
    if (!fields[0].values.contains(local.tm_min) || !fields[1].values.contains(local.tm_hour) ||
        !fields[3].values.contains(local.tm_mon + 1))
      return false;
    const bool day = fields[2].values.contains(local.tm_mday);
    const bool weekday = fields[4].values.contains(local.tm_wday);
    const bool star = fields[2].text.front() == '*' || fields[4].text.front() == '*';
    return star ? day && weekday : day || weekday;
  }
  [[nodiscard]] bool in_every_hour() const { return fields[1].values.size() == 24; }
  [[nodiscard]] bool in_both_hours() const {
    return in_every_hour() || fields[1].text.find_first_of("*/") != std::string::npos;
  }
};

/// Walks minute by minute from `from` to `to`.
std::vector<std::int64_t> searched(const AnyCron& cron, const ZoneClock& clock, std::int64_t from,
                                   std::int64_t to) {
  std::vector<std::int64_t> found;
  std::int64_t shown = from - 60 + clock.at(from - 60).tm_gmtoff;  // the latest local time so far
  for (std::int64_t time = from; time <= to; time += 60) {
    const std::tm local = clock.at(time);
    const std::int64_t now = time + local.tm_gmtoff;
    bool ticks = cron.shows(local) && (now > shown || cron.in_both_hours());
    for (std::int64_t left_out = shown + 60; left_out < now && !cron.in_every_hour();
         left_out += 60) {
      const std::time_t moment = left_out;
      std::tm missing{};
      ::gmtime_r(&moment, &missing);
      ticks = ticks || cron.shows(missing);
    }
    if (ticks) found.push_back(time);
    shown = std::max(shown, now);
  }
  return found;
}

TEST(Cron, agrees_with_a_search_of_each_minute) {
  const std::array<std::pair<const char*, const char*>, 8> around{{
      {"Europe/Berlin", "2026-03-27T00:00:00Z"},
      {"Europe/Berlin", "2026-10-23T00:00:00Z"},
      {"America/New_York", "2026-03-06T00:00:00Z"},
      {"America/New_York", "2026-10-30T00:00:00Z"},
      {"Australia/Lord_Howe", "2026-10-02T00:00:00Z"},
      {"Australia/Lord_Howe", "2026-04-03T00:00:00Z"},
      {"America/Santiago", "2026-09-04T00:00:00Z"},
      {"UTC", "2028-02-27T00:00:00Z"},
  }};
  std::size_t compared = 0;
  for (const auto& [name, begin] : around) {
    std::mt19937_64 random(2026);
    const auto zone = TimeZone::find(name).value();
    const ZoneClock clock(name);
    const std::int64_t from = at(begin).time_since_epoch().count();
    const std::int64_t to = from + std::int64_t{5} * 24 * 3600;
    for (int i = 0; i < 150; ++i) {
      AnyCron any(random);
      if (random() % 4 != 0) {  // most of them have ticks here
        for (const std::size_t days : {2U, 3U, 4U}) any.fields[days] = AnyCron(random).fields[days];
        if (random() % 2 == 0)
          any.fields[3] = {.text = "*", .values = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}};
      }
      const auto cron = Cron::parse(any.text());
      if (!cron) {
        ASSERT_NE(cron.error().message.find("none of its months"), std::string::npos) << any.text();
        continue;
      }
      const auto expected = searched(any, clock, from, to);
      std::vector<std::int64_t> found;
      for (auto next = cron->next(sys_seconds(seconds(from - 1)), zone);
           next && next->time_since_epoch().count() <= to; next = cron->next(*next, zone))
        found.push_back(next->time_since_epoch().count());
      ASSERT_EQ(found, expected) << any.text() << " in " << name;
      compared += expected.size();
    }
  }
  EXPECT_GT(compared, 10'000U);
}

}  // namespace
}  // namespace outbox::schedule
