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

/// Stored as text; the words are frozen.
enum class ParkedState : std::uint8_t {
  retrying,  ///< The first of its key, sent again when it is due.
  waiting,   ///< Behind an earlier one of its key.
  dead,      ///< Not sent again unless a person says so.
  running,   ///< A task: its worker runs it, whoever owns its lane (docs/design/tasks.md).
  ready,     ///< A task: any worker may take it.
};
[[nodiscard]] const char* to_string(ParkedState state) noexcept;

/// The number of an event's key in the tables `parked` and `parked_key`; an event without a key is a key of its own. `hash`:
/// event::key_hash() of its key.
[[nodiscard]] constexpr std::uint64_t parked_key(std::uint64_t hash, std::int64_t seq) {
  return hash != 0 ? hash : static_cast<std::uint64_t>(seq);
}

/// An event of the log that becomes parked. The store copies it from the log.
struct ParkedEvent {
  std::int32_t subscription{0};
  std::int64_t generation{0};  ///< Under which the relay owns the event's lane.
  std::int64_t seq{0};
  EventId id{};
  ParkedState state{ParkedState::retrying};
  std::size_t attempts{0};
  std::chrono::milliseconds due_in{0};  ///< Of `retrying`.
  std::string error{};
  EventId worker{};      ///< Of `running`.
  std::uint64_t key{0};  ///< See parked_key().
};

/// What became of a parked event that was sent again.
struct RetryResult {
  std::int32_t subscription{0};
  std::int64_t generation{0};
  std::int64_t seq{0};
  EventId id{};
  std::uint64_t key{0};  ///< See parked_key().
  std::int64_t version{
      0};  ///< Of the key, when the event was read. Of another one only an ack counts.
  std::optional<ParkedState> state{};  ///< None: it was delivered, and its row goes.
  std::size_t attempts{0};
  std::chrono::milliseconds due_in{0};  ///< Of `retrying`.
  std::string error{};
  EventId worker{};  ///< Of `running`.
};

/// A parked event that is due, or one that waits behind it.
struct ParkedRow {
  EventView event;
  std::uint64_t key{0};     ///< See parked_key().
  std::int64_t version{0};  ///< Of its key.
  std::size_t attempts{0};  ///< Of the first event of the key; 0 for those behind it.
  std::int64_t token{0};    ///< How often an event of its key became `running`.
};

/// A row that the relay asks about when it reads what is due: it was left to a worker, or its end could not be written.
struct AskedRow {
  std::int64_t seq{0};
  std::uint64_t key{0};  ///< 0: does not matter.
};
struct AskedState {
  std::int64_t seq{0};
  std::optional<ParkedState> state{};  ///< None: the event is not parked any more.
  bool key_left{false};                ///< Its key still has a row in `parked_key`.
};

/// How much of what is due is read at once, next to the bytes that a store allows. What is due comes by the thousand, as when tasks were
/// scheduled for one moment; so many keys with all that waits behind them would be a page of 100,000.
struct DueLimits {
  std::size_t events{1000};  ///< Keys that are due.
  std::size_t keys{100};     ///< Of the first so many of them also what waits behind them,
  std::size_t behind{100};   ///< at most so many of each.
};

/// In the order of seq within each key. The first of a key is due; those that wait behind it follow.
struct DueEvents {
  std::vector<ParkedRow> rows;
  std::shared_ptr<const void> storage;  ///< Owns what the rows point into.
  /// When the next key that is not in `rows` is due; none: there is none.
  std::optional<std::chrono::milliseconds> next_in;
  std::vector<AskedState>
      asked{};  ///< One for each row that was asked about; read before the rows.
};

/// The keys of a subscription that have a row in `parked_key`: the stream sends none of their events.
struct ParkedKeys {
  struct Key {
    std::uint64_t key{0};
    /// The seq of its event that is `running` or `ready`; 0: none.
    std::int64_t run_seq{0};
  };
  /// Keys of one event without a key are only listed when they are `running` or `ready`.
  std::vector<Key> keys;
  std::size_t live{0};  ///< Events that are parked and not dead.
};

/// Keys without a row in `parked_key` after something was written.
struct ReleasedKey {
  std::int32_t subscription{0};
  std::uint64_t key{0};

  auto operator<=>(const ReleasedKey&) const = default;  // NOLINT(modernize-use-nullptr): its own
};

// ---- Parked events for people: to look at, to send again, to give up (docs/design/parking.md, "Who writes the rows").

