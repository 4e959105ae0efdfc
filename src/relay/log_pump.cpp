#include "relay/log_pump.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/thread.hpp"

namespace outbox::relay {
namespace {

/// With no room anywhere the reader looks again after this long even if nobody rang.
constexpr std::chrono::milliseconds kNoRoom{100};
/// A resting subscription is told of the head at most this often.
constexpr std::chrono::seconds kTellEvery{1};

store::Cursor after(const store::Page& page) {
  if (page.drained) return {.s1 = page.pair->s2, .s2 = {}, .position = 0, .bound = 0};
  return {.s1 = page.pair->s1,
          .s2 = page.pair->s2,
          .position = page.position,
          .bound = page.pair->bound};
}

}  // namespace

LogPump::LogPump(std::unique_ptr<store::LogReader> reader, std::unique_ptr<store::Wakeup> wakeup,
                 PumpOptions options, std::function<void(const Error&)> failed)
    : reader_(std::move(reader)),
      wakeup_(std::move(wakeup)),
      options_(options),
      failed_(std::move(failed)),
      pace_(options.pace) {}

LogPump::~LogPump() { stop(); }

Status LogPump::begin(const std::vector<SubscriptionLoop*>& loops) {
  std::vector<store::Cursor> cursors;
  for (SubscriptionLoop* loop : loops) {
    cursors.push_back(loop->start_cursor());
    groups_.push_back(Group{.cursor = loop->start_cursor(), .members = {Member{.loop = loop}}});
  }
  merge_groups();
  return reader_->begin(cursors);
}

void LogPump::start() {
  running_ = true;
  thread_ = start_thread("ob-read", [this](const std::stop_token& stop) { run(stop); });
}

void LogPump::stop() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  ring();
  thread_.join();
}

// ---- from other threads

void LogPump::add(SubscriptionLoop* loop, store::Cursor cursor) {
  {
    const std::scoped_lock lock(mutex_);
    commands_.push_back(Command{.add = loop, .cursor = std::move(cursor)});
  }
  ring();
}

void LogPump::remove(SubscriptionLoop* loop) {
  bool done = false;
  {
    const std::scoped_lock lock(mutex_);
    if (!running_) return;
    commands_.push_back(Command{.remove = loop, .done = &done});
  }
  ring();
  std::unique_lock lock(mutex_);
  obeyed_.wait(lock, [&] { return done || !running_; });
  // The reader ended without obeying: it must not find a pointer to our stack later.
  std::erase_if(commands_, [&](const Command& command) { return command.done == &done; });
}

void LogPump::ring() {
  {
    const std::scoped_lock lock(mutex_);
    rung_ = true;
  }
  bell_.notify_one();
  wakeup_->interrupt();
}

void LogPump::room() {
  if (wants_room_.exchange(false, std::memory_order_acq_rel)) ring();
}

// ---- the reader's thread

void LogPump::run(const std::stop_token& stop) {
  const Status status = work(stop);
  {
    const std::scoped_lock lock(mutex_);
    running_ = false;
  }
  obeyed_.notify_all();
  if (!status) failed_(status.error());
}

Status LogPump::work(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    obey();
    auto turn = this->turn();
    statements_.store(reader_->statements() + wakeup_->statements(), std::memory_order_relaxed);
    if (!turn) return pass(turn);
    if (Status status = after_turn(*turn); !status) return status;
  }
  return {};
}

void LogPump::obey() {
  std::vector<Command> commands;
  {
    const std::scoped_lock lock(mutex_);
    commands.swap(commands_);
  }
  for (const Command& command : commands) {
    if (command.add != nullptr) {
      groups_.push_back(Group{.cursor = command.cursor, .members = {Member{.loop = command.add}}});
    }
    if (command.remove == nullptr) continue;
    for (Group& group : groups_) {
      std::erase_if(group.members,
                    [&](const Member& member) { return member.loop == command.remove; });
    }
    std::erase_if(groups_, [](const Group& group) { return group.members.empty(); });
    const std::scoped_lock lock(mutex_);
    *command.done = true;
    obeyed_.notify_all();
  }
}

Status LogPump::after_turn(const Turn& turn) {
  if (turn.more) {
    if (pace_.is_armed()) {
      if (Status status = wakeup_->disarm(); !status) return status;
    }
    (void)pace_.worked();
    return {};
  }
  if (!turn.fetched) {
    wait_for_bell(kNoRoom);
    return {};
  }
  if (!turn.worked) return idle(pace_.found_nothing());
  if (pace_.is_armed()) {
    if (Status status = wakeup_->disarm(); !status) return status;
  }
  return idle(pace_.worked());
}

