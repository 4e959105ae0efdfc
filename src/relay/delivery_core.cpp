#include "relay/delivery_core.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "event/key.hpp"

namespace outbox::relay {
namespace {

/// Snapshots in settlements may take 64 KiB a second.
constexpr auto kPausePerByte = std::chrono::nanoseconds(std::chrono::seconds(1)) / (64 << 10);
constexpr std::int64_t kSmallSnapshots = 4 << 10;
/// Limits what is delivered again after a crash.
constexpr std::chrono::nanoseconds kLongestSettlePause = std::chrono::seconds(2);

/// Whether no event of a page is wanted. If `wanted` is empty, all events are wanted.
bool none_of(std::span<const std::uint8_t> wanted) {
  return !wanted.empty() &&
         std::none_of(wanted.begin(), wanted.end(), [](auto mark) { return mark != 0; });
}

EventRef ref_to(const EventView& event) { return {.seq = event.seq, .id = event.id}; }

}  // namespace

DeliveryCore::DeliveryCore(CoreOptions options, store::Cursor start, SinkState& sink,
                           Window& window, KeyGate& gate)
    : options_(std::move(options)),
      sink_(sink),
      window_(window),
      gate_(gate),
      base_(options_.first_token),
      head_(base_),
      next_(base_),
      failing_(options_.parking ? options_.parking->failing : BackoffPolicy{}),
      slow_watch_(options_.parking ? options_.parking->slow_after : std::chrono::seconds(1)),
      done_(std::move(start)),
      read_(done_) {}

// ---- reading

void DeliveryCore::page_read(std::shared_ptr<const store::Page> page,
                             std::span<const std::uint8_t> wanted, TimePoint now) {
  OUTBOX_CHECK(wanted.empty() || wanted.size() == page->events.size());
  // A gap between pages would be a lost event: the reader must continue exactly where the last page
  // ended.
  OUTBOX_CHECK(read_.drained() ? page->from == 0
                               : page->from == read_.position && page->pair->s2 == read_.s2);
  begins_pairs_ = begins_pairs_ || read_.drained();
  // An earlier run cannot have read beyond the end of a pair that this run has read from its
  // beginning.
  const bool at_end = page->caught_up || (page->drained && begins_pairs_);
  saw_end_ = saw_end_ || at_end;
  read_ = page->end();
  const bool resting = pages_.empty() && remembered_.empty();
  if (resting && !page->events.empty() && none_of(wanted)) return pass_page(*page, now);
  Token token = end();
  for (std::size_t i = 0; i < page->events.size(); ++i, ++token) {
    slots_.push_back(Slot{.event = &page->events[i]});
    Slot& added = slots_.back();
    // An event that was delivered under earlier settings counts as acked even if the present filter
    // excludes it.
    if (recall(*added.event)) {
      added.state = State::acked;
    } else if (!wanted.empty() && wanted[i] == 0) {
      added.state = State::filtered;
    } else if (!options_.gapless) {
      chain(added, token);
    }
    if (added.state == State::acked || added.state == State::filtered) ++done_ahead_;
  }
  if (at_end) remembered_.clear();
  if (page->events.empty() && !page->drained) return;  // the cursor does not move
  pages_.push_back(HeldPage{.page = std::move(page), .end = token, .read_at = now});
  advance(now);
}

/// Passes a page of which nothing is wanted. Of many subscriptions that share a log, most want
/// nothing of a page, so such a page must cost next to nothing. Its room in the window is free at
/// once, without a settlement.
void DeliveryCore::pass_page(const store::Page& page, TimePoint now) {
  bridge(*page.pair);
  store::Settlement& row = find_settlement(*page.pair);
  row.filtered += page.tally.value_or(store::make_tally(page.events));
  filtered_ += page.events.size();
  window_.remove(page.events.size(), page.bytes);
  if (!oldest_done_) oldest_done_ = now;
  row.position = page.drained ? std::nullopt : std::optional(page.position);
  done_ = row.end();
  merge_whole_rows();
}

/// True: an earlier run delivered it.
bool DeliveryCore::recall(const EventView& event) {
  return !remembered_.empty() && remembered_.erase(ref_to(event)) != 0;
}

std::uint64_t DeliveryCore::key_of(Slot& slot) const {
  if (slot.key == 0)
    slot.key = event::key_hash(slot.event->aggregate_type, slot.event->aggregate_id);
  return slot.key;
}

void DeliveryCore::chain(Slot& added, Token token) {
  if (key_of(added) == 0) return queue(token);
  const auto [last, is_first] = last_of_key_.try_emplace(added.key, token);
  // If the key is blocked although the window has earlier events of it, a person has sent a dead
  // event of the key again. That event waits for those that are in flight.
  if (gate_.blocked(added.key)) {
    if (is_first) last_of_key_.erase(last);
    return park_waiting(token);
  }
  if (is_first) return queue(token);
  slot(last->second).next_of_key = token;
  last->second = token;
  added.state = State::waiting;
}

void DeliveryCore::queue(Token token) {
  if (!stopping() || token < stop_before_) ready_.push_back(token);
}

void DeliveryCore::release_key(const Slot& done) {
  if (options_.gapless || done.key == 0) return;
  if (done.next_of_key == 0) {
    last_of_key_.erase(done.key);
    return;
  }
  slot(done.next_of_key).state = State::ready;
  queue(done.next_of_key);
}

// ---- sending

std::span<const DeliveryCore::Send> DeliveryCore::to_send(TimePoint now) {
  batch_.clear();
  batch_alone_ = false;
  keep_time(now);
  if (watches() && slow_watch_.looks(now)) watch_slow(now);
  if (!sink_.may_send() && !filling_gaps()) return {};
  if (sink_.in_flight() >= options_.max_in_flight) return {};
  if (std::exchange(openings_, sink_.openings()) != sink_.openings()) rewind();
  if (!failing_.empty()) judge_failing(now);
  if (!held_.empty() && sink_.accepted() != held_since_) park_held(now);
  if (const std::size_t limit = batch_limit(); limit > 0) choose(limit, now);
  if (!parked_ahead_.empty()) advance(now);
  return batch_;
}

std::size_t DeliveryCore::batch_limit() const {
  const std::size_t limit =
      std::min(options_.max_batch, options_.max_in_flight - sink_.in_flight());
  if (!options_.parking || stopping()) return limit;
  return sink_.alone_asked() ? 0 : std::min(limit, sink_.batch_limit());
}

void DeliveryCore::choose(std::size_t limit, TimePoint now) {
  // While the sink is careful, an event that is sent alone goes only after another event was acked.
  if ((!sink_.careful() || sink_.last_was_ack()) && pick_failing(now, false)) return;
  fill_batch(limit);
  if (batch_.empty() && !held_.empty() && sink_.in_flight() == 0) {
    // Nothing else can show whose fault it is.
    park_held(now);
    fill_batch(limit);
  }
  if (batch_.empty()) (void)pick_failing(now, true);
}

void DeliveryCore::fill_batch(std::size_t limit) {
  if (!options_.gapless) {
    const Token before = send_before();
    // While too many events are parked, only events before `before` are sent.
    const auto sendable =
        is_full() ? std::stable_partition(ready_.begin(), ready_.end(),
                                          [before](Token token) { return token < before; })
                  : ready_.end();
    const std::size_t count = std::min(limit, static_cast<std::size_t>(sendable - ready_.begin()));
    for (std::size_t i = 0; i < count; ++i)
      batch_.push_back({.token = ready_[i], .event = slot(ready_[i]).event});
    return;
  }
  while (next_ < end() && slot(next_).state != State::ready) ++next_;
  const Token last = stopping() ? std::min(stop_before_, end()) : end();
  // send_before() is asked again for each event, because may_pass() parks events.
  for (Token token = next_; token < std::min(last, send_before()) && batch_.size() < limit;
       ++token) {
    if (slot(token).state == State::ready && may_pass(token))
      batch_.push_back({.token = token, .event = slot(token).event});
  }
}

/// Whether a gapless sink may get this event now. (For other sinks an event behind another one of
/// its key is not ready.) An event behind a held or failing one is considered again when that one
/// is parked or sent again. An event whose key is blocked is parked.
bool DeliveryCore::may_pass(Token token) {
  if (gate_.empty() && held_.empty() && failing_.empty()) return true;
  const std::uint64_t key = key_of(slot(token));
  if (key == 0) return true;
  const auto of_key = [&](const auto& entry) { return key_of(slot(entry.first)) == key; };
  const auto& failing = failing_.entries();
  if (std::any_of(held_.begin(), held_.end(), of_key) ||
      std::any_of(failing.begin(), failing.end(), of_key))
    return false;
  if (!gate_.blocked(key) || precedes_refused(key, token)) return true;
  park_waiting(token);
  return false;
}

/// Whether the key is blocked because of a later event, which was refused while this one was in
/// flight.
bool DeliveryCore::precedes_refused(std::uint64_t key, Token token) const {
  const auto found = refused_.find(key);
  return found != refused_.end() && token < found->second;
}

/// Whether too many events are parked already.
bool DeliveryCore::is_full() const {
  return options_.parking && gate_.live() >= options_.parking->max_waiting;
}

/// Only events before this token may be sent. While too many events are parked, these are the
/// events that the cursor must pass before the parked ones can be written. Otherwise no parked
/// event could be sent again, and nothing would make room. A stop, too, sends the events that stand
/// before acked ones, so that the acked ones are settled.
Token DeliveryCore::send_before() const {
  if (!is_full() || stopping()) return end();
  return parked_ahead_.empty() ? head_ : parked_ahead_.rbegin()->first;
}

void DeliveryCore::add_keys_in_flight(std::unordered_set<std::uint64_t>& keys) const {
  for (const auto& [key, last] : last_of_key_) keys.insert(key);
  if (!options_.gapless || sink_.in_flight() == 0) return;
  for (const Slot& slot : slots_) {
    if (slot.state == State::in_flight)
      keys.insert(event::key_hash(slot.event->aggregate_type, slot.event->aggregate_id));
  }
}

void DeliveryCore::handed_over(std::size_t count) {
  OUTBOX_CHECK(count <= batch_.size());
  if (count == 0) return;
  for (std::size_t i = 0; i < count; ++i) {
    Slot& sent = slot(batch_[i].token);
    OUTBOX_CHECK(sent.state == (batch_alone_ ? State::failing : State::ready));
    sent.state = State::in_flight;
    sent.sent_ms = now_ms_;
  }
  sent_alone_.reset();
  if (batch_alone_) {
    failing_.sent(batch_[0].token);
  } else {
    if (sink_.careful() && batch_.size() == 1) sent_alone_ = batch_[0].token;
    if (options_.gapless) {
      next_ = batch_[count - 1].token + 1;
    } else {
      ready_.erase(ready_.begin(), ready_.begin() + static_cast<std::ptrdiff_t>(count));
    }
  }
  sink_.sent(count);
}

/// The event is parked when it would be sent next, behind the event that was refused.
void DeliveryCore::kept_back(Token token, TimePoint now) {
  slot(token).state = State::ready;
  next_ = std::min(next_, token);
  sink_.left(now);
}

void DeliveryCore::outcome(const Outcome& outcome, TimePoint now) {
  if (!late_.empty() && late_outcome(outcome, now)) return;
  // A faulty sink may report an event twice, or one that it never got. This is ignored.
  if (outcome.token < base_ || outcome.token >= end()) return;
  Slot& reported = slot(outcome.token);
  if (reported.state != State::in_flight) return;
  if (options_.meter != nullptr) {
    // Modulo 49 days.
    const std::chrono::milliseconds took(in_ms(options_.meter->now()) - reported.sent_ms);
    options_.meter->ended(outcome.kind, *reported.event, took, options_.counts_latency);
  }
  const bool in_doubt =
      outcome.kind == Outcome::Kind::unknown || outcome.kind == Outcome::Kind::retry;
  if (in_doubt && options_.parking && !stopping()) return failed(outcome.token, outcome, now);
  if (!failing_.empty()) {
    failing_.remove(outcome.token);
    if (options_.gapless) next_ = head_;  // later events of its key may go
  }
  const bool by_itself =
      outcome.kind == Outcome::Kind::postponed ||
      (outcome.kind == Outcome::Kind::rejected && (options_.independent || outcome.final));
  if (outcome.unsent && outcome.kind == Outcome::Kind::rejected && options_.parking)
    return refused(outcome, now);
  if (by_itself && options_.parking) return set_aside_failed(outcome, now);
  if (outcome.kind == Outcome::Kind::rejected && options_.parking)
    return hold(outcome.token, outcome, now);
  if (outcome.kind != Outcome::Kind::acked) {
    reported.state = State::ready;
    return sink_.failed(outcome, *reported.event, now);
  }
  reported.state = State::acked;
  ++done_ahead_;
  release_key(reported);
  if (outcome.token == head_) advance(now);
  sink_.acked(now);
}

/// The sink was opened again: everything that is not done is sent again, starting with the
/// earliest. Held events only when the destination is suspected; otherwise it was opened because of
/// them.
void DeliveryCore::rewind() {
  next_ = head_;
  if (std::exchange(suspicions_, sink_.suspicions()) != sink_.suspicions()) {
    for (const auto& [token, outcome] : held_) slot(token).state = State::ready;
    held_.clear();
  }
  sent_alone_.reset();
  for (const Token token : failing_.take_innocent()) slot(token).state = State::ready;
  if (options_.gapless) return;
  ready_.clear();
  for (Token token = head_; token < end(); ++token) {
    if (slot(token).state == State::ready) queue(token);
  }
}

void DeliveryCore::stop_requested(TimePoint now) {
  park_held(now);
  for (const auto& [token, entry] : failing_.entries()) {
    if (entry.in_flight) continue;
    slot(token).state = State::ready;
    next_ = head_;
    if (!options_.gapless) ready_.push_back(token);
  }
  failing_.clear();
  stop_before_ = end();
  const auto sent = [this](Token token) {
    const State state = slot(token).state;
    return state == State::acked || state == State::in_flight || state == State::parked;
  };
  while (stop_before_ > head_ && !sent(stop_before_ - 1)) --stop_before_;
  std::erase_if(ready_, [this](Token token) { return token >= stop_before_; });
}

// ---- progress

void DeliveryCore::advance(TimePoint now) {
  while (!pages_.empty() && !is_cut()) {
    const HeldPage& held = pages_.front();
    bridge(*held.page->pair);
    if (head_ < held.end && !slot(head_).is_done()) return;
    store::Settlement& row = find_settlement(*held.page->pair);
    for (; head_ < held.end && slot(head_).is_done() && !is_cut(); ++head_) {
      count(row, head_);
      --done_ahead_;
    }
    if (!oldest_done_) oldest_done_ = now;
    const bool page_done = head_ == held.end;
    if (page_done) {
      row.position = held.page->drained ? std::nullopt : std::optional(held.page->position);
    }
    done_ = row.end();
    if (!page_done) return;
    drop_front_page();
    merge_whole_rows();
  }
}

void DeliveryCore::count(store::Settlement& row, Token token) {
  const Slot& done = slot(token);
  const std::uint64_t hash = event::id_hash(done.event->id);
  if (done.state == State::acked) {
    row.acked.add(hash);
    ++acked_;
    acks_open_.push_back(ref_to(*done.event));
  } else if (done.state == State::parked) {
    row.parked.add(hash);
    ++parked_;
    parked_open_.push_back(std::move(parked_ahead_.extract(token).mapped()));
    if (const auto found = refused_.find(done.key);
        found != refused_.end() && found->second == token)
      refused_.erase(found);
  } else {
    row.filtered.add(hash);
    ++filtered_;
  }
  row.position = done.event->seq;
  ++open_events_;
}

void DeliveryCore::drop_front_page() {
  const HeldPage& held = pages_.front();
  open_bytes_ += held.page->bytes;
  if (options_.meter != nullptr && held.end > base_) read_open_.push_back(held.read_at);
  slots_.erase(slots_.begin(), slots_.begin() + static_cast<std::ptrdiff_t>(held.end - base_));
  base_ = held.end;
  next_ = std::max(next_, base_);
  pages_.pop_front();
}

/// Between a drained cursor and the next pair are empty pairs that were not passed to the core. One
/// row covers them.
void DeliveryCore::bridge(const store::Pair& pair) {
  if (!done_.drained()) {
    OUTBOX_CHECK(done_.s1 == pair.s1 && done_.s2 == pair.s2);
    return;
  }
  if (done_.s1 == pair.s1) return;
  store::Settlement row = options_.row;
  row.s1 = done_.s1;
  row.s2 = pair.s1;
  row.bound = pair.bound;
  rows_.push_back(std::move(row));
  done_.s1 = pair.s1;
  merge_whole_rows();
}

store::Settlement& DeliveryCore::find_settlement(const store::Pair& pair) {
  const bool continues = !rows_.empty() && rows_.back().position && rows_.back().s2 == pair.s2;
  if (!continues) {
    store::Settlement row = options_.row;
    row.s1 = pair.s1;
    row.s2 = pair.s2;
    row.from_position = done_.drained() ? 0 : done_.position;
    row.position = row.from_position;
    row.bound = pair.bound;
    rows_.push_back(std::move(row));
  }
  return rows_.back();
}

/// All pairs drained since the last settlement become one row: (first s1, last s2). With the rest
/// of a pair before it and the beginning of one after it, settle() returns at most three rows.
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

/// How long the oldest progress waits for a settlement. Each row contains its snapshots, which list
/// every open transaction, so that with thousands of them a row has tens of kilobytes.
std::chrono::nanoseconds DeliveryCore::settle_pause() const {
  std::int64_t bytes = 0;
  for (const store::Settlement& row : rows_)
    bytes += static_cast<std::int64_t>(row.s1.size() + row.s2.size());
  const auto least = open_events_ == 0
                         ? std::max(options_.passed_interval, options_.settle_interval)
                         : options_.settle_interval;
  if (bytes <= kSmallSnapshots) return least;
  return std::max(least, std::min(bytes * kPausePerByte, kLongestSettlePause));
}

DeliveryCore::Due DeliveryCore::settle(TimePoint now) {
  if (settling_ || rows_.empty()) return {};
  const bool last_rows = stopping() && sink_.in_flight() == 0 && !filling_gaps();
  const auto pause = settle_pause();
  const bool many = open_events_ >= options_.settle_events && pause == options_.settle_interval;
  const bool due =
      many || is_cut() || window_waits() || (oldest_done_ && now - *oldest_done_ >= pause);
  if (!last_rows && !due) return {};
  settling_ = true;
  settling_events_ = std::exchange(open_events_, 0);
  settling_bytes_ = std::exchange(open_bytes_, 0);
  acks_writing_.clear();
  std::swap(acks_writing_, acks_open_);
  std::swap(read_writing_, read_open_);
  oldest_done_.reset();
  for (const auto& parked : parked_open_) {
    parked_writing_.push_back({.key = gate_key(parked.key, parked.seq),
                               .live = parked.state != store::ParkedState::dead});
    if (gate_.late.contains(parked.seq)) late_writing_.push_back(parked.seq);
  }
  Due written{.rows = std::exchange(rows_, {}), .parked = std::exchange(parked_open_, {})};
  // What did not fit follows when this is written.
  if (!written.parked.empty()) advance(now);
  return written;
}

/// Whether the window needs a settlement now, because half of it only waits to be settled, or all
/// of it does and there is no room for a page.
bool DeliveryCore::window_waits() const {
  return window_.is_half(open_events_, open_bytes_) ||
         (open_events_ > 0 && head_ == end() && !window_.has_room(1));
}

void DeliveryCore::settled() {
  settling_ = false;
  window_.remove(std::exchange(settling_events_, 0), std::exchange(settling_bytes_, 0));
  acks_writing_.clear();
  for (const TimePoint read_at : std::exchange(read_writing_, {}))
    options_.meter->page_settled(read_at);
  for (const Parked& parked : std::exchange(parked_writing_, {}))
    gate_.written(parked.key, parked.live);
  for (const std::int64_t seq : std::exchange(late_writing_, {})) gate_.late.written(seq);
}

std::optional<TimePoint> DeliveryCore::settle_at() const {
  if (settling_ || !oldest_done_ || rows_.empty()) return {};
  return *oldest_done_ + std::chrono::duration_cast<TimePoint::duration>(settle_pause());
}

bool DeliveryCore::finished() const {
  return stopping() && sink_.in_flight() == 0 && !filling_gaps() && rows_.empty() && !settling_;
}

std::vector<EventRef> DeliveryCore::unsettled_acks() const {
  std::vector<EventRef> acks = acks_writing_;
  acks.insert(acks.end(), acks_open_.begin(), acks_open_.end());
  for (Token token = head_; token < end(); ++token) {
    if (slot(token).state == State::acked) acks.push_back(ref_to(*slot(token).event));
  }
  for (const auto& [seq, late] : gate_.late.all()) {
    const bool acked = late.outcome && late.outcome->kind == Outcome::Kind::acked;
    if (acked && !late.written) acks.push_back({.seq = seq, .id = late.id});
  }
  acks.insert(acks.end(), remembered_.begin(), remembered_.end());
  return acks;
}

}  // namespace outbox::relay
