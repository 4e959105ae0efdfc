#include "schedule/cron.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/field_error.hpp"
#include "base/text.hpp"

namespace outbox::schedule {
namespace {

using std::chrono::days;
using std::chrono::hours;
using std::chrono::local_days;
using std::chrono::local_seconds;
using std::chrono::minutes;
using std::chrono::seconds;
using std::chrono::sys_seconds;
using std::chrono::year_month_day;

/// The search ends here. A first of a month on a given weekday comes within 12 years, a leap day
/// within 8, and later only in a zone that leaves it out.
constexpr days kFarthest{50 * 366};

constexpr std::array<std::string_view, 12> kMonths{"jan", "feb", "mar", "apr", "may", "jun",
                                                   "jul", "aug", "sep", "oct", "nov", "dec"};
constexpr std::array<std::string_view, 7> kWeekdays{"sun", "mon", "tue", "wed",
                                                    "thu", "fri", "sat"};
constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kShort{{
    {"@hourly", "0 * * * *"},
    {"@daily", "0 0 * * *"},
    {"@midnight", "0 0 * * *"},
    {"@weekly", "0 0 * * 0"},
    {"@monthly", "0 0 1 * *"},
    {"@yearly", "0 0 1 1 *"},
    {"@annually", "0 0 1 1 *"},
}};
constexpr const char* kHint =
    "minute hour day-of-month month day-of-week, such as \"30 8 * * mon-fri\", or @hourly, @daily, "
    "@weekly, @monthly, @yearly";

struct Field {
  std::string_view name;
  unsigned least;
  unsigned most;
  std::span<const std::string_view> words;  ///< The words of the values, beginning with `least`.
};

const std::array<Field, 5> kFields{{
    {"minute", 0, 59, {}},
    {"hour", 0, 23, {}},
    {"day of month", 1, 31, {}},
    {"month", 1, 12, kMonths},
    {"day of week", 0, 7, kWeekdays},
}};

tl::unexpected<Error> wrong(const Field& field, std::string_view what, const char* hint = "") {
  return bad_field(field.name, what, hint);
}

Result<unsigned> parse_number(const Field& field, std::string_view text) {
  for (std::size_t i = 0; i < field.words.size(); ++i) {
    if (equal_ignoring_case(text, field.words[i])) return field.least + static_cast<unsigned>(i);
  }
  unsigned value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= field.least &&
      value <= field.most)
    return value;
  return wrong(
      field,
      in_quotes(text) + " is no number from " + std::to_string(field.least) + " to " +
          std::to_string(field.most) +
          (field.words.empty() ? "" : ", and no name such as " + std::string(field.words.front())));
}

/// The bits of "*", "5" or "1-5", each range with or without a step.
Result<std::uint64_t> bits_of_item(const Field& field, std::string_view item) {
  if (item.empty()) return wrong(field, "has an empty item in its list");
  const std::size_t slash = item.find('/');
  const std::string_view range = item.substr(0, slash);
  const std::size_t dash = range.find('-');
  unsigned first = field.least;
  unsigned last = field.most;
  if (range != "*") {
    OUTBOX_TRY(first, parse_number(field, range.substr(0, dash)));
    last = first;
    if (dash != std::string_view::npos) {
      OUTBOX_TRY(last, parse_number(field, range.substr(dash + 1)));
    } else if (slash != std::string_view::npos) {
      return wrong(field, in_quotes(item) + " has a step, but no range", "such as */5 or 10-50/5");
    }
  }
  // Allows ranges such as from Friday to Sunday.
  if (field.most == 7 && last == 0 && first > 0) last = 7;
  if (first > last) return wrong(field, in_quotes(range) + " ends before it begins");
  unsigned step = 1;
  if (slash != std::string_view::npos) {
    const std::string_view text = item.substr(slash + 1);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), step);
    if (error != std::errc() || end != text.data() + text.size() || step == 0 || step > field.most)
      return wrong(field, in_quotes(item) + " has a step that is no number from 1 to " +
                              std::to_string(field.most));
  }
  std::uint64_t bits = 0;
  for (unsigned value = first; value <= last; value += step) bits |= std::uint64_t{1} << value;
  return bits;
}

Result<std::uint64_t> parse_bits(const Field& field, std::string_view text) {
  std::uint64_t bits = 0;
  for (std::size_t from = 0; from <= text.size();) {
    const std::size_t comma = std::min(text.find(',', from), text.size());
    OUTBOX_TRY(const std::uint64_t item, bits_of_item(field, text.substr(from, comma - from)));
    bits |= item;
    from = comma + 1;
  }
  return bits;
}

