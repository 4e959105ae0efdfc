#include "feed/pump.hpp"

#include <algorithm>
#include <future>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/outage.hpp"
#include "base/thread.hpp"

namespace outbox::feed {
namespace {

/// While no consumer has room, the pump checks again after this time even without a call of room().
constexpr std::chrono::milliseconds kNoRoom{100};
/// The distance in pages up to which waiting for each other pays.
constexpr std::int64_t kClose = 10;
/// The longest time that a group waits for a full one.
constexpr std::chrono::milliseconds kMostPatience{20};

/// How long a new page waits for standbys, most of which need a millisecond or two.
constexpr std::chrono::milliseconds kShortWait{3};

using Clock = std::chrono::steady_clock;

}  // namespace

Pump::Pump(std::unique_ptr<store::LogReader> reader, std::unique_ptr<store::Wakeup> wakeup,
           PumpOptions options, std::function<void(const Error&)> failed)
    : reader_(std::move(reader)),
      wakeup_(std::move(wakeup)),
      options_(std::move(options)),
      failed_(std::move(failed)),
      pace_(options_.pace) {
  if (!options_.standbys) return;
  gate_.emplace(*options_.standbys, options_.standby_limit);
  awaits_standbys_ = true;
  begun_ = false;
}

Status Pump::start() {
  OUTBOX_TRY(reader_->begin({}));
  {
    const MutexLock lock(mutex_);
    running_ = true;
  }
  thread_ = start_thread("ob-read", [this](const std::stop_token& stop) { run(stop); });
  return {};
}

void Pump::stop() { thread_ = {}; }

// ---- any thread

void Pump::add(PageConsumer& consumer, store::LaneMask lanes, store::Cursor cursor) {
  post([this, &consumer, lanes, cursor = std::move(cursor)] {
    groups_.push_back({.lanes = lanes, .cursor = cursor, .members = {&consumer}});
    awaited_.reset();
  });
}

void Pump::remove(const PageConsumer& consumer) {
  const auto removed = std::make_shared<std::promise<void>>();
  post([this, &consumer, removed] {
    for (Group& group : groups_) std::erase(group.members, &consumer);
    std::erase_if(groups_, [](const Group& group) { return group.members.empty(); });
    removed->set_value();
  });
  removed->get_future().wait();
}

void Pump::room() {
  if (wants_room_.exchange(false, std::memory_order_acq_rel)) ring();
}

void Pump::post(std::function<void()> command) {
  {
    const MutexLock lock(mutex_);
    if (running_) commands_.push_back(std::exchange(command, nullptr));
  }
  if (command) return command();
  ring();
}

void Pump::ring() {
  {
    const MutexLock lock(mutex_);
    rung_ = true;
  }
  bell_.notify_one();
  wakeup_->interrupt();
}

// ---- the pump's thread

void Pump::run(const std::stop_token& stop) {
  const std::stop_callback ring_at_stop(stop, [this] { ring(); });
  const Status status = read_until(stop);
  while (run_commands(true)) {
  }
  if (!status) failed_(status.error());
}

Status Pump::read_until(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    (void)run_commands(false);
    auto turn = this->turn();
    statements_.store(reader_->statements() + wakeup_->statements(), std::memory_order_relaxed);
    if (!turn) return pass(turn);
    OUTBOX_TRY(after_turn(*turn));
  }
  return {};
}

bool Pump::run_commands(bool last) {
  std::vector<std::function<void()>> commands;
  {
    const MutexLock lock(mutex_);
    commands.swap(commands_);
    if (last && commands.empty()) running_ = false;
  }
  for (const auto& command : commands) command();
  return !commands.empty();
}

Result<Pump::Turn> Pump::turn() {
  Turn turn{.now = Clock::now()};
  newest_.reset();
  OUTBOX_TRY(look_at_standbys(turn));
  // Set before the check, so that room() rings for room that is made during it.
  wants_room_.store(true, std::memory_order_release);
  split_off_full_members();
  bool all_had_room = true;
  for (Group& group : groups_) {
    if (!group.has_room(1)) {
      all_had_room = false;
    } else if (awaits_standbys_ && (!begun_ || group.cursor.drained())) {
      continue;
    } else if (!waits_for_others(group, turn)) {
      OUTBOX_TRY(fetch(group, turn));
    }
  }
  if (all_had_room) wants_room_.store(false, std::memory_order_release);
  merge_groups();
  return turn;
}

bool Pump::Group::has_room(std::size_t pages) const {
  return std::all_of(members.begin(), members.end(),
                     [pages](const PageConsumer* member) { return member->has_room(pages); });
}

/// Splits groups so that a full consumer does not delay those that share its cursor.
void Pump::split_off_full_members() {
  const std::size_t count = groups_.size();
  for (std::size_t i = 0; i < count; ++i) {
    auto& members = groups_[i].members;
    const auto full =
        std::stable_partition(members.begin(), members.end(),
                              [](const PageConsumer* member) { return member->has_room(1); });
    if (full == members.begin() || full == members.end()) continue;
    Group apart = groups_[i];
    apart.members.assign(full, members.end());
    members.erase(full, members.end());
    groups_.push_back(std::move(apart));
  }
}

