#include "event/time_text.hpp"

#include <algorithm>
#include <chrono>

#include "base/text.hpp"

namespace outbox::event {
namespace {

using std::chrono::days;
using std::chrono::microseconds;
using std::chrono::sys_days;
using std::chrono::year;
using std::chrono::year_month_day;
using Time = std::chrono::sys_time<microseconds>;

constexpr Time kYear0 = sys_days(year(0) / 1 / 1);
constexpr Time kYear1 = sys_days(year(1) / 1 / 1);
constexpr Time kYear10000 = sys_days(year(10000) / 1 / 1);

/// Consumes the text from the left. After the first mismatch complete() is false.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  unsigned number(std::size_t digits) {
    unsigned value = 0;
    for (std::size_t i = 0; i < digits; ++i) {
      const bool digit = i < rest_.size() && is_digit(rest_[i]);
      good_ = good_ && digit;
      if (digit) value = value * 10 + static_cast<unsigned>(rest_[i] - '0');
    }
    rest_.remove_prefix(std::min(digits, rest_.size()));
    return value;
  }
  /// Consumes one of `allowed`.
  char one_of(std::string_view allowed) {
    const char c = rest_.empty() ? '\0' : rest_.front();
    good_ = good_ && allowed.find(c) != std::string_view::npos && c != '\0';
    rest_.remove_prefix(std::min<std::size_t>(1, rest_.size()));
    return c;
  }
  /// Consumes a fraction: ".5" is 500,000.
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

char* put2(char* to, unsigned value) noexcept {
  to[0] = static_cast<char>('0' + value / 10);
  to[1] = static_cast<char>('0' + value % 10);
  return to + 2;
}

}  // namespace

bool is_time(std::int64_t us_since_1970) noexcept {
  const Time time{microseconds(us_since_1970)};
  return time >= kYear1 && time < kYear10000;
}

std::optional<std::int64_t> read_time(std::string_view text) {
  Scanner scan(text);
  const year y(static_cast<int>(scan.number(4)));
  scan.one_of("-");
  const std::chrono::month m(scan.number(2));
  scan.one_of("-");
  const year_month_day date(y, m, std::chrono::day(scan.number(2)));
  scan.one_of("Tt ");
  const unsigned hour = scan.number(2);
  scan.one_of(":");
  const unsigned minute = scan.number(2);
  scan.one_of(":");
  const unsigned second = scan.number(2);
  const unsigned micro = scan.micros();
  std::chrono::minutes offset(0);
  if (const char sign = scan.one_of("Zz+-"); sign == '+' || sign == '-') {
    const unsigned hours = scan.number(2);
    scan.one_of(":");
    const unsigned minutes = scan.number(2);
    if (hours > 23 || minutes > 59) return std::nullopt;
    offset = std::chrono::minutes((sign == '-' ? -1 : 1) * static_cast<int>(hours * 60 + minutes));
  }
  if (!scan.complete() || !date.ok()) return std::nullopt;
  if (hour > 23 || minute > 59 || second > 59) return std::nullopt;
  const Time time = sys_days(date) + std::chrono::hours(hour) + std::chrono::minutes(minute) -
                    offset + std::chrono::seconds(second) + microseconds(micro);
  const std::int64_t us = time.time_since_epoch().count();
  if (!is_time(us)) return std::nullopt;
  return us;
}

void write_time(std::int64_t us_since_1970, char* to) noexcept {
  const Time time =
      std::clamp(Time{microseconds(us_since_1970)}, kYear0, kYear10000 - microseconds(1));
  const auto midnight = std::chrono::floor<days>(time);
  const year_month_day date(midnight);
  const auto in_day = static_cast<std::uint64_t>((time - midnight).count());
  const auto second = static_cast<unsigned>(in_day / 1'000'000);
  const auto micro = static_cast<unsigned>(in_day % 1'000'000);
  const auto y = static_cast<unsigned>(static_cast<int>(date.year()));
  to = put2(put2(to, y / 100), y % 100);
  *to++ = '-';
  to = put2(to, static_cast<unsigned>(date.month()));
  *to++ = '-';
  to = put2(to, static_cast<unsigned>(date.day()));
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
