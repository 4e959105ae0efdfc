#include "schedule/time_zone.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>

#include "base/error.hpp"
#include "base/text.hpp"
#include "base/text_file.hpp"

namespace outbox::schedule {
namespace {

using std::chrono::days;
using std::chrono::seconds;
using std::chrono::sys_days;
using std::chrono::sys_seconds;
using std::chrono::year;

constexpr const char* kFolder = "/usr/share/zoneinfo/";
constexpr std::size_t kLargestFile = std::size_t{1} << 20U;
constexpr std::size_t kLongestZoneName = 100;

tl::unexpected<Error> damaged(const std::string& what) {
  return fail(Errc::corrupt, "the zone file " + what, "install the package tzdata again");
}

/// Whether the name has only letters, digits and "+-_" between slashes: no way out of the folder.
bool is_zone_name(std::string_view name) {
  const auto allowed = [](char c) {
    return is_alnum(c) || c == '+' || c == '-' || c == '_' || c == '/';
  };
  return !name.empty() && name.size() <= kLongestZoneName && name.front() != '/' &&
         std::all_of(name.begin(), name.end(), allowed);
}

std::int64_t big_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (const char byte : bytes) value = value << 8U | static_cast<unsigned char>(byte);
  if (bytes.size() == 4) return static_cast<std::int32_t>(static_cast<std::uint32_t>(value));
  return static_cast<std::int64_t>(value);
}

/// The numbers of items that follow a header (RFC 8536, 3.1).
struct Counts {
  std::size_t ut{0};
  std::size_t standard{0};
  std::size_t leap{0};
  std::size_t times{0};
  std::size_t types{0};
  std::size_t chars{0};

  /// The bytes of the block, with times of `time` bytes.
  [[nodiscard]] std::size_t bytes(std::size_t time) const {
    return times * (time + 1) + types * 6 + chars + leap * (time + 4) + standard + ut;
  }
};

constexpr std::size_t kHeader = 44;

std::optional<Counts> parse_counts(std::string_view header) {
  if (header.size() < kHeader || !header.starts_with("TZif") || header[4] < '2')
    return std::nullopt;
  std::array<std::size_t, 6> all{};
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::int64_t count = big_endian(header.substr(20 + 4 * i, 4));
    if (count < 0 || count > static_cast<std::int64_t>(kLargestFile)) return std::nullopt;
    all[i] = static_cast<std::size_t>(count);
  }
  return Counts{all[0], all[1], all[2], all[3], all[4], all[5]};
}

sys_seconds clamped(std::int64_t time) {
  return std::clamp(sys_seconds(seconds(time)), TimeZone::kFirst, TimeZone::kLast);
}

/// When a change happens in a year, by the clock that shows `offset`.
sys_seconds change_in(year in, const ZoneRule::Day& day, seconds offset) {
  using Kind = ZoneRule::Day::Kind;
  const sys_days new_year = in / 1 / 1;
  sys_days date = new_year + days(day.day);
  if (day.kind == Kind::of_year_without_leap_day) {
    date = new_year + days(day.day - 1);
    if (in.is_leap() && day.day > 59) date += days(1);
  } else if (day.kind == Kind::of_week) {
    const auto month = in / std::chrono::month(day.month);
    const std::chrono::weekday weekday(day.day);
    date = day.week == 5 ? sys_days(month / weekday[std::chrono::last])
                         : sys_days(month / weekday[day.week]);
  }
  return date + day.time - offset;
}

}  // namespace

Result<TimeZone> TimeZone::find(std::string_view name) {
  if (name == "UTC") return TimeZone();
  const auto unknown = [&] {
    return fail(
        Errc::not_found, in_quotes(name) + " is no time zone that this machine knows",
        "a name of the tz database such as Europe/Berlin; the package tzdata has them (old names "
        "such as US/Eastern: tzdata-legacy, since Debian 13)");
  };
  if (!is_zone_name(name)) return unknown();
  const auto file = read_text_file(kFolder + std::string(name), kLargestFile);
  if (!file) return unknown();
  auto zone = read(file->text);
  if (!zone) zone.error().message += ": " + std::string(name);
  return zone;
}

/// RFC 8536, 3: a block with times of 4 bytes for old readers, one with 8 bytes, and the rule.
Result<TimeZone> TimeZone::read(std::string_view file) {
  const auto old = parse_counts(file);
  if (!old) return damaged("is none of version 2 or newer");
  const std::size_t skipped = kHeader + old->bytes(4);
  if (file.size() < skipped) return damaged("is cut");
  file.remove_prefix(skipped);
  const auto counts = parse_counts(file);
  if (!counts) return damaged("has no second header");
  file.remove_prefix(kHeader);
  if (file.size() < counts->bytes(8) || counts->types == 0) return damaged("is cut");
  if (counts->leap > 0) return damaged("counts leap seconds, which other clocks here do not");

  const std::string_view times = file.substr(0, counts->times * 8);
  const std::string_view indexes = file.substr(times.size(), counts->times);
  const std::string_view types = file.substr(times.size() + indexes.size(), counts->types * 6);
  const auto find_offset = [&](std::size_t type) {
    return seconds(big_endian(types.substr(type * 6, 4)));
  };
  TimeZone zone;
  zone.first_ = find_offset(0);
  for (std::size_t i = 0; i < counts->times; ++i) {
    const auto type = static_cast<unsigned char>(indexes[i]);
    if (type >= counts->types) return damaged("has a wrong type");
    const Change change{.at = clamped(big_endian(times.substr(i * 8, 8))),
                        .offset = find_offset(type)};
    if (!zone.changes_.empty() && zone.changes_.back().at >= change.at)
      return damaged("is not in the order of time");
    zone.changes_.push_back(change);
  }
  file.remove_prefix(counts->bytes(8));
  const std::size_t end = file.find('\n', 1);
  if (file.empty() || file.front() != '\n' || end == std::string_view::npos)
    return damaged("has no rule for times ahead");
  const std::string_view rule = file.substr(1, end - 1);
  if (rule.empty()) return zone;
  OUTBOX_TRY(zone.rule_, read_zone_rule(rule));
  return zone;
}

