#include "schedule/schedule.hpp"

#include <algorithm>
#include <outbox/task.hpp>
#include <utility>

#include "base/error.hpp"
#include "base/field_error.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "event/text_rules.hpp"
#include "event/time_text.hpp"

namespace outbox {
namespace schedule {
namespace {

using std::chrono::microseconds;
using std::chrono::seconds;
using std::chrono::sys_seconds;

constexpr std::chrono::hours kLongestInterval{24 * 366};
/// The limit of ticks with missed = "all".
constexpr std::size_t kMostMissed = 1000;
/// The latest that a tick may be with missed = "skip".
constexpr microseconds kLate = std::chrono::minutes(1);

std::int64_t to_us(sys_seconds time) { return microseconds(time.time_since_epoch()).count(); }

Result<microseconds> parse_interval(const Schedule& schedule) {
  if (schedule.every < seconds(1) || schedule.every > kLongestInterval)
    return bad_field("every",
                     in_quotes(format_duration(schedule.every)) + " is not from 1s to 366d");
  return schedule.every;
}

Task make_task(const Schedule& schedule, std::int64_t tick_us) {
  Task task{.queue = schedule.queue,
            .type = schedule.type,
            .payload = schedule.payload,
            .key = schedule.key,
            .headers = {schedule.headers.begin(), schedule.headers.end()},
            .content_type = schedule.content_type};
  task.headers.emplace_back(kScheduleHeader, schedule.name);
  task.headers.emplace_back(kScheduledAtHeader, event::time_text(tick_us));
  return task;
}

}  // namespace

Result<Ticks> Ticks::of(const Schedule& schedule) {
  if (schedule.cron.empty() == (schedule.every.count() == 0))
    return bad_field(
        "cron",
        schedule.cron.empty() ? "neither cron nor every is set" : "both cron and every are set",
        "cron = \"30 8 * * *\" or every = \"15min\"");
  Ticks ticks;
  if (schedule.cron.empty()) {
    OUTBOX_TRY(ticks.every_, parse_interval(schedule));
    if (schedule.time_zone != "UTC")
      return bad_field("time_zone", "has no meaning with every", "leave it out, or use cron");
    return ticks;
  }
  auto cron = Cron::parse(schedule.cron);
  if (!cron) return bad_field("cron", cron.error().message, cron.error().hint);
  ticks.cron_ = *cron;
  auto zone = TimeZone::find(schedule.time_zone);
  if (!zone) return bad_field("time_zone", zone.error().message, zone.error().hint);
  ticks.zone_ = std::move(*zone);
  return ticks;
}

std::optional<std::int64_t> Ticks::next_us(std::int64_t after_us) const {
  if (!cron_) {
    const std::int64_t every = every_.count();
    const std::int64_t before = after_us / every - (after_us % every < 0 ? 1 : 0);
    return (before + 1) * every;
  }
  const auto after =
      std::chrono::floor<seconds>(std::chrono::sys_time<microseconds>(microseconds(after_us)));
  const auto next = cron_->next(after, zone_);
  return next ? std::optional(to_us(*next)) : std::nullopt;
}

Ticks::Newest Ticks::newest(std::int64_t from_us, std::int64_t until_us, std::size_t most) const {
  // Ticks are at least this far apart: the first stretch has few. Earlier ones are read if needed.
  const microseconds least = cron_ ? microseconds(std::chrono::minutes(1)) : every_;
  std::int64_t stretch = least.count() * static_cast<std::int64_t>(most + 1);
  while (true) {
    const std::int64_t begin = until_us - from_us > stretch ? until_us - stretch : from_us;
    Newest found = list_all(begin, until_us);
    const bool enough = found.ticks.size() > most;
    if (!enough && begin > from_us) {
      stretch *= 2;
      continue;
    }
    if (enough) {
      found.ticks.erase(found.ticks.begin(), found.ticks.end() - static_cast<std::ptrdiff_t>(most));
      found.more = true;
    }
    return found;
  }
}

Ticks::Newest Ticks::list_all(std::int64_t from_us, std::int64_t until_us) const {
  Newest all;
  for (auto tick = next_us(from_us - 1); tick && *tick <= until_us; tick = next_us(*tick))
    all.ticks.push_back(*tick);
  return all;
}

Ticks::Newest due_ticks(const Schedule& schedule, const Ticks& ticks, std::int64_t from_us,
                        std::int64_t now_us) {
  if (schedule.missed == MissedTicks::one) return ticks.newest(from_us, now_us, 1);
  if (schedule.missed == MissedTicks::all) return ticks.newest(from_us, now_us, kMostMissed);
  const std::int64_t in_time = now_us - kLate.count();
  Ticks::Newest found = ticks.newest(std::max(from_us, in_time), now_us, kMostMissed);
  found.more = from_us < in_time;
  return found;
}

Event make_event(const Schedule& schedule, std::int64_t tick_us) {
  return outbox::to_event(make_task(schedule, tick_us));
}

}  // namespace schedule

Status validate(const Schedule& schedule, const EventLimits& limits) {
  OUTBOX_TRY(event::check_plain_name("name", schedule.name));
  OUTBOX_TRY(validate(schedule::make_task(schedule, 0), limits));
  const auto ticks = schedule::Ticks::of(schedule);
  return ticks ? Status() : Status(tl::unexpected(ticks.error()));
}

}  // namespace outbox
