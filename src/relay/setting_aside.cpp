// What a delivery core sets aside: events that were rejected, that fail while others succeed, or
// that take long, and the events that wait behind them. docs/design/parking.md.
#include <algorithm>
#include <unordered_set>
#include <utility>

#include "base/error.hpp"
#include "relay/delivery_core.hpp"
#include "relay/slow_watch.hpp"
#include "store/parked.hpp"

namespace outbox::relay {

// ---- parking

void DeliveryCore::hold(Token token, const Outcome& outcome, TimePoint now) {
  slot(token).state = State::held;
  if (held_.empty()) held_since_ = sink_.accepted();
  held_.emplace(token, outcome);
  sink_.rejected(outcome, *slot(token).event, options_.gapless, now);
  if (stopping()) park_held(now);
}

/// Parks an event that was postponed, or that is clearly at fault itself.
void DeliveryCore::set_aside_failed(const Outcome& outcome, TimePoint now) {
  sink_.retry_failed(options_.gapless, now);
  park_failed(
      outcome.token, outcome,
      outcome.kind == Outcome::Kind::postponed ? ParkReason::postponed : ParkReason::rejected);
  next_ = head_;
  advance(now);
}

/// The sink refused the event before anything was sent, so the event is parked at once and nothing
/// stops. A gapless sink may have earlier events of its key in flight, which are sent again if they
/// fail.
void DeliveryCore::refused(const Outcome& outcome, TimePoint now) {
  sink_.refused(now);
  park_failed(outcome.token, outcome, ParkReason::rejected);
  const std::uint64_t key = slot(outcome.token).key;
  if (options_.gapless && key != 0) refused_.emplace(key, outcome.token);
  if (outcome.token == head_) advance(now);
}

/// This event of the key is parked. If it comes before one that the sink refused, the refused one
/// is not the next of its key, and what its attempt has shown does not count.
void DeliveryCore::wait_behind(std::uint64_t key, Token token) {
  const auto found = refused_.find(key);
  if (found == refused_.end() || token >= found->second) return;
  for (auto after = parked_ahead_.lower_bound(found->second); after != parked_ahead_.end();
       ++after) {
    store::ParkedEvent& event = after->second;
    if (event.key != key) continue;
    event.state = store::ParkedState::waiting;
    event.reason = ParkReason::behind;
    event.attempts = 0;
    event.due_in = {};
    event.error.clear();
  }
  refused_.erase(found);
}

/// Parks the held events, since they are at fault and not the destination.
void DeliveryCore::park_held(TimePoint now) {
  if (held_.empty()) return;
  for (const auto& [token, outcome] : std::exchange(held_, {}))
    park_failed(token, outcome, ParkReason::rejected);
  next_ = head_;
  advance(now);
}

void DeliveryCore::refuse(std::size_t attempts, const Error& error, TimePoint now) {
  OUTBOX_CHECK(!batch_.empty() && sink_.in_flight() == 0);
  const Token token = batch_.front().token;
  if (batch_alone_) {
    failing_.remove(token);
  } else if (!options_.gapless) {
    ready_.pop_front();
  }
  batch_.clear();
  park_failed(token, {.kind = Outcome::Kind::rejected, .error = error}, ParkReason::culprit,
              attempts - 1);
  next_ = head_;
  advance(now);
}

void DeliveryCore::park_failed(Token token, const Outcome& outcome, ParkReason reason,
                               std::size_t attempts_before) {
  Slot& failed = slot(token);
  const std::uint64_t key = key_of(failed);
  const store::Verdict next =
      store::verdict(options_.parking->policy, outcome, attempts_before, failed.event->seq);
  store::ParkedEvent parked;
  parked.state = next.state;
  parked.attempts = next.attempts;
  parked.due_in = next.due_in;
  parked.error = outcome.error.text();
  parked.reason = reason;
  park(token, std::move(parked));
  if (!options_.gapless && key != 0) park_followers(failed);
}

/// For sinks that are not gapless: parks what waits behind the event in the window.
void DeliveryCore::park_followers(Slot& first) {
  last_of_key_.erase(first.key);
  for (Token token = first.next_of_key; token != 0; token = slot(token).next_of_key)
    park_waiting(token);
}

void DeliveryCore::park_waiting(Token token) {
  store::ParkedEvent parked;
  parked.state = store::ParkedState::waiting;
  parked.reason = ParkReason::behind;
  park(token, std::move(parked));
}

/// Parks an event and blocks its key. A dead event, too, blocks its key until it is written,
/// because another relay may still deliver it until then.
void DeliveryCore::park(Token token, store::ParkedEvent event) {
  Slot& parked = slot(token);
  parked.state = State::parked;
  ++done_ahead_;
  event.subscription = options_.row.subscription;
  event.generation = options_.row.generation;
  event.seq = parked.event->seq;
  event.id = parked.event->id;
  if (!refused_.empty()) wait_behind(key_of(parked), token);
  event.key = store::parked_key(key_of(parked), event.seq);
  gate_.park(key_of(parked), event.state != store::ParkedState::dead);
  parked_ahead_.emplace(token, std::move(event));
}

// ---- failing

/// A gapless sink also reports events as failed that it did not send because of another event. An
/// outcome that asks for a pause is the destination's fault.
void DeliveryCore::failed(Token token, const Outcome& outcome, TimePoint now) {
  Slot& failed = slot(token);
  const bool alone = sent_alone_ == token || failing_.contains(token);
  if ((options_.gapless && !alone) || outcome.retry_after) {
    failing_.remove(token);
    failed.state = State::ready;
    return sink_.failed(outcome, *failed.event, now);
  }
  failed.state = State::failing;
  const Doubt doubt =
      sink_.doubted(outcome, *failed.event,
                    {.suspect = failing_.is_suspect(token), .gapless = options_.gapless}, now);
  failing_.failed(token, doubt, alone, outcome.error, now);
}

void DeliveryCore::judge_failing(TimePoint now) {
  if (options_.gapless || failing_.need_isolation()) sink_.be_careful();
  bool any = false;
  while (const auto guilty = failing_.take_guilty()) {
    park_failed(guilty->first, {.kind = Outcome::Kind::rejected, .error = guilty->second.error},
                ParkReason::failing);
    any = true;
  }
  if (!any) return;
  next_ = head_;
  advance(now);
}

bool DeliveryCore::pick_failing(TimePoint now, bool at_last) {
  if (failing_.empty()) return false;
  const auto token = failing_.next(now, at_last);
  if (!token) return false;
  batch_.push_back({.token = *token, .event = slot(*token).event});
  return batch_alone_ = true;
}

std::optional<TimePoint> DeliveryCore::send_at() const {
  return sink_.may_send() ? failing_.next_at() : std::nullopt;
}

// ---- slow

void DeliveryCore::keep_time(TimePoint now) {
  now_ = now;
  now_ms_ = in_ms(now);
}

/// How long the event has waited for its outcome, or has been failing; nullopt if it does neither.
std::optional<std::chrono::milliseconds> DeliveryCore::age(Token token) const {
  if (const auto since = failing_.since(token))
    return std::chrono::duration_cast<std::chrono::milliseconds>(now_ - *since);
  if (slot(token).state != State::in_flight) return {};
  return std::chrono::milliseconds(now_ms_ - slot(token).sent_ms);  // modulo 49 days
}

/// At a stop the limit is short: a send that has just begun may end, and one that lasts is left to
/// its worker.
bool DeliveryCore::is_old(Token token) const {
  const auto waited = age(token);
  const bool is_slow =
      options_.parking->is_slow && options_.parking->is_slow(slot(token).event->event_type);
  const auto limit = is_slow ? TimePoint::duration(0) : slow_watch_.limit();
  return waited &&
         *waited >= (stopping() ? std::min<TimePoint::duration>(limit, kSlowAtStop) : limit);
}

void DeliveryCore::watch_slow(TimePoint now) {
  if (head_ == end() || (!sink_.may_send() && !stopping())) return;
  if (!age(head_)) return;
  const bool holds = slow_watch_.holds_back({.oldest = head_,
                                             .old = is_old(head_),
                                             .half = window_.is_half(done_ahead_, 0),
                                             .acked = sink_.accepted(),
                                             .in_flight = sink_.in_flight() - late_.size()});
  if (!holds && !(options_.independent && is_old(head_))) return;
  const std::vector<Token> slow = slow_events();
  const std::size_t all = slow.size() + gate_.late.size();
  if (!options_.independent && SlowWatch::too_many(all, keys_in_window()))
    return sink_.suspect_slow(all, now);
  for (const Token token : slow) set_aside(token);
  advance(now);
}

std::vector<Token> DeliveryCore::slow_events() const {
  std::vector<Token> slow{head_};
  for (Token token = head_ + 1; token < end(); ++token) {
    if (is_old(token)) slow.push_back(token);
  }
  return slow;
}

std::size_t DeliveryCore::keys_in_window() {
  std::unordered_set<std::uint64_t> keys;
  std::size_t without = 0;
  for (Slot& slot : slots_) {
    if (key_of(slot) == 0) ++without;
    keys.insert(slot.key);
  }
  return keys.size() + without;
}

/// Parks a slow event, and the events that wait behind it. Its send goes on.
void DeliveryCore::set_aside(Token token) {
  Slot& slow = slot(token);
  const EventRef event{.seq = slow.event->seq, .id = slow.event->id};
  store::ParkedEvent parked;
  parked.reason = ParkReason::slow;
  const auto waited = std::to_string(age(token).value_or(std::chrono::milliseconds(0)).count());
  parked.error = options_.independent
                     ? "runs for " + waited + " ms"
                     : "no outcome for " + waited + " ms while later events were delivered";
  if (slow.state == State::in_flight) {
    late_.emplace(token, event);
    gate_.late.began({.token = options_.token_prefix | token,
                      .seq = event.seq,
                      .id = event.id,
                      .key = key_of(slow),
                      .run = 1});
    if (options_.worker) {
      parked.state = store::ParkedState::running;
      parked.worker = *options_.worker;
    }
  } else {
    parked.error += "; " + failing_.entries().at(token).error.text();
  }
  failing_.remove(token);
  park(token, std::move(parked));
  if (key_of(slow) != 0) park_followers(slow);
  ++slow_;
}

/// Takes the outcome of a send that went on after its event was set aside. Returns whether the
/// outcome was that of such a send.
bool DeliveryCore::late_outcome(const Outcome& outcome, TimePoint now) {
  const auto found = late_.find(outcome.token);
  if (found == late_.end()) return false;
  EventView event;
  event.seq = found->second.seq;
  event.id = found->second.id;
  late_.erase(found);
  if (options_.meter != nullptr) options_.meter->ended_late(outcome.kind);
  gate_.late.ended(event.seq, outcome);
  sink_.late(outcome, event, now);
  return true;
}

}  // namespace outbox::relay
