#include "schedule/time_zone.hpp"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <random>
#include <string>

#include "zone_clock.hpp"

namespace outbox::schedule {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using std::chrono::sys_days;
using std::chrono::sys_seconds;
using std::chrono::year;

std::string number(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = bytes - 1; i >= 0; --i) text += static_cast<char>(value >> (8 * i));
  return text;
}

/// A zone file without changes: one offset, and a rule.
std::string zone_file(const std::string& rule) {
  const std::string header = "TZif2" + std::string(15, '\0') + number(0, 4) + number(0, 4) +
                             number(0, 4) + number(0, 4) + number(1, 4) + number(4, 4);
  const std::string block = number(3600, 4) + std::string(2, '\0') + std::string("CET\0", 4);
  return header + block + header + block + "\n" + rule + "\n";
}

seconds offset_at(const TimeZone& zone, sys_seconds time) { return zone.at(time).offset; }

constexpr std::array kNames{
    "UTC",          "Europe/Berlin",   "Europe/Dublin",     "Europe/London",
    "America/Nuuk", "America/Toronto", "America/New_York",  "America/Santiago",
    "Asia/Tehran",  "Asia/Kathmandu",  "America/Sao_Paulo", "Australia/Lord_Howe",
    "Africa/Cairo", "Asia/Jerusalem",  "Africa/Casablanca", "Pacific/Chatham",
    "Pacific/Apia", "Etc/GMT+5"};

/// Compares offsets at random times, and at both ends of each period, with `offset_there(time)`.
template <class OffsetThere>
void expect_same_offsets(const char* name, int first, int last, const OffsetThere& offset_there) {
  std::mt19937_64 random(4711);
  const auto from = sys_seconds(sys_days(year(first) / 1 / 1));
  const auto length = (sys_seconds(sys_days(year(last) / 1 / 1)) - from).count();
  const auto zone = TimeZone::find(name);
  ASSERT_TRUE(zone) << zone.error().text();
  for (int i = 0; i < 2000; ++i) {
    const auto time =
        from + seconds(static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(length)));
    const auto period = zone->at(time);
    ASSERT_EQ(period.offset, offset_there(time))
        << name << " at " << time.time_since_epoch().count();
    // Its ends are where the offset may change, and nowhere between.
    for (const sys_seconds near : {period.begin, period.end - seconds(1)}) {
      if (near < from || near == TimeZone::kLast - seconds(1)) continue;
      ASSERT_EQ(offset_there(near), period.offset)
          << name << " at " << near.time_since_epoch().count();
    }
  }
}

TEST(TimeZone, agrees_with_the_c_library) {
  for (const char* name : kNames) {
    const ZoneClock clock(name);
    expect_same_offsets(name, 1900, 2100, [&](sys_seconds time) {
      return seconds(clock.at(time.time_since_epoch().count()).tm_gmtoff);
    });
  }
}

TEST(TimeZone, agrees_with_the_standard_library) {
#if __cpp_lib_chrono >= 201907L
  for (const char* name : kNames) {
    const auto* zone = std::chrono::locate_zone(name);
    // The zone files may know more about the time before 1970 than the text that this library reads.
    expect_same_offsets(name, 1971, 2100,
                        [&](sys_seconds time) { return zone->get_info(time).offset; });
  }
#else
  GTEST_SKIP() << "the standard library of this compiler has no time zones (C++20's tzdb)";
#endif
}

TEST(TimeZone, follows_the_rule_where_the_file_has_no_change) {
  const auto zone = TimeZone::read(zone_file("CET-1CEST,M3.5.0,M10.5.0/3"));
  ASSERT_TRUE(zone) << zone.error().text();
  for (const int in : {1996, 2026, 2038, 2099, 2400}) {
    const auto last_sunday = [&](unsigned month) {
      return sys_days(year(in) / std::chrono::month(month) /
                      std::chrono::Sunday[std::chrono::last]);
    };
    EXPECT_EQ(offset_at(*zone, last_sunday(3) + seconds(3599)), hours(1));
    EXPECT_EQ(offset_at(*zone, last_sunday(3) + hours(1)), hours(2));
    EXPECT_EQ(offset_at(*zone, last_sunday(10) + seconds(3599)), hours(2));
    EXPECT_EQ(offset_at(*zone, last_sunday(10) + hours(1)), hours(1));
  }
}

