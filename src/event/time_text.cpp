#include "event/time_text.hpp"

#include <algorithm>
#include <array>

namespace outbox::event {
namespace {

constexpr std::int64_t kUsPerDay = 86'400'000'000;
constexpr std::int64_t kFirstDay = -719'528;  // 0000-01-01
constexpr std::int64_t kFirstDayOfYear1 = -719'162;
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

std::int64_t days_since_1970(const Date& date) noexcept {
  const unsigned year = date.month <= 2 ? date.year - 1 : date.year;
  const unsigned era = year / 400;
  const unsigned year_of_era = year % 400;
  const unsigned day_of_year =
      (153 * (date.month > 2 ? date.month - 3 : date.month + 9) + 2) / 5 + date.day - 1;
  const unsigned day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
  return static_cast<std::int64_t>(era) * 146'097 + day_of_era - 719'468;
}

/// Takes the text from the left, piece by piece; the first that does not fit makes it fail for good.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  unsigned number(std::size_t digits) {
    unsigned value = 0;
    for (std::size_t i = 0; i < digits; ++i) {
      const bool digit = i < rest_.size() && rest_[i] >= '0' && rest_[i] <= '9';
      good_ = good_ && digit;
      if (digit) value = value * 10 + static_cast<unsigned>(rest_[i] - '0');
    }
    rest_.remove_prefix(std::min(digits, rest_.size()));
    return value;
  }
  /// One of `allowed`.
  char one_of(std::string_view allowed) {
    const char c = rest_.empty() ? '\0' : rest_.front();
    good_ = good_ && allowed.find(c) != std::string_view::npos && c != '\0';
    rest_.remove_prefix(std::min<std::size_t>(1, rest_.size()));
    return c;
  }
  /// ".5" is 500,000.
  unsigned micros() {
    if (rest_.empty() || rest_.front() != '.') return 0;
    rest_.remove_prefix(1);
    const std::size_t digits = std::min(rest_.find_first_not_of("0123456789"), rest_.size());
    good_ = good_ && digits > 0;
    unsigned value = 0;
    for (std::size_t i = 0; i < 6; ++i)
      value = value * 10 + (i < digits ? static_cast<unsigned>(rest_[i] - '0') : 0);
    rest_.remove_prefix(digits);
    return value;
  }
  [[nodiscard]] bool complete() const { return good_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool good_{true};
};

bool is_date(const Date& date) noexcept {
  if (date.month < 1 || date.month > 12 || date.day < 1) return false;
  const Date back = date_of(days_since_1970(date));
  return back.month == date.month && back.day == date.day;
}

char* put2(char* to, unsigned value) noexcept {
  to[0] = static_cast<char>('0' + value / 10);
  to[1] = static_cast<char>('0' + value % 10);
  return to + 2;
}

}  // namespace

bool is_time(std::int64_t us_since_1970) noexcept {
  return us_since_1970 >= kFirstDayOfYear1 * kUsPerDay &&
         us_since_1970 < (kLastDay + 1) * kUsPerDay;
}

std::optional<std::int64_t> read_time(std::string_view text) {
  Scanner scan(text);
  Date date{};
  date.year = scan.number(4);
  scan.one_of("-");
  date.month = scan.number(2);
  scan.one_of("-");
  date.day = scan.number(2);
  scan.one_of("Tt ");
  const unsigned hour = scan.number(2);
  scan.one_of(":");
  const unsigned minute = scan.number(2);
  scan.one_of(":");
  const unsigned second = scan.number(2);
  const unsigned micro = scan.micros();
  std::int64_t offset = 0;  // minutes
  if (const char sign = scan.one_of("Zz+-"); sign == '+' || sign == '-') {
    const unsigned hours = scan.number(2);
    scan.one_of(":");
    const unsigned minutes = scan.number(2);
    if (hours > 23 || minutes > 59) return std::nullopt;
    offset = (sign == '-' ? -1 : 1) * static_cast<std::int64_t>(hours * 60 + minutes);
  }
  if (!scan.complete() || date.year < 1 || !is_date(date)) return std::nullopt;
  if (hour > 23 || minute > 59 || second > 59) return std::nullopt;
  const std::int64_t us = days_since_1970(date) * kUsPerDay +
                          (static_cast<std::int64_t>(hour) * 60 + minute - offset) * 60'000'000 +
                          static_cast<std::int64_t>(second) * 1'000'000 + micro;
  if (!is_time(us)) return std::nullopt;
  return us;
}

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
