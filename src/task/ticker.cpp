#include "task/ticker.hpp"

#include <algorithm>
#include <utility>

#include "base/backoff.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "base/thread.hpp"
#include "schedule/schedule.hpp"

namespace outbox::task {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

/// The longest wait, since a schedule may be added or resumed elsewhere.
constexpr seconds kLookForSchedules{10};
/// The wait while the queues have no schedule: then no connection is kept either.
constexpr seconds kLookWithout{60};
/// The wait while a schedule is due that another worker is at, or that cannot be ticked here.
constexpr seconds kLookAgain{1};
/// The shortest wait, since the clock of the store may be slower than ours.
constexpr std::chrono::milliseconds kShortest{5};
constexpr BackoffPolicy kTickerReconnect{.first = std::chrono::milliseconds(50),
                                         .longest = seconds(1)};

}  // namespace

Ticker::Ticker(std::vector<Schedule> schedules, const std::set<std::string>& queues,
               store::StoreOptions store)
    : schedules_(std::move(schedules)), where_(std::move(store)) {
  std::set<std::string> all = queues;
  for (const Schedule& schedule : schedules_) all.insert(schedule.queue);
  queues_.assign(all.begin(), all.end());
}

void Ticker::start() {
  if (thread_.joinable()) return;
  applied_ = false;
  thread_ = start_thread("ob-ticks", [this](const std::stop_token& stop) { run(stop); });
}

void Ticker::stop() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  thread_.join();
}

// ---- the thread

void Ticker::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    auto pause = work(stop);
    note(pause ? Status() : Status(tl::unexpected(pause.error())));
    sleep_for(pause ? *pause : backoff(kTickerReconnect, failures_, 0), stop);
  }
  rows_.reset();
}

Result<nanoseconds> Ticker::work(const std::stop_token& stop) {
  OUTBOX_TRY(connect());
  OUTBOX_TRY(apply());
  while (!stop.stop_requested()) {
    OUTBOX_TRY(const store::DueSchedules found, rows_->due(queues_));
    if (!found.any) {
      rows_.reset();
      return kLookWithout;
    }
    if (!found.next_at_us) return kLookForSchedules;
    if (found.due.empty())
      return std::clamp<nanoseconds>(microseconds(*found.next_at_us - found.now_us), kShortest,
                                     kLookForSchedules);
    bool moved = false;
    for (const store::ScheduleRow& row : found.due) {
      OUTBOX_TRY(const bool ticked, tick(row, found.now_us));
      moved = moved || ticked;
      if (stop.stop_requested()) break;
    }
    if (!moved) return kLookAgain;
  }
  return kShortest;
}

Status Ticker::connect() {
  if (rows_) return {};
  OUTBOX_TRY(const auto store, store::open_store(where_));
  OUTBOX_TRY(rows_, store->schedules());
  return {};
}

/// Applies the schedules once per start: what a person, or a worker with a newer configuration,
/// changes later stays.
Status Ticker::apply() {
  if (applied_) return {};
  OUTBOX_TRY(const std::int64_t now_us, rows_->now_us());
  for (const Schedule& schedule : schedules_) {
    OUTBOX_TRY(const auto ticks, schedule::Ticks::of(schedule));
    const auto next_us = ticks.next_us(now_us);
    if (!next_us)
      return fail(Errc::invalid_argument, "schedule " + schedule.name + " never has a tick");
    OUTBOX_TRY(const bool changed, rows_->apply(schedule, *next_us));
    if (changed) log::info("schedule applied", {{"schedule", schedule.name}});
  }
  applied_ = true;
  return {};
}

Result<bool> Ticker::tick(const store::ScheduleRow& row, std::int64_t now_us) {
  const Schedule& schedule = row.schedule;
  // A schedule that was written by hand may be anything.
  const Status valid = validate(schedule);
  const auto ticks = valid ? schedule::Ticks::of(schedule) : tl::unexpected(valid.error());
  if (!ticks) return complain(row, ticks.error()), false;
  const auto next_us = ticks->next_us(now_us);
  if (!next_us)
    return complain(row, fail(Errc::invalid_argument, "it never has a tick").value()), false;
  const auto newest = schedule::due_ticks(schedule, *ticks, row.next_at_us, now_us);
  const std::size_t count = newest.ticks.size();
  store::ScheduleRow current = row;
  for (std::size_t i = 0; i < std::max<std::size_t>(count, 1); ++i) {
    store::Tick one{.next_at_us = i + 1 < count ? newest.ticks[i + 1] : *next_us};
    if (i < count) {
      one.at_us = newest.ticks[i];
      one.task = schedule::make_event(schedule, one.at_us);
    }
    const auto done = rows_->tick(current, one);
    if (!done && done.error().remedy != Remedy::fix) return fail(done.error());
    if (!done) return complain(row, done.error()), false;
    if (!*done) return i > 0;
    // This is how the store has the row now.
    ++current.revision;
    current.next_at_us = one.next_at_us;
  }
  (void)faults_.erase(schedule.name);
  if (newest.more && schedule.missed != MissedTicks::one)
    log::warn("ticks of a schedule were skipped", {{"schedule", schedule.name}, {"tasks", count}});
  return true;
}

void Ticker::complain(const store::ScheduleRow& row, const Error& error) {
  const std::string reason = error.text();
  if (const auto repeats =
          faults_[row.schedule.name].failed(reason, std::chrono::steady_clock::now()))
    log::warn("a schedule cannot tick here, retries",
              {{"schedule", row.schedule.name}, {"repeats", *repeats}, {"reason", reason}});
}

void Ticker::note(const Status& status) {
  const TimePoint now = std::chrono::steady_clock::now();
  failures_ = status ? 0 : failures_ + 1;
  if (!status) rows_.reset();
  outage_.note(status, now);
}

}  // namespace outbox::task
