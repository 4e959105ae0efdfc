#include "event/time_text.hpp"

#include <algorithm>
#include <array>

namespace outbox::event {
namespace {

constexpr std::int64_t kUsPerDay = 86'400'000'000;
constexpr std::int64_t kFirstDay = -719'528;  // 0000-01-01
constexpr std::int64_t kLastDay = 2'932'896;  // 9999-12-31

struct Date {
  unsigned year;
  unsigned month;
  unsigned day;
};

/// Days of the proleptic Gregorian calendar; a year begins in March so that the leap day is its last (Howard Hinnant,
/// chrono-Compatible Low-Level Date Algorithms).
Date date_of(std::int64_t days_since_1970) noexcept {
  const std::int64_t days = days_since_1970 + 719'468;
  const std::int64_t era = (days >= 0 ? days : days - 146'096) / 146'097;
  const auto day_of_era = static_cast<unsigned>(days - era * 146'097);
  const unsigned year_of_era =
      (day_of_era - day_of_era / 1460 + day_of_era / 36'524 - day_of_era / 146'096) / 365;
  const unsigned day_of_year =
      day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const unsigned shifted_month = (5 * day_of_year + 2) / 153;
  const unsigned month = shifted_month < 10 ? shifted_month + 3 : shifted_month - 9;
  const std::int64_t year =
      static_cast<std::int64_t>(year_of_era) + era * 400 + (month <= 2 ? 1 : 0);
  return {.year = static_cast<unsigned>(year),
          .month = month,
          .day = day_of_year - (153 * shifted_month + 2) / 5 + 1};
}

char* put2(char* to, unsigned value) noexcept {
  to[0] = static_cast<char>('0' + value / 10);
  to[1] = static_cast<char>('0' + value % 10);
  return to + 2;
}

}  // namespace

void write_time(std::int64_t us_since_1970, char* to) noexcept {
  const std::int64_t us =
      std::clamp(us_since_1970, kFirstDay * kUsPerDay, (kLastDay + 1) * kUsPerDay - 1);
  const std::int64_t day = (us >= 0 ? us : us - (kUsPerDay - 1)) / kUsPerDay;
  const auto in_day = static_cast<std::uint64_t>(us - day * kUsPerDay);
  const auto second = static_cast<unsigned>(in_day / 1'000'000);
  const auto micro = static_cast<unsigned>(in_day % 1'000'000);
  const Date date = date_of(day);
  to = put2(put2(to, date.year / 100), date.year % 100);
  *to++ = '-';
  to = put2(to, date.month);
  *to++ = '-';
  to = put2(to, date.day);
  *to++ = 'T';
  to = put2(to, second / 3600);
  *to++ = ':';
  to = put2(to, second / 60 % 60);
  *to++ = ':';
  to = put2(to, second % 60);
  *to++ = '.';
  to = put2(put2(put2(to, micro / 10'000), micro / 100 % 100), micro % 100);
  *to = 'Z';
}

}  // namespace outbox::event
