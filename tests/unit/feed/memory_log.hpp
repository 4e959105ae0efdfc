// A log in memory, with a reader and a wake-up over it.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "base/mutex.hpp"
#include "store/delivery.hpp"

namespace outbox::feed {

/// A log that commits events in the order of seq; a snapshot is their number. Counts requests.
class MemoryLog {
 public:
  void commit(std::int64_t events) {
    const MutexLock lock(mutex_);
    events_ += events;
  }
  void break_down() {
    const MutexLock lock(mutex_);
    broken_ = true;
  }
  Result<store::Page> read(const store::PageRequest& request) {
    const MutexLock lock(mutex_);
    if (broken_) return fail(Errc::unavailable, "the log is gone");
    flushed_ = false;
    if (request.ahead) ++ahead_;
    lanes_.insert(request.lanes);
    const store::Cursor& at = request.cursor;
    auto pair = std::make_shared<store::Pair>();
    pair->s1 = at.s1;
    pair->s2 = at.drained() ? std::to_string(events_) : at.s2;
    if (request.until) pair->s2 = request.until->s2;
    if (at.drained() && !request.until) asked_ = events_;
    store::Page page;
    page.from = at.drained() ? 0 : at.position;
    const std::int64_t last = std::stoll(pair->s2);
    const std::int64_t first = std::max<std::int64_t>(std::stoll(pair->s1), page.from) + 1;
    page.position = std::min(last, first - 1 + static_cast<std::int64_t>(request.rows));
    for (std::int64_t seq = first; seq <= page.position; ++seq) {
      EventView event;
      event.seq = seq;
      event.id.bytes[15] = static_cast<std::uint8_t>(seq);
      event.aggregate_type = "order";
      event.aggregate_id = "1";
      event.event_type = "Happened";
      page.events.push_back(event);
    }
    page.drained = page.position == last;
    page.caught_up = page.drained && last == events_;
    page.pair = std::move(pair);
    return page;
  }
  void flush() {
    const MutexLock lock(mutex_);
    flushed_ = true;
  }
  /// Whether the last page that was read would survive a crash.
  bool is_flushed() {
    const MutexLock lock(mutex_);
    return flushed_;
  }
  /// The standby has the events up to this one.
  void replicate(std::int64_t up_to) {
    const MutexLock lock(mutex_);
    replicated_ = up_to;
  }
  [[nodiscard]] std::int64_t replicated() {
    const MutexLock lock(mutex_);
    return replicated_;
  }
  Result<store::Replication> replication() {
    const MutexLock lock(mutex_);
    return store::Replication{.flushed = replicated_ >= asked_ ? 1U : 0U, .connected = 1};
  }
  int reads_ahead() {
    const MutexLock lock(mutex_);
    return ahead_;
  }
  std::set<store::LaneMask> lanes() {
    const MutexLock lock(mutex_);
    return lanes_;
  }

 private:
  Mutex mutex_;
  std::int64_t events_ OUTBOX_GUARDED_BY(mutex_){0};
  std::int64_t asked_ OUTBOX_GUARDED_BY(mutex_){0};  ///< The newest snapshot.
  std::int64_t replicated_ OUTBOX_GUARDED_BY(mutex_){0};
  bool flushed_ OUTBOX_GUARDED_BY(mutex_){false};
  bool broken_ OUTBOX_GUARDED_BY(mutex_){false};
  int ahead_ OUTBOX_GUARDED_BY(mutex_){0};
  std::set<store::LaneMask> lanes_ OUTBOX_GUARDED_BY(mutex_);
};

class MemoryReader final : public store::LogReader {
 public:
  explicit MemoryReader(MemoryLog& log) : log_(log) {}
  [[nodiscard]] Status begin(std::span<const store::Cursor> /*cursors*/) override { return {}; }
  [[nodiscard]] Status start(const store::PageRequest& request) override {
    page_ = log_.read(request);
    return {};
  }
  [[nodiscard]] Result<store::Page> finish() override { return std::move(page_); }
  [[nodiscard]] Status wait_durable() override {
    log_.flush();
    return {};
  }
  [[nodiscard]] Result<store::Replication> replication(const store::Standbys& /*wanted*/) override {
    return log_.replication();
  }
  [[nodiscard]] std::uint64_t statements() const override { return 0; }

 private:
  MemoryLog& log_;
  Result<store::Page> page_;
};

/// A wake-up that cannot be armed, so that the pump polls.
class NoWakeup final : public store::Wakeup {
 public:
  [[nodiscard]] Result<bool> arm() override { return false; }
  [[nodiscard]] Status disarm() override { return {}; }
  [[nodiscard]] Result<Wake> wait(Duration /*longest*/) override { return Wake::timeout; }
  [[nodiscard]] Result<Told> told(std::string_view /*snapshot*/) override { return Told::nothing; }
  [[nodiscard]] store::FeedState feed() const override { return {}; }
  [[nodiscard]] bool stays_armed() const override { return false; }
  void interrupt() noexcept override {}
  [[nodiscard]] std::uint64_t statements() const override { return 0; }
};

/// A stream that tells of commits of one event each. It cannot be armed.
class StreamWakeup final : public store::Wakeup {
 public:
  /// Says that an event was committed, which a snapshot may not have yet.
  void tell() {
    {
      const MutexLock lock(mutex_);
      ++commits_;
    }
    changed_.notify_all();
  }
  /// Begins or ends the stream.
  void run(bool runs) {
    {
      const MutexLock lock(mutex_);
      runs_ = runs;
    }
    changed_.notify_all();
  }
  bool is_asleep() const {
    const MutexLock lock(mutex_);
    return asleep_;
  }

  [[nodiscard]] Result<Told> told(std::string_view snapshot) override {
    const MutexLock lock(mutex_);
    const bool more = std::exchange(known_, commits_) != commits_;
    if (!runs_) return Told::nothing;
    if (std::stoll(std::string(snapshot)) >= commits_) return Told::all;
    return more ? Told::more : Told::late;
  }
  [[nodiscard]] store::FeedState feed() const override { return {.streams = true, .trouble = {}}; }
  [[nodiscard]] Result<bool> arm() override { return false; }
  [[nodiscard]] Status disarm() override { return {}; }
  [[nodiscard]] Result<Wake> wait(Duration longest) override {
    const MutexLock lock(mutex_);
    asleep_ = true;
    changed_.notify_all();
    const bool woken = changed_.wait_for(mutex_, longest, [this]() OUTBOX_REQUIRES(mutex_) {
      return known_ != commits_ || interrupted_ || !runs_;
    });
    asleep_ = false;
    if (std::exchange(interrupted_, false) || !runs_) return Wake::interrupted;
    return woken ? Wake::notified : Wake::timeout;
  }
  [[nodiscard]] bool stays_armed() const override { return false; }
  void interrupt() noexcept override {
    {
      const MutexLock lock(mutex_);
      interrupted_ = true;
    }
    changed_.notify_all();
  }
  [[nodiscard]] std::uint64_t statements() const override { return 0; }

 private:
  mutable Mutex mutex_;
  std::condition_variable_any changed_;
  bool runs_ OUTBOX_GUARDED_BY(mutex_){true};
  std::int64_t commits_ OUTBOX_GUARDED_BY(mutex_){0};
  std::int64_t known_ OUTBOX_GUARDED_BY(mutex_){0};  ///< Commits that told() has counted.
  bool interrupted_ OUTBOX_GUARDED_BY(mutex_){false};
  bool asleep_ OUTBOX_GUARDED_BY(mutex_){false};
};

}  // namespace outbox::feed