std::vector<std::string_view> split_words(std::string_view text) {
  std::vector<std::string_view> words;
  for (text = trimmed(text); !text.empty(); text = trimmed(text)) {
    const std::size_t end = std::min(text.find_first_of(" \t"), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return words;
}

bool has(std::uint64_t bits, unsigned value) { return (bits >> value & 1U) != 0; }

/// The first value from `least` on; 64 if there is none.
unsigned find_next(std::uint64_t bits, unsigned least) {
  return least > 63 ? 64U : static_cast<unsigned>(std::countr_zero(bits >> least << least));
}

}  // namespace

Result<Cron> Cron::parse(std::string_view text) {
  text = trimmed(text);
  if (text.starts_with('@')) {
    const auto found = std::find_if(kShort.begin(), kShort.end(), [&](const auto& one) {
      return equal_ignoring_case(one.first, text);
    });
    if (found == kShort.end())
      return fail(Errc::invalid_argument, in_quotes(text) + " is unknown", kHint);
    text = found->second;
  }
  const auto words = split_words(text);
  if (words.size() != kFields.size())
    return fail(Errc::invalid_argument,
                text.empty() ? "is empty"
                             : in_quotes(text) + " has " + std::to_string(words.size()) +
                                   (words.size() == 1 ? " field" : " fields") + " instead of 5",
                kHint);
  std::array<std::uint64_t, 5> bits{};
  for (std::size_t i = 0; i < bits.size(); ++i) {
    OUTBOX_TRY(bits[i], parse_bits(kFields[i], words[i]));
  }
  Cron cron;
  cron.minutes_ = bits[0];
  cron.hours_ = bits[1];
  cron.days_ = bits[2];
  cron.months_ = bits[3];
  cron.weekdays_ = (bits[4] | bits[4] >> 7U) & 0x7fU;
  cron.any_day_ = words[2].starts_with('*');
  cron.any_weekday_ = words[4].starts_with('*');
  cron.in_every_hour_ = cron.hours_ == 0xffffff;
  cron.in_both_hours_ =
      cron.in_every_hour_ || words[1].find_first_of("*/") != std::string_view::npos;
  OUTBOX_TRY(cron.check());
  return cron;
}

/// Fails if no such day exists: 30 February never comes.
Status Cron::check() const {
  if (any_day_ || !any_weekday_) return {};
  for (unsigned month = 1; month <= 12; ++month) {
    const std::chrono::year leap(2000);
    const auto last =
        static_cast<unsigned>((leap / std::chrono::month(month) / std::chrono::last).day());
    if (has(months_, month) && find_next(days_, 0) <= last) return {};
  }
  return wrong(kFields[2], "none of its months has a day " + std::to_string(find_next(days_, 0)));
}

bool Cron::is_day(local_days day) const {
  const year_month_day date(day);
  if (!has(months_, static_cast<unsigned>(date.month()))) return false;
  const bool of_month = has(days_, static_cast<unsigned>(date.day()));
  const bool of_week = has(weekdays_, std::chrono::weekday(day).c_encoding());
  return any_day_ || any_weekday_ ? of_month && of_week : of_month || of_week;
}

std::optional<local_seconds> Cron::first_in(local_seconds begin, local_seconds end) const {
  local_seconds from = std::chrono::ceil<minutes>(begin);
  for (local_days day = std::chrono::floor<days>(from); day < end; day += days(1), from = day) {
    if (!is_day(day)) continue;
    const auto minute_of_day = std::chrono::duration_cast<minutes>(from - day).count();
    auto minute = static_cast<unsigned>(minute_of_day % 60);
    const auto first_hour = static_cast<unsigned>(minute_of_day / 60);
    for (unsigned hour = find_next(hours_, first_hour); hour < 24;
         hour = find_next(hours_, hour + 1)) {
      if (hour > first_hour) minute = 0;
      const unsigned found = find_next(minutes_, minute);
      if (found > 59) continue;
      const local_seconds time = day + hours(hour) + minutes(found);
      return time < end ? std::optional(time) : std::nullopt;
    }
  }
  return std::nullopt;
}

std::optional<sys_seconds> Cron::first_in(const TimeZone::Period& period, seconds offset_before,
                                          sys_seconds after) const {
  const auto local = [](sys_seconds time, seconds offset) {
    return local_seconds((time + offset).time_since_epoch());
  };
  const local_seconds begins = local(period.begin, period.offset);
  // The time by the clock before it.
  const local_seconds ended = local(period.begin, offset_before);
  if (period.begin > after && begins > ended && !in_every_hour_ && first_in(ended, begins))
    return period.begin;
  local_seconds from = std::max(local(after + seconds(1), period.offset), begins);
  if (!in_both_hours_) from = std::max(from, ended);
  const local_seconds until = local(std::min(period.end, after + kFarthest), period.offset);
  const auto found = first_in(from, until);
  if (!found) return std::nullopt;
  return sys_seconds(found->time_since_epoch() - period.offset);
}

std::optional<sys_seconds> Cron::next(sys_seconds after, const TimeZone& zone) const {
  TimeZone::Period period = zone.at(after);
  seconds offset_before =
      period.begin == TimeZone::kFirst ? period.offset : zone.at(period.begin - seconds(1)).offset;
  while (true) {
    if (const auto found = first_in(period, offset_before, after)) return found;
    if (period.end >= after + kFarthest) return std::nullopt;
    offset_before = period.offset;
    period = zone.at(period.end);
  }
}

}  // namespace outbox::schedule