bool Pump::Group::is_ahead_of(const Group& other) const {
  return lanes == other.lanes && !cursor.drained() && cursor.s1 == other.cursor.s1 &&
         cursor.s2 == other.cursor.s2 && cursor.position >= other.cursor.position;
}

/// Whether the group waits, because in a backlog two reads of the same rows cost more than a short
/// wait. It waits for a full group while its patience lasts: one that stays slow is left behind.
bool Pump::waits_for_others(Group& group, Turn& turn) const {
  const auto waited_since = std::exchange(group.waits_since, std::nullopt);
  if (!group.in_backlog) return false;
  const auto close = kClose * static_cast<std::int64_t>(options_.page_rows);
  bool some_are_full = false;
  for (const Group& other : groups_) {
    if (&other == &group || !group.is_ahead_of(other)) continue;
    const std::int64_t distance = group.cursor.position - other.cursor.position;
    if (distance > close) continue;
    const bool full = !other.has_room(1);
    if (!full && distance > 0) return true;
    some_are_full = some_are_full || full;
  }
  if (!some_are_full) return false;
  if (waited_since) group.patience -= turn.now - *waited_since;
  if (group.patience <= Clock::duration(0)) return false;
  group.waits_since = turn.now;
  turn.patience = std::min(turn.patience, group.patience);
  return true;
}

void Pump::merge_groups() {
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    for (std::size_t j = groups_.size() - 1; j > i; --j) {
      if (groups_[i].lanes != groups_[j].lanes || !(groups_[i].cursor == groups_[j].cursor))
        continue;
      auto& into = groups_[i].members;
      into.insert(into.end(), groups_[j].members.begin(), groups_[j].members.end());
      // Consumers with room have waited, full ones have not, so the lesser patience counts.
      groups_[i].patience = std::min(groups_[i].patience, groups_[j].patience);
      groups_.erase(groups_.begin() + static_cast<std::ptrdiff_t>(j));
    }
  }
}

Status Pump::fetch(Group& group, Turn& turn) {
  const bool begins_pair = group.cursor.drained();
  const store::PageRequest request{
      .lanes = group.lanes,
      .cursor = group.cursor,
      .rows = options_.page_rows,
      .bytes = options_.page_bytes,
      .ahead = !begins_pair && group.has_room(2) && is_next_again(group),
      .until = begins_pair ? pair_to_begin(group) : nullptr};
  const auto began = Clock::now();
  OUTBOX_TRY(reader_->start(request));
  auto page = reader_->finish();
  if (!page) return pass(page);
  fetches_.fetch_add(1, std::memory_order_relaxed);
  // P3: a snapshot becomes a cursor in memory only behind its barrier, even if nothing was read.
  OUTBOX_TRY(reader_->wait_durable());
  const bool is_new = begins_pair && !request.until;
  if (is_new && gate_ && !page->events.empty()) {
    OUTBOX_TRY(const bool have, have_standbys(kShortWait));
    if (!have) {
      // This page is read again once they have it, as a page of a pair whose end is known.
      awaits_standbys_ = true;
      awaited_ = page->pair;
      turn.patience = std::min(turn.patience, gate_->pause());
      return {};
    }
  }
  // An empty page says nothing of the lanes of others, which may have events in the pair.
  if (begins_pair && !newest_ && !(is_new && gate_ && page->events.empty())) newest_ = page->pair;
  end_where_another_stands(group, *page);
  turn.fetched = true;
  turn.events += page->events.size();
  group.in_backlog = !(page->drained || page->caught_up);
  turn.more = turn.more || group.in_backlog;
  group.cursor = page->end();
  group.pair = page->pair;
  group.patience = std::clamp<std::chrono::nanoseconds>(group.patience + (Clock::now() - began),
                                                        std::chrono::nanoseconds(0), kMostPatience);
  if (group.members.size() > 1) {
    page->kinds = event::Kinds(page->events);
    page->tally = store::make_tally(page->events);
  }
  const auto shared = std::make_shared<const store::Page>(std::move(*page));
  for (PageConsumer* member : group.members) member->take_page(shared);
  return {};
}

// ---- standbys

/// Ends the wait for standbys if they have what was read last.
Status Pump::look_at_standbys(Turn& turn) {
  if (!awaits_standbys_) return {};
  OUTBOX_TRY(const bool have, have_standbys(std::chrono::milliseconds(0)));
  if (!have) {
    turn.patience = std::min(turn.patience, gate_->pause());
    return {};
  }
  awaits_standbys_ = false;
  begun_ = true;
  newest_ = std::exchange(awaited_, nullptr);
  return {};
}