Status LogPump::idle(const feed::Pace::Step& step) {
  switch (step.what) {
    case feed::Pace::Step::What::pause: wait_for_bell(step.pause); return {};
    case feed::Pace::Step::What::arm: {
      auto armed = wakeup_->arm();
      if (!armed) return pass(armed);
      return idle(pace_.armed(*armed));
    }
    case feed::Pace::Step::What::sleep: {
      auto woken = wakeup_->wait(step.pause);
      if (!woken) return pass(woken);
      pace_.woken(*woken == store::Wakeup::Wake::notified);
      return wakeup_->disarm();
    }
  }
  return {};
}

void LogPump::wait_for_bell(std::chrono::nanoseconds longest) {
  if (longest <= std::chrono::nanoseconds(0)) return;
  std::unique_lock lock(mutex_);
  bell_.wait_for(lock, longest, [this] { return rung_; });
  rung_ = false;
}

Result<LogPump::Turn> LogPump::turn() {
  Turn turn;
  newest_.reset();
  wants_room_.store(
      true, std::memory_order_release);  // before looking, so that room made meanwhile rings
  split_off_full_members();
  bool all_had_room = true;
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    if (!has_room(groups_[i].members.front())) {
      all_had_room = false;
      continue;
    }
    const auto until = groups_[i].cursor.drained() ? newest_ : nullptr;
    if (Status status = fetch(groups_[i], until, turn); !status) return fail(status.error());
  }
  if (all_had_room) wants_room_.store(false, std::memory_order_release);
  merge_groups();
  return turn;
}

bool LogPump::has_room(const Member& member) const {
  return member.loop->has_room(options_.page_rows, options_.page_bytes);
}

/// After this, the members of a group either all have room or all have none.
void LogPump::split_off_full_members() {
  const std::size_t count = groups_.size();
  for (std::size_t i = 0; i < count; ++i) {
    auto& members = groups_[i].members;
    const auto full = std::stable_partition(
        members.begin(), members.end(), [this](const Member& member) { return has_room(member); });
    if (full == members.begin() || full == members.end()) continue;
    Group apart{.cursor = groups_[i].cursor, .members = {full, members.end()}};
    members.erase(full, members.end());
    groups_.push_back(std::move(apart));
  }
}

void LogPump::merge_groups() {
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    for (std::size_t j = groups_.size() - 1; j > i; --j) {
      if (!(groups_[i].cursor == groups_[j].cursor)) continue;
      auto& into = groups_[i].members;
      into.insert(into.end(), groups_[j].members.begin(), groups_[j].members.end());
      groups_.erase(groups_.begin() + static_cast<std::ptrdiff_t>(j));
    }
  }
}

Status LogPump::fetch(Group& group, std::shared_ptr<const store::Pair> until, Turn& turn) {
  const bool drained_before = group.cursor.drained();
  const bool takes_present = drained_before && !until;
  const bool alone = groups_.size() == 1 && group.members.front().loop->has_room(
                                                2 * options_.page_rows, 2 * options_.page_bytes);
  const store::PageRequest request{.cursor = group.cursor,
                                   .rows = options_.page_rows,
                                   .bytes = options_.page_bytes,
                                   .ahead = alone && !drained_before,
                                   .until = std::move(until)};
  if (Status status = reader_->start(request); !status) return status;
  auto page = reader_->finish();
  if (!page) return pass(page);
  fetches_.fetch_add(1, std::memory_order_relaxed);
  // P3, and the rule that a snapshot may be a cursor in memory only behind its barrier, empty pairs included.
  if (Status status = reader_->wait_durable(); !status) return status;
  if (takes_present) newest_ = page->pair;
  turn.fetched = true;
  turn.worked = turn.worked || !page->events.empty();
  turn.more = turn.more || !(page->drained || page->caught_up);
  deliver(group, std::move(*page));
  return {};
}

void LogPump::deliver(Group& group, store::Page page) {
  group.cursor = after(page);
  const bool empty = page.events.empty();
  const auto shared = std::make_shared<const store::Page>(std::move(page));
  const TimePoint now = std::chrono::steady_clock::now();
  for (Member& member : group.members) {
    // The end of a begun pair is always told; of a pair that held nothing only now and then, or to who asks for it.
    const bool ends_pair = shared->drained && shared->from != 0;
    const bool asks = member.loop->asks_for_the_end() && (shared->drained || shared->caught_up);
    if (empty && !ends_pair && !asks &&
        !(shared->drained && must_be_told(member, *shared->pair, now)))
      continue;
    member.told_bound = shared->pair->bound;
    member.told_horizon = shared->pair->horizon;
    member.told_at = now;
    member.loop->offer(shared);
  }
}

bool LogPump::must_be_told(const Member& member, const store::Pair& pair, TimePoint now) const {
  if (now - member.told_at < kTellEvery) return false;
  return pair.bound - member.told_bound >= options_.quiet_seqs ||
         pair.horizon - member.told_horizon >= options_.quiet_horizon;
}

}  // namespace outbox::relay
