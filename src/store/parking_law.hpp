// What a key with parked events does next, and what changes it (docs/design/parking.md, "The law").
// Pure: SQLite's store and the simulation apply these functions to the rows they read; those of
// migrations/postgres/0004_parking.sql do the same in sets. The test parking_model compares all.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <outbox/event.hpp>
#include <string>

#include "store/parked.hpp"

namespace outbox::store::law {

/// Microseconds since 1970, UTC.
using Time = std::int64_t;
inline constexpr Time kNever = std::numeric_limits<Time>::max();

/// A row of `parked_key`.
struct Key {
  std::int64_t version{0};
  /// The attempts of the event that is `running` or `ready`, or else of the first event; `error` is
  /// of the same event.
  std::size_t attempts{0};
  Time due_at{0};
  std::string error{};
  std::optional<std::int64_t> blocked_by{};  ///< The first dead event that blocks it.
  std::optional<std::int64_t> run_seq{};     ///< The event that is `running` or `ready`.
  std::optional<EventId> worker{};           ///< The worker of the event that is `running`.
  std::int64_t token{0};
  std::optional<Time> begun_at{};
  std::optional<std::string> cancelled_by{};
  std::optional<std::string> cancel_reason{};

  [[nodiscard]] bool runs(std::int64_t seq) const { return run_seq == seq && worker; }
  void forget_run() {
    run_seq.reset();
    worker.reset();
    begun_at.reset();
    cancelled_by.reset();
    cancel_reason.reset();
  }
};

/// The columns of a row of `parked` that the law depends on.
struct Facts {
  bool dead{false};
  // Only set if the event is dead:
  bool blocks{false};  ///< It blocks its key: dead events blocked when it died.
  std::size_t attempts{0};
  std::string error{};
  std::int64_t token{0};
  std::int64_t version{0};
};

[[nodiscard]] inline ParkedState state_of(const Facts& event, std::int64_t seq,
                                          const std::optional<Key>& key, std::int64_t first) {
  if (event.dead || !key) return ParkedState::dead;
  if (key->run_seq == seq) return key->worker ? ParkedState::running : ParkedState::ready;
  const bool blocked = key->blocked_by && *key->blocked_by < seq;
  return seq != first || blocked ? ParkedState::waiting : ParkedState::retrying;
}

/// An event of the stream becomes parked and is not dead. Its state, attempts, due time, error and
/// worker are what its relay knows; they count if the key has no row, or if the event runs, which
/// is a fact.
inline void park(std::optional<Key>& key, std::int64_t seq, ParkedState state, std::size_t attempts,
                 Time due_at, const std::string& error, const EventId& worker, Time now) {
  const bool leaves_relay = state == ParkedState::running || state == ParkedState::ready;
  if (!key) {
    key.emplace();
    key->attempts = attempts;
    key->due_at = due_at;
    key->error = error;
  } else if (!leaves_relay || key->run_seq) {
    // The event may precede a dead one that blocks the key: commits do not follow seq.
    if (key->due_at == kNever && !(key->blocked_by && *key->blocked_by < seq)) key->due_at = now;
    return;
  }
  if (!leaves_relay) return;
  key->run_seq = seq;
  key->attempts = attempts;
  if (state != ParkedState::running) return;
  key->worker = worker;
  ++key->token;
  key->begun_at = now;
}

/// Whether a dead event blocks the first event that is left, or no event is left but dead ones.
[[nodiscard]] inline bool is_blocked(const Key& key, std::optional<std::int64_t> first) {
  return !first || (key.blocked_by && *key.blocked_by < *first);
}

/// An event has left or died. `first` is the first event that is left. `was_dead`: the event was
/// not the first, whatever its seq. `by_person`: results of sends in flight no longer count.
inline void left(std::optional<Key>& key, std::int64_t seq, std::optional<std::int64_t> first,
                 bool was_dead, bool by_person, Time now) {
  if (!key) return;
  const bool ran = key->run_seq == seq;
  if (ran) key->forget_run();
  if (!first && !key->blocked_by) return key.reset();
  const bool anew = ran || (!was_dead && (!first || *first > seq));
  if (is_blocked(*key, first)) {
    key->due_at = kNever;
  } else if (anew || key->due_at == kNever) {
    key->due_at = now;
  }
  if (!anew) return;
  key->attempts = 0;
  key->error.clear();
  if (by_person) ++key->version;
}

/// Whether a result that is not an ack counts. `event` is not set if it is gone or replaced.
[[nodiscard]] inline bool counts(const std::optional<Key>& key, const std::optional<Facts>& event,
                                 std::int64_t version, ParkedState state) {
  if (!key || !event || event->dead) return false;
  if (state == ParkedState::running) return !key->run_seq;  // the run is a fact
  return key->version == version;
}

/// A result counts, and the event is retried, runs or is ready. If a person has put another event
/// before it during its run, the result counts only as the end of the run.
inline void reschedule(Key& key, std::int64_t seq, std::int64_t first, ParkedState state,
                       std::size_t attempts, Time due_at, const std::string& error,
                       const EventId& worker, Time now) {
  const bool over = seq != first && state == ParkedState::retrying;
  key.forget_run();
  key.attempts = over ? 0 : attempts;
  key.due_at = !over ? due_at : is_blocked(key, first) ? kNever : now;
  key.error = over ? std::string{} : error;
  if (state != ParkedState::running && state != ParkedState::ready) return;
  key.run_seq = seq;
  if (state != ParkedState::running) return;
  key.worker = worker;
  ++key.token;
  key.begun_at = now;
}

/// A result counts, and the event is dead now. Then call left().
inline void died(Key& key, Facts& event, std::int64_t seq, std::size_t attempts,
                 const std::string& error, bool blocks) {
  event = {.dead = true,
           .blocks = blocks,
           .attempts = attempts,
           .error = error,
           .token = key.token,
           .version = key.version};
  if (blocks) key.blocked_by = std::min(key.blocked_by.value_or(seq), seq);
}

/// An event was dead when it was parked: its key has a row only if it blocks. Then call left().
inline void park_dead(std::optional<Key>& key, std::int64_t seq, bool blocks) {
  if (!blocks) return;
  if (!key) key.emplace().due_at = kNever;
  key->blocked_by = std::min(key->blocked_by.value_or(seq), seq);
}

/// An event stops blocking its key. `next` is the first other dead event that blocks it.
inline void release(std::optional<Key>& key, std::int64_t seq, std::optional<std::int64_t> next) {
  if (key && key->blocked_by == seq) key->blocked_by = next;
}

/// A person sends an event again that does not block its key any more. `first` is the first event
/// of its key, this one included. Changes the event, too.
inline void retry(std::optional<Key>& key, Facts& event, std::int64_t seq, std::int64_t first,
                  bool keep_attempts, Time now) {
  const bool lives_again = event.dead;
  const std::size_t attempts = event.attempts;
  if (lives_again) {
    if (!key) key.emplace();
    // Neither may be used again, because results and ends of runs refer to them.
    key->version = std::max(key->version, event.version);
    key->token = std::max(key->token, event.token);
    event = {};
  }
  if (seq != first) return;
  ++key->version;
  if (key->run_seq) return;  // a run goes on
  if (lives_again) key->error.clear();
  key->attempts = keep_attempts ? (lives_again ? attempts : key->attempts) : 0;
  key->due_at = is_blocked(*key, first) ? kNever : now;
}

/// Dead events of the subscription do not block any more, so none blocks this key.
inline void unblock(std::optional<Key>& key, std::optional<std::int64_t> first, Time now) {
  if (!key || !key->blocked_by) return;
  key->blocked_by.reset();
  if (!first) return key.reset();
  if (key->due_at == kNever) key->due_at = now;
}

}  // namespace outbox::store::law