/// Whether the events of the newest pair may go out.
Result<bool> Pump::have_standbys(std::chrono::nanoseconds longest) {
  const auto until = Clock::now() + longest;
  while (true) {
    OUTBOX_TRY(const store::Replication found, reader_->replication(gate_->standbys()));
    const auto answer = gate_->take(found, Clock::now());
    tell(answer.news);
    if (answer.pass || Clock::now() >= until) return answer.pass;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

void Pump::tell(StandbyGate::News news) {
  const std::string words = gate_->words();
  switch (news) {
    case StandbyGate::News::none: break;
    case StandbyGate::News::waits:
      log::warn("events wait for standbys", {{"reason", words}});
      break;
    case StandbyGate::News::without:
      log::error("events go out without the standbys, and a failover may take them back",
                 {{"waited_s", in_seconds(options_.standby_limit)}, {"reason", words}});
      break;
    case StandbyGate::News::over: log::info("the standbys have caught up", {}); break;
  }
  if (news == StandbyGate::News::none) return;
  const MutexLock lock(mutex_);
  waits_ = news == StandbyGate::News::waits ? "events wait for standbys: " + words : "";
}

std::string Pump::waits() const {
  const MutexLock lock(mutex_);
  return waits_;
}

/// Whether the next page is probably for the same group, because the others are full for some time.
bool Pump::is_next_again(const Group& group) const {
  return std::none_of(groups_.begin(), groups_.end(),
                      [&](const Group& other) { return &other != &group && other.has_room(1); });
}

/// The pair of another group that began where this group stands, or the newest pair of this turn,
/// so that the groups meet.
std::shared_ptr<const store::Pair> Pump::pair_to_begin(const Group& group) const {
  for (const Group& other : groups_) {
    const bool began_here =
        other.lanes == group.lanes && !other.cursor.drained() && other.cursor.s1 == group.cursor.s1;
    if (began_here && other.pair) return other.pair;
  }
  return newest_;
}

void Pump::end_where_another_stands(const Group& group, store::Page& page) const {
  for (const Group& other : groups_) {
    if (other.lanes != group.lanes || other.cursor.s1 != page.pair->s1 ||
        other.cursor.s2 != page.pair->s2)
      continue;
    const auto end = std::upper_bound(
        page.events.begin(), page.events.end(), other.cursor.position,
        [](std::int64_t position, const EventView& event) { return position < event.seq; });
    if (end == page.events.begin() || end == page.events.end()) continue;
    page.events.erase(end, page.events.end());
    page.position = page.events.back().seq;
    page.drained = false;
    page.caught_up = false;
  }
}

// ---- between turns

Status Pump::after_turn(const Turn& turn) {
  if (!turn.fetched || (awaits_standbys_ && !turn.more)) {
    wait_for_bell(std::min<std::chrono::nanoseconds>(turn.patience, kNoRoom));
    return {};
  }
  auto told = store::Wakeup::Told::nothing;
  if (!turn.more) {
    OUTBOX_TRY(told, wakeup_->told(newest_ ? newest_->s2 : std::string()));
  }
  const bool worked = turn.events > 0 || turn.more;
  if (pace_.is_armed() && (worked || told != store::Wakeup::Told::nothing)) {
    OUTBOX_TRY(wakeup_->disarm());
  }
  if (told != store::Wakeup::Told::nothing) return idle(pace_.told(told, turn.events));
  if (!worked) return idle(pace_.found_nothing());
  const Pace::Step step = pace_.worked();
  return turn.more ? Status{} : idle(step);
}

Status Pump::idle(const Pace::Step& step) {
  switch (step.what) {
    case Pace::Step::What::pause:
      wait_for_bell(step.pause);
      count_wakeup(false);
      return {};
    case Pace::Step::What::arm: {
      auto armed = wakeup_->arm();
      if (!armed) return pass(armed);
      return idle(pace_.armed(*armed));
    }
    case Pace::Step::What::sleep: {
      auto woken = wakeup_->wait(step.pause);
      if (!woken) return pass(woken);
      if (*woken != store::Wakeup::Wake::interrupted)
        count_wakeup(*woken == store::Wakeup::Wake::notified);
      // Polls once more, in case a commit was missed, and goes back to sleep.
      if (*woken == store::Wakeup::Wake::timeout && wakeup_->stays_armed()) return {};
      pace_.woken(*woken == store::Wakeup::Wake::notified);
      return wakeup_->disarm();
    }
  }
  return {};
}

void Pump::count_wakeup(bool by_commit) const {
  if (options_.wakeups == nullptr) return;
  (by_commit ? options_.wakeups->by_commit : options_.wakeups->by_time)
      .fetch_add(1, std::memory_order_relaxed);
}

void Pump::wait_for_bell(std::chrono::nanoseconds longest) {
  if (longest <= std::chrono::nanoseconds(0)) return;
  const MutexLock lock(mutex_);
  bell_.wait_for(mutex_, longest, [this]() OUTBOX_REQUIRES(mutex_) { return rung_; });
  rung_ = false;
}

}  // namespace outbox::feed