TEST(TimeZone, rules_have_many_forms) {
  const auto offset = [](const std::string& rule, int in, unsigned month, unsigned day, int hour) {
    const auto zone = TimeZone::read(zone_file(rule));
    EXPECT_TRUE(zone) << rule;
    return zone ? offset_at(*zone, sys_days(year(in) / month / day) + hours(hour)).count() : -1;
  };
  EXPECT_EQ(offset("<-03>3", 2026, 7, 1, 0), -3 * 3600);
  EXPECT_EQ(offset("<+0545>-5:45", 2026, 7, 1, 0), 5 * 3600 + 45 * 60);
  EXPECT_EQ(offset("<+1030>-10:30<+11>-11,M10.1.0,M4.1.0", 2026, 1, 1, 0), 11 * 3600);
  EXPECT_EQ(offset("<+1030>-10:30<+11>-11,M10.1.0,M4.1.0", 2026, 7, 1, 0), 10 * 3600 + 1800);
  EXPECT_EQ(offset("IST-2IDT,M3.4.4/26,M10.5.0", 2026, 3, 26, 23), 2 * 3600);
  EXPECT_EQ(offset("IST-2IDT,M3.4.4/26,M10.5.0", 2026, 3, 27, 1), 3 * 3600);
  EXPECT_EQ(offset("<-02>2<-01>,M3.5.0/-1,M10.5.0/0", 2026, 3, 29, 1), -3600);
  EXPECT_EQ(offset("AAA3BBB,J60,J300", 2024, 3, 1, 4), -3 * 3600);
  EXPECT_EQ(offset("AAA3BBB,J60,J300", 2024, 3, 1, 5), -2 * 3600);
  EXPECT_EQ(offset("AAA3BBB,60,300", 2024, 3, 1, 5), -2 * 3600);
  EXPECT_EQ(offset("AAA3BBB,60,300", 2023, 3, 1, 5), -3 * 3600) << "a day later without leap day";
  // Summer all year.
  for (const unsigned month : {1U, 7U, 12U})
    EXPECT_EQ(offset("XXX3EDT4,0/0,J365/23", 2026, month, 1, 4), -4 * 3600);
  for (const char* rule :
       {"CET", "C-1", "CET-1CEST", "CET-1CEST,M3.5.0", "CET-1CEST,M13.5.0,M10.5.0",
        "CET-1CEST,M3.5.0,M10.5.0x", "<CET-1", "CET-200", "CET-1CEST,J0,J1"})
    EXPECT_FALSE(read_zone_rule(rule)) << rule;
}

TEST(TimeZone, an_unknown_one_is_refused_with_a_hint) {
  for (const char* name : {"", "Europe/Berln", "Europe", "../../../etc/passwd", "/etc/localtime",
                           "Europe/Berlin/", "berlin"}) {
    const auto zone = TimeZone::find(name);
    ASSERT_FALSE(zone) << name;
    EXPECT_NE(zone.error().text().find("Europe/Berlin"), std::string::npos) << zone.error().text();
  }
}

TEST(TimeZone, a_damaged_file_is_refused) {
  const std::string whole = zone_file("CET-1");
  ASSERT_TRUE(TimeZone::read(whole));
  for (std::size_t length = 0; length < whole.size(); ++length)
    EXPECT_FALSE(TimeZone::read(whole.substr(0, length))) << length;
  std::mt19937_64 random(1);
  for (int i = 0; i < 20'000; ++i) {
    std::string file = whole;
    for (int n = 0; n < 3; ++n) file[random() % file.size()] = static_cast<char>(random());
    const auto zone = TimeZone::read(file);  // whatever it says: no harm
    if (zone) (void)zone->at(sys_seconds(seconds(1'800'000'000)));
  }
}

}  // namespace
}  // namespace outbox::schedule
