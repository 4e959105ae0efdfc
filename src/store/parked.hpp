// Parked events: what a relay writes about them, and what it reads back (docs/design/parking.md).
#pragma once

#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <outbox/event.hpp>
#include <string>
#include <vector>

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

}  // namespace outbox::store