/// Which parked events; what is not given does not matter.
struct ParkedFilter {
  std::optional<std::int32_t> subscription{};
  std::optional<ParkedState> state{};
  std::string aggregate_type{};
  std::string aggregate_id{};
  std::string event_type{};
  std::string error{};  ///< Part of the error's text.
  std::optional<bool>
      scheduled{};  ///< Tasks that wait for the time of their execute_at, or all others.
  std::optional<EventId> id{};
  std::optional<std::int64_t> seq{};
  /// Only what comes after it, by subscription and seq: the next page.
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
  std::int64_t parked_at_us{0};        ///< Microseconds since 1970, UTC, as all times here.
  std::int64_t next_attempt_at_us{0};  ///< Of `retrying`.
  std::int64_t created_at_us{0};
  bool scheduled{
      false};  ///< A task that is `retrying` since the time of its execute_at has not come.
  // Of `running`:
  std::string worker{};  ///< Its name; empty: it has left.
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
  EventId id{};      ///< Of the event as it is.
  EventId new_id{};  ///< Of the copy.
  std::string event_type{};
  std::string payload{};
  std::string content_type{};
  std::string headers{};  ///< A JSON object.
  std::string actor{};
  std::string reason{};
};

enum class ParkedOutcome : std::uint8_t { delivered, discarded, edited };
[[nodiscard]] const char* to_string(ParkedOutcome outcome) noexcept;

/// Most events that retry() and discard() take: their transactions must be short, since the relay waits for them.
inline constexpr std::size_t kMostChanged = 1000;

/// One thread at a time. What changes rows is one transaction, and the relay notices within a second.
class ParkedEvents : public Interface {
 public:
  /// In the order of subscription and seq, at most `limit`. `whole`: with payload and headers.
  [[nodiscard]] virtual Result<std::vector<ParkedListing>> list(const ParkedFilter& filter,
                                                                std::size_t limit, bool whole) = 0;
  [[nodiscard]] virtual Result<ParkedCounts> counts(std::int32_t subscription) = 0;
  /// Sends them again at once, or when it is their turn in their key. Returns how many there were.
  [[nodiscard]] virtual Result<std::size_t> retry(std::int32_t subscription,
                                                  std::span<const std::int64_t> seqs,
                                                  bool keep_attempts) = 0;
  /// Removes them for good: they are never delivered. Returns how many there were.
  [[nodiscard]] virtual Result<std::size_t> discard(std::int32_t subscription,
                                                    std::span<const std::int64_t> seqs,
                                                    std::string_view actor,
                                                    std::string_view reason) = 0;
  /// The copy is sent now, before what waits behind the event. Refused while another event of its key is before it, and while a live
  /// relay may be sending it.
  [[nodiscard]] virtual Status edit(const ParkedEdit& edit) = 0;
};

// ---- What follows for an event that failed by its own fault, or was postponed: tried again when, or dead. Pure.

struct Verdict {
  ParkedState state{ParkedState::retrying};
  std::size_t attempts{0};
  std::chrono::milliseconds due_in{0};
};

/// `attempts`: before this one.
[[nodiscard]] inline Verdict verdict(const subscription::RetryPolicy& policy,
                                     const Outcome& outcome, std::size_t attempts,
                                     std::int64_t seq) {
  const auto in_ms = [](Duration pause) {
    // A sum of a time and a pause must not overflow.
    constexpr Duration kLongest = std::chrono::years(10);
    return std::chrono::ceil<std::chrono::milliseconds>(std::min(pause, Duration(kLongest)));
  };
  constexpr Duration kPostponed = std::chrono::seconds(1);
  if (outcome.kind == Outcome::Kind::postponed && outcome.for_any_worker)
    return {.state = ParkedState::ready, .attempts = attempts};
  if (outcome.kind == Outcome::Kind::postponed)
    return {.attempts = attempts, .due_in = in_ms(outcome.retry_after.value_or(kPostponed))};
  if (outcome.own_schedule && !outcome.final)
    return {.attempts = attempts + 1, .due_in = in_ms(outcome.retry_after.value_or(kPostponed))};
  const auto pause = policy.pause_after(attempts + 1, static_cast<std::uint64_t>(seq));
  if (outcome.final || !pause) return {.state = ParkedState::dead, .attempts = attempts + 1};
  return {.attempts = attempts + 1,
          .due_in = outcome.retry_after ? in_ms(*outcome.retry_after) : *pause};
}

}  // namespace outbox::store
