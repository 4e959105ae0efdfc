// Parked events: what a relay writes about them, and what it reads back (docs/design/parking.md).
#pragma once

#include <algorithm>
#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <outbox/error.hpp>
#include <outbox/event.hpp>
#include <outbox/sink.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/interface.hpp"
#include "subscription/retry_policy.hpp"

namespace outbox::store {

/// Stored as text: the words are frozen.
enum class ParkedState : std::uint8_t {
  retrying,  ///< The first of its key, which is sent again when it is due.
  waiting,   ///< It is behind an earlier event of its key.
  dead,      ///< It is not sent again unless a person asks for it.
  running,   ///< A task that its worker runs, whoever owns its lane (docs/design/tasks.md).
  ready,     ///< A task that any worker may take.
};
[[nodiscard]] const char* to_string(ParkedState state) noexcept;

/// The number of an event's key in the tables `parked` and `parked_key`. `hash` is
/// event::key_hash() of the key; an event without a key (0) has a key of its own.
[[nodiscard]] constexpr std::uint64_t parked_key(std::uint64_t hash, std::int64_t seq) {
  return hash != 0 ? hash : static_cast<std::uint64_t>(seq);
}

/// An event of the log that becomes parked. The store copies it from the log.
struct ParkedEvent {
  std::int32_t subscription{0};
  std::int64_t generation{0};  ///< The generation under which the relay owns the event's lane.
  std::int64_t seq{0};
  EventId id{};
  ParkedState state{ParkedState::retrying};
  std::size_t attempts{0};
  std::chrono::milliseconds due_in{0};  ///< Only for `retrying`.
  std::string error{};
  EventId worker{};                         ///< Only for `running`.
  std::uint64_t key{0};                     ///< See parked_key().
  ParkReason reason{ParkReason::rejected};  ///< It is counted, and not stored.
};

/// The result of sending a parked event again.
struct RetryResult {
  std::int32_t subscription{0};
  std::int64_t generation{0};
  std::int64_t seq{0};
  EventId id{};
  std::uint64_t key{0};  ///< See parked_key().
  /// The key's version when the event was read; if it has changed, only an ack counts.
  std::int64_t version{0};
  std::optional<ParkedState> state{};  ///< Not set if it was delivered: its row is removed.
  std::size_t attempts{0};
  std::chrono::milliseconds due_in{0};  ///< Only for `retrying`.
  std::string error{};
  EventId worker{};  ///< Only for `running`.
};

/// A parked event that is due, or one that waits behind such an event.
struct ParkedRow {
  EventView event;
  std::uint64_t key{0};     ///< See parked_key().
  std::int64_t version{0};  ///< The version of its key.
  std::size_t attempts{0};  ///< Those of the first event of the key; 0 for events behind it.
  std::int64_t token{0};    ///< How often an event of its key has become `running`.
};

/// A row that the relay asks about: a worker has it, or its end could not be written.
struct AskedRow {
  std::int64_t seq{0};
  std::uint64_t key{0};  ///< 0 if the key does not matter.
};
struct AskedState {
  std::int64_t seq{0};
  std::optional<ParkedState> state{};  ///< Not set if the event is not parked any more.
  bool key_left{false};                ///< Whether its key still has a row in `parked_key`.
};

/// How many due events one read returns, besides the store's limit in bytes. Thousands can be due
/// at once, as when tasks are scheduled for one moment; with all behind them, that would be 100,000
/// rows.
struct DueLimits {
  std::size_t events{1000};  ///< The most keys that are due.
  /// For how many of them, from the first on, waiting events are read, too.
  std::size_t keys{100};
  std::size_t behind{100};  ///< The most waiting events of each of these keys.
};

/// Events that are due, each followed by those that wait behind it; each key in the order of seq.
struct DueEvents {
  std::vector<ParkedRow> rows;
  std::shared_ptr<const void> storage;  ///< Owns the memory that the rows refer to.
  /// When the next key that is not in `rows` is due; not set if there is no such key.
  std::optional<std::chrono::milliseconds> next_in;
  std::vector<AskedState> asked{};  ///< The answers to the rows asked about, read before `rows`.
};

/// The keys of a subscription with a row in `parked_key`. The stream sends none of their events.
struct ParkedKeys {
  struct Key {
    std::uint64_t key{0};
    /// The seq of its event that is `running` or `ready`; 0 if there is none.
    std::int64_t run_seq{0};
  };
  /// Events without a key are keys of their own, and listed only while `running` or `ready`.
  std::vector<Key> keys;
  std::size_t live{0};  ///< The number of parked events that are not dead.
};

/// A key that lost its row in `parked_key` through what was written.
struct ReleasedKey {
  std::int32_t subscription{0};
  std::uint64_t key{0};