TimeZone::Period TimeZone::at(sys_seconds time) const {
  const auto next = std::upper_bound(changes_.begin(), changes_.end(), time,
                                     [](sys_seconds t, const Change& c) { return t < c.at; });
  if (next == changes_.end() && rule_) return by_rule(time);
  return {.begin = next == changes_.begin() ? kFirst : std::prev(next)->at,
          .end = next == changes_.end() ? kLast : next->at,
          .offset = next == changes_.begin() ? first_ : std::prev(next)->offset};
}

TimeZone::Period TimeZone::by_rule(sys_seconds time) const {
  Period period{.begin = changes_.empty() ? kFirst : changes_.back().at,
                .end = kLast,
                .offset = rule_->offset};
  if (!rule_->summer) return period;
  const auto& summer = *rule_->summer;
  const std::chrono::year_month_day date(std::chrono::floor<days>(time));
  std::vector<Change> changes;
  for (int more = -2; more <= 2; ++more) {
    const year in = date.year() + std::chrono::years(more);
    changes.push_back({.at = change_in(in, summer.begin, rule_->offset), .offset = summer.offset});
    changes.push_back({.at = change_in(in, summer.end, summer.offset), .offset = rule_->offset});
  }
  // The sort is stable: where summer never ends, its end is the moment of its next beginning.
  std::stable_sort(changes.begin(), changes.end(),
                   [](const Change& a, const Change& b) { return a.at < b.at; });
  for (const Change& change : changes) {
    if (change.at > time) {
      period.end = change.at;
      break;
    }
    period.begin = std::max(period.begin, change.at);
    period.offset = change.offset;
  }
  return period;
}

// ---- the rule

namespace {

/// Consumes the text from the left. After the first mismatch complete() is false.
class RuleText {
 public:
  explicit RuleText(std::string_view text) : rest_(text) {}

  [[nodiscard]] bool complete() const { return good_ && rest_.empty(); }
  [[nodiscard]] bool at_end() const { return rest_.empty(); }
  bool accept(char c) {
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void need(char c) { good_ = accept(c) && good_; }
  unsigned number(unsigned least, unsigned most) {
    unsigned value = 0;
    std::size_t digits = 0;
    for (; digits < rest_.size() && digits < 4 && is_digit(rest_[digits]); ++digits)
      value = value * 10 + static_cast<unsigned>(rest_[digits] - '0');
    rest_.remove_prefix(digits);
    good_ = good_ && digits > 0 && value >= least && value <= most;
    return value;
  }
  /// Consumes "CET" or "<+03>".
  void name() {
    const bool quoted = accept('<');
    std::size_t length = 0;
    while (length < rest_.size() && rest_[length] != '>' &&
           (quoted || is_upper(rest_[length]) || is_lower(rest_[length])))
      ++length;
    rest_.remove_prefix(length);
    good_ = good_ && length >= 3;
    if (quoted) need('>');
  }
  /// Consumes "-1", "3:30" or "26".
  seconds time() {
    const bool negative = accept('-');
    if (!negative) accept('+');
    seconds value = std::chrono::hours(number(0, 167));
    if (accept(':')) value += std::chrono::minutes(number(0, 59));
    if (accept(':')) value += seconds(number(0, 59));
    return negative ? -value : value;
  }
  ZoneRule::Day day() {
    using Kind = ZoneRule::Day::Kind;
    ZoneRule::Day day;
    if (accept('M')) {
      day.kind = Kind::of_week;
      day.month = number(1, 12);
      need('.');
      day.week = number(1, 5);
      need('.');
      day.day = number(0, 6);
    } else if (accept('J')) {
      day.kind = Kind::of_year_without_leap_day;
      day.day = number(1, 365);
    } else {
      day.day = number(0, 365);
    }
    day.time = accept('/') ? time() : seconds(std::chrono::hours(2));
    return day;
  }

 private:
  std::string_view rest_;
  bool good_{true};
};

}  // namespace

Result<ZoneRule> read_zone_rule(std::string_view text) {
  RuleText scan(text);
  ZoneRule rule;
  scan.name();
  rule.offset = -scan.time();
  if (!scan.at_end()) {
    ZoneRule::Summer summer;
    scan.name();
    summer.offset = rule.offset + std::chrono::hours(1);
    if (!scan.accept(',')) {
      summer.offset = -scan.time();
      scan.need(',');
    }
    summer.begin = scan.day();
    scan.need(',');
    summer.end = scan.day();
    rule.summer = summer;
  }
  if (!scan.complete()) return damaged("has a rule that cannot be read: " + in_quotes(text));
  return rule;
}

}  // namespace outbox::schedule
