#include "relay/delivery_core.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "event/key.hpp"

namespace outbox::relay {

const char* to_string(Mode mode) noexcept {
  switch (mode) {
    case Mode::delivering: return "delivering";
    case Mode::draining: return "draining";
    case Mode::backing_off: return "backing-off";
    case Mode::reopening: return "opening";
    case Mode::rejected: return "stopped";
    case Mode::stopping: return "stopping";
  }
  return "stopping";
}

namespace {

/// Snapshots in settlements may take 64 KiB a second.
constexpr auto kPausePerByte = std::chrono::nanoseconds(std::chrono::seconds(1)) / (64 << 10);
constexpr std::int64_t kSmallSnapshots = 4 << 10;
/// What a crash makes come again must not grow without end.
constexpr std::chrono::nanoseconds kLongestSettlePause = std::chrono::seconds(2);

store::Cursor end_of(const store::Page& page) {
  if (page.drained) return {.s1 = page.pair->s2, .s2 = {}, .position = 0, .bound = 0};
  return {.s1 = page.pair->s1,
          .s2 = page.pair->s2,
          .position = page.position,
          .bound = page.pair->bound};
}

EventRef ref_to(const EventView& event) { return {.seq = event.seq, .id = event.id}; }

}  // namespace

DeliveryCore::DeliveryCore(CoreOptions options, store::Cursor start)
    : options_(options),
      base_(options.first_token),
      head_(options.first_token),
      next_(options.first_token),
      done_(std::move(start)),
      read_(done_) {}

// ---- reading

void DeliveryCore::page_read(std::shared_ptr<const store::Page> page,
                             std::span<const std::uint8_t> wanted, TimePoint now) {
  OUTBOX_CHECK(wanted.empty() || wanted.size() == page->events.size());
  // A gap between pages would be a lost event: the reader must continue exactly where the last page ended.
  OUTBOX_CHECK(read_.drained() ? page->from == 0
                               : page->from == read_.position && page->pair->s2 == read_.s2);
  begins_pairs_ = begins_pairs_ || read_.drained();
  read_ = end_of(*page);
  window_events_ += page->events.size();
  window_bytes_ += page->bytes;
  Token token = end();
  for (std::size_t i = 0; i < page->events.size(); ++i, ++token) {
    slots_.push_back(Slot{.event = &page->events[i]});
    Slot& added = slots_.back();
    // What was delivered under former settings is delivered, whatever today's filter says.
    if (recall(*added.event)) {
      added.state = State::acked;
    } else if (!wanted.empty() && wanted[i] == 0) {
      added.state = State::filtered;
    } else if (!options_.gapless) {
      chain(added, token);
    }
  }
  // Everything that an earlier run can have read is below the end of a pair that this one began itself.
  if (page->caught_up || (page->drained && begins_pairs_)) remembered_.clear();
  if (page->events.empty() && !page->drained) return;  // the cursor stays where it is
  pages_.push_back(HeldPage{.page = std::move(page), .end = token});
  advance(now);
}

/// True: an earlier run delivered it.
bool DeliveryCore::recall(const EventView& event) {
  return !remembered_.empty() && remembered_.erase(ref_to(event)) != 0;
}

void DeliveryCore::chain(Slot& added, Token token) {
  added.key = event::key_hash(added.event->aggregate_type, added.event->aggregate_id);
  if (added.key == 0) return queue(token);
  const auto [entry, is_first] = keys_.try_emplace(added.key, KeyChain{.last = token});
  if (is_first) return queue(token);
  slot(entry->second.last).next_of_key = token;
  entry->second.last = token;
  added.state = State::waiting;
}

void DeliveryCore::queue(Token token) {
  if (mode_ != Mode::stopping || token < stop_before_) ready_.push_back(token);
}

void DeliveryCore::release_key(const Slot& done) {
  if (options_.gapless || done.key == 0) return;
  if (done.next_of_key == 0) {
    keys_.erase(done.key);
    return;
  }
  slot(done.next_of_key).state = State::ready;
  queue(done.next_of_key);
}

void DeliveryCore::remember(const EventRef& event) { remembered_.insert(event); }

// ---- sending

bool DeliveryCore::may_send() const {
  return (mode_ == Mode::delivering || filling_gaps()) && in_flight_ < options_.max_in_flight;
}

std::span<const DeliveryCore::Send> DeliveryCore::to_send() {
  batch_.clear();
  if (!may_send()) return {};
  const std::size_t limit = std::min(options_.max_batch, options_.max_in_flight - in_flight_);
  if (options_.gapless) {
    while (next_ < end() && slot(next_).state != State::ready) ++next_;
    const Token last = mode_ == Mode::stopping ? std::min(stop_before_, end()) : end();
    for (Token token = next_; token < last && batch_.size() < limit; ++token) {
      if (slot(token).state == State::ready)
        batch_.push_back({.token = token, .event = slot(token).event});
    }
  } else {
    const std::size_t count = std::min(limit, ready_.size());
    for (std::size_t i = 0; i < count; ++i) {
      batch_.push_back({.token = ready_[i], .event = slot(ready_[i]).event});
    }
  }
  return batch_;
}

void DeliveryCore::handed_over(std::size_t count, TimePoint /*now*/) {
  OUTBOX_CHECK(count <= batch_.size());
  for (std::size_t i = 0; i < count; ++i) {
    Slot& sent = slot(batch_[i].token);
    OUTBOX_CHECK(sent.state == State::ready);
    sent.state = State::in_flight;
  }
  in_flight_ += count;
  if (count == 0) return;
  if (options_.gapless) {
    next_ = batch_[count - 1].token + 1;
  } else {
    ready_.erase(ready_.begin(), ready_.begin() + static_cast<std::ptrdiff_t>(count));
  }
}

void DeliveryCore::outcome(const Outcome& outcome, TimePoint now) {
  // A sink that reports twice, or something never sent, must not harm anything.
  if (outcome.token < base_ || outcome.token >= end()) return;
  Slot& reported = slot(outcome.token);
  if (reported.state != State::in_flight) return;
  --in_flight_;
  if (outcome.kind == Outcome::Kind::acked) {
    reported.state = State::acked;
    if (mode_ == Mode::delivering) failures_ = 0;
    release_key(reported);
    if (outcome.token == head_) advance(now);
  } else {
    reported.state = State::ready;
    stop_before_ = 0;  // stopping: the sink does not take the rest
    fail(outcome, now);
  }
  if (in_flight_ == 0 && mode_ == Mode::draining) enter_pause(now);
}

void DeliveryCore::fail(const Outcome& outcome, TimePoint /*now*/) {
  if (outcome.kind == Outcome::Kind::rejected) {
    const EventView& culprit = *slot(outcome.token).event;
    if (!rejection_ || culprit.seq < rejection_->seq) {
      rejection_ = Rejection{.seq = culprit.seq, .id = culprit.id, .error = outcome.error};
    }
  } else if (mode_ == Mode::delivering || last_failure_.message.empty()) {
    last_failure_ = outcome.error;
  }
  if (outcome.retry_after)
    wished_pause_ = std::max(wished_pause_.value_or(Duration::zero()), *outcome.retry_after);
  if (mode_ == Mode::delivering) {
    mode_ = Mode::draining;
    ++failures_;
  }
}

void DeliveryCore::enter_pause(TimePoint now) {
  if (rejection_) {
    mode_ = Mode::rejected;
    return;
  }
  mode_ = Mode::backing_off;
  const auto pause = std::max(backoff(options_.backoff, failures_, options_.seed),
                              wished_pause_.value_or(Duration::zero()));
  wished_pause_.reset();
  pause_until_ = now + pause;
}

bool DeliveryCore::wants_open(TimePoint now) {
  if (mode_ == Mode::backing_off && pause_until_ && now >= *pause_until_) mode_ = Mode::reopening;
  return mode_ == Mode::reopening;
}

void DeliveryCore::opened(const Status& status, TimePoint now) {
  if (mode_ != Mode::reopening) return;
  if (!status) {
    last_failure_ = status.error();
    ++failures_;
    enter_pause(now);
    return;
  }
  mode_ = Mode::delivering;
  pause_until_.reset();
  rewind();
}

/// After a failure everything that is not acked goes again, from the earliest on.
void DeliveryCore::rewind() {
  next_ = head_;
  if (options_.gapless) return;
  ready_.clear();
  for (Token token = head_; token < end(); ++token) {
    if (slot(token).state == State::ready) ready_.push_back(token);
  }
}

void DeliveryCore::stop_asked(bool fill_gaps) {
  if (!fill_gaps) stop_before_ = 0;
  if (fill_gaps && mode_ == Mode::delivering) {
    stop_before_ = end();
    const auto sent = [this](Token token) {
      return slot(token).state == State::acked || slot(token).state == State::in_flight;
    };
    while (stop_before_ > head_ && !sent(stop_before_ - 1)) --stop_before_;
    std::erase_if(ready_, [this](Token token) { return token >= stop_before_; });
  }
  stop_asked_ = true;
  mode_ = Mode::stopping;
}

// ---- progress

void DeliveryCore::advance(TimePoint now) {
  while (!pages_.empty()) {
    HeldPage& held = pages_.front();
    bridge(*held.page->pair);
    if (head_ < held.end && slot(head_).state != State::acked &&
        slot(head_).state != State::filtered)
      return;
    store::Settlement& row = row_of(*held.page->pair);
    std::int64_t position = 0;
    for (; head_ < held.end; ++head_) {
      const Slot& done = slot(head_);
      if (done.state != State::acked && done.state != State::filtered) break;
      const std::uint64_t hash = event::id_hash(done.event->id);
      if (done.state == State::acked) {
        row.acked.add(hash);
        ++acked_;
        acks_open_.push_back(ref_to(*done.event));
      } else {
        row.filtered.add(hash);
        ++filtered_;
      }
      position = done.event->seq;
      ++open_events_;
      ++done_since_settle_;
    }
    if (!oldest_done_) oldest_done_ = now;
    if (position != 0) cover(held.page->pair, position);
    if (head_ < held.end) return;
    finish_page(*held.page);
    slots_.erase(slots_.begin(), slots_.begin() + static_cast<std::ptrdiff_t>(held.end - base_));
    base_ = held.end;
    next_ = std::max(next_, base_);
    pages_.pop_front();
  }
}

/// Between a drained cursor and the next pair lie pairs that held nothing for anybody: one row covers them.
void DeliveryCore::bridge(const store::Pair& pair) {
  if (!done_.drained()) {
    OUTBOX_CHECK(done_.s1 == pair.s1 && done_.s2 == pair.s2);
    return;
  }
  if (done_.s1 == pair.s1) return;
  store::Settlement row;
  row.s1 = done_.s1;
  row.s2 = pair.s1;
  row.bound = pair.bound;
  rows_.push_back(std::move(row));
  done_.s1 = pair.s1;
  merge_whole_rows();
}

store::Settlement& DeliveryCore::row_of(const store::Pair& pair) {
  const bool continues = !rows_.empty() && rows_.back().position && rows_.back().s2 == pair.s2;
  if (!continues) {
    store::Settlement row;
    row.s1 = pair.s1;
    row.s2 = pair.s2;
    row.from_position = done_.drained() ? 0 : done_.position;
    row.position = row.from_position;
    row.bound = pair.bound;
    rows_.push_back(std::move(row));
  }
  return rows_.back();
}

void DeliveryCore::cover(const std::shared_ptr<const store::Pair>& pair,
                         std::optional<std::int64_t> position) {
  rows_.back().position = position;
  done_ = position ? store::Cursor{.s1 = pair->s1,
                                   .s2 = pair->s2,
                                   .position = *position,
                                   .bound = pair->bound}
                   : store::Cursor{.s1 = pair->s2, .s2 = {}, .position = 0, .bound = 0};
}

void DeliveryCore::finish_page(const store::Page& page) {
  open_bytes_ += page.bytes;
  if (page.drained) {
    cover(page.pair, std::nullopt);
    merge_whole_rows();
  } else {
    cover(page.pair, page.position);
  }
}

/// All pairs drained since the last settlement make one row: (first s1, last s2). With the rest of a begun pair before
/// and the part of a begun one after it, a settlement has at most three rows.
void DeliveryCore::merge_whole_rows() {
  const auto whole = [](const store::Settlement& row) {
    return row.from_position == 0 && !row.position;
  };
  if (rows_.size() < 2) return;
  store::Settlement& before = rows_[rows_.size() - 2];
  const store::Settlement& last = rows_.back();
  if (!whole(before) || !whole(last)) return;
  before.s2 = last.s2;
  before.bound = last.bound;
  before.acked += last.acked;
  before.filtered += last.filtered;
  before.parked += last.parked;
  rows_.pop_back();
}

/// A row repeats its snapshots, which name every transaction that is open: with thousands of them tens of kilobytes.
std::chrono::nanoseconds DeliveryCore::settle_pause() const {
  std::int64_t bytes = 0;
  for (const store::Settlement& row : rows_)
    bytes += static_cast<std::int64_t>(row.s1.size() + row.s2.size());
  if (bytes <= kSmallSnapshots) return options_.settle_interval;
  return std::max(options_.settle_interval, std::min(bytes * kPausePerByte, kLongestSettlePause));
}

std::vector<store::Settlement> DeliveryCore::settle(TimePoint now) {
  if (settling_ || rows_.empty()) return {};
  const bool last_words = stop_asked_ && in_flight_ == 0 && !filling_gaps();
  const auto pause = settle_pause();
  const bool many =
      done_since_settle_ >= options_.settle_events && pause == options_.settle_interval;
  const bool due = many || window_waits() || (oldest_done_ && now - *oldest_done_ >= pause);
  if (!last_words && !due) return {};
  settling_ = true;
  settling_events_ = std::exchange(open_events_, 0);
  settling_bytes_ = std::exchange(open_bytes_, 0);
  acks_writing_.clear();
  std::swap(acks_writing_, acks_open_);
  done_since_settle_ = 0;
  oldest_done_.reset();
  return std::exchange(rows_, {});
}

/// Not so late that the window fills up with what only waits to be settled, and not at all once there is nothing else in
/// it and no room for the next page.
bool DeliveryCore::window_waits() const {
  const bool half = open_events_ >= (options_.window_events + 1) / 2 ||
                    open_bytes_ >= (options_.window_bytes + 1) / 2;
  const bool full = window_events_ + options_.page_events > options_.window_events ||
                    window_bytes_ + options_.page_bytes > options_.window_bytes;
  return half || (full && open_events_ > 0 && open_events_ == window_events_);
}

void DeliveryCore::settled() {
  settling_ = false;
  window_events_ -= settling_events_;
  window_bytes_ -= settling_bytes_;
  settling_events_ = 0;
  settling_bytes_ = 0;
  acks_writing_.clear();
}

std::optional<TimePoint> DeliveryCore::wake_at() const {
  std::optional<TimePoint> at;
  if (mode_ == Mode::backing_off) at = pause_until_;
  if (!settling_ && oldest_done_ && !rows_.empty()) {
    const TimePoint due =
        *oldest_done_ + std::chrono::duration_cast<TimePoint::duration>(settle_pause());
    at = at ? std::min(*at, due) : due;
  }
  return at;
}

bool DeliveryCore::finished() const {
  return mode_ == Mode::stopping && in_flight_ == 0 && !filling_gaps() && rows_.empty() &&
         !settling_;
}

bool DeliveryCore::idle() const { return pages_.empty() && rows_.empty() && !settling_; }

std::vector<EventRef> DeliveryCore::unsettled_acks() const {
  std::vector<EventRef> acks = acks_writing_;
  acks.insert(acks.end(), acks_open_.begin(), acks_open_.end());
  for (Token token = head_; token < end(); ++token) {
    if (slot(token).state == State::acked) acks.push_back(ref_to(*slot(token).event));
  }
  acks.insert(acks.end(), remembered_.begin(), remembered_.end());
  return acks;
}

}  // namespace outbox::relay