  auto operator<=>(const ReleasedKey&) const = default;  // NOLINT(modernize-use-nullptr): its own
};

// ---- Parked events for people to list, retry, discard and edit (docs/design/parking.md).

/// Selects parked events. A field that is not set does not restrict the selection.
struct ParkedFilter {
  std::optional<std::int32_t> subscription{};
  std::optional<ParkedState> state{};
  std::string aggregate_type{};
  std::string aggregate_id{};
  std::string event_type{};
  std::string error{};              ///< A part of the error's text.
  std::optional<bool> scheduled{};  ///< Whether they are tasks waiting for their execute_at.
  std::optional<EventId> id{};
  std::optional<std::int64_t> seq{};
  /// Selects only events after this subscription and seq: the next page.
  std::optional<std::pair<std::int32_t, std::int64_t>> after{};
};

struct ParkedListing {
  std::int32_t subscription{0};
  std::int64_t seq{0};
  EventId id{};
  std::string aggregate_type{};
  std::string aggregate_id{};
  std::string event_type{};
  ParkedState state{ParkedState::retrying};
  std::size_t attempts{0};
  std::string error{};
  std::int64_t parked_at_us{0};        ///< All times here are microseconds since 1970, UTC.
  std::int64_t next_attempt_at_us{0};  ///< Only of `retrying`.
  std::int64_t created_at_us{0};
  bool scheduled{false};  ///< A task that waits for its execute_at.
  // Only of `running`:
  std::string worker{};  ///< The worker's name; empty if it has left.
  std::optional<std::int64_t> begun_at_us{};
  std::optional<std::int64_t> percent{};
  std::string progress{};
  // Only with `whole`:
  std::string payload{};
  std::string content_type{};
  std::string headers{};  ///< A JSON object.
};

struct ParkedCounts {
  std::int64_t retrying{0};
  std::int64_t waiting{0};
  std::int64_t dead{0};
};

/// A corrected copy that takes the place of a parked event.
struct ParkedEdit {
  std::int32_t subscription{0};
  std::int64_t seq{0};
  EventId id{};      ///< The id of the event that is replaced.
  EventId new_id{};  ///< The id of the copy.
  std::string event_type{};
  std::string payload{};
  std::string content_type{};
  std::string headers{};  ///< A JSON object.
  std::string actor{};
  std::string reason{};
};

enum class ParkedOutcome : std::uint8_t { delivered, discarded, edited };
[[nodiscard]] const char* to_string(ParkedOutcome outcome) noexcept;

/// The most events that one retry() or discard() takes, since the relay waits for them.
inline constexpr std::size_t kMostChanged = 1000;

/// It is used by one thread at a time. Each change is one transaction; the relay notices it within
/// a second.
class ParkedEvents : public Interface {
 public:
  /// At most `limit` parked events, by subscription and seq. `whole` adds payloads and headers.
  [[nodiscard]] virtual Result<std::vector<ParkedListing>> list(const ParkedFilter& filter,
                                                                std::size_t limit, bool whole) = 0;
  [[nodiscard]] virtual Result<ParkedCounts> counts(std::int32_t subscription) = 0;
  /// Makes these events due now, or when it is their turn in their key. Returns how many.
  [[nodiscard]] virtual Result<std::size_t> retry(std::int32_t subscription,
                                                  std::span<const std::int64_t> seqs,
                                                  bool keep_attempts) = 0;
  /// Removes these events, which are never delivered. Returns how many.
  [[nodiscard]] virtual Result<std::size_t> discard(std::int32_t subscription,
                                                    std::span<const std::int64_t> seqs,
                                                    std::string_view actor,
                                                    std::string_view reason) = 0;
  /// Replaces the event by a copy that is sent now, before what waits behind it. Fails while an
  /// earlier event of its key is parked, or while a live relay may be sending it.
  [[nodiscard]] virtual Status edit(const ParkedEdit& edit) = 0;
};

// ---- Whether and when an event that failed or was postponed is tried again. Pure.

struct Verdict {
  ParkedState state{ParkedState::retrying};
  std::size_t attempts{0};
  std::chrono::milliseconds due_in{0};
};

/// `attempts` does not include the one that led to this outcome.
[[nodiscard]] inline Verdict verdict(const subscription::RetryPolicy& policy,
                                     const Outcome& outcome, std::size_t attempts,
                                     std::int64_t seq) {
  const auto in_ms = [](Duration pause) {
    // A sum of a time and a pause must not overflow.
    constexpr Duration kLongest = std::chrono::years(10);
    return std::chrono::ceil<std::chrono::milliseconds>(std::min(pause, Duration(kLongest)));
  };
  constexpr Duration kPostponed = std::chrono::seconds(1);
  if (outcome.kind == Outcome::Kind::postponed && outcome.task.for_any_worker)
    return {.state = ParkedState::ready, .attempts = attempts};
  if (outcome.kind == Outcome::Kind::postponed)
    return {.attempts = attempts, .due_in = in_ms(outcome.retry_after.value_or(kPostponed))};
  if (outcome.task.own_schedule && !outcome.final)
    return {.attempts = attempts + 1, .due_in = in_ms(outcome.retry_after.value_or(kPostponed))};
  const auto pause = policy.pause_after(attempts + 1, static_cast<std::uint64_t>(seq));
  if (outcome.final || !pause) return {.state = ParkedState::dead, .attempts = attempts + 1};
  return {.attempts = attempts + 1,
          .due_in = outcome.retry_after ? in_ms(*outcome.retry_after) : *pause};
}

}  // namespace outbox::store
