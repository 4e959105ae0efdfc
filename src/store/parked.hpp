// Parked events: what a relay writes about them, and what it reads back (docs/design/parking.md).
#pragma once

#include <chrono>
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
  std::uint64_t key{0};  ///< For the relay only: the hash of its key.
};

/// What became of a parked event that was sent again.
struct RetryResult {
  std::int32_t subscription{0};
  std::int64_t generation{0};
  std::int64_t seq{0};
  EventId id{};
  std::optional<ParkedState> state{};  ///< None: it was delivered, and its row goes.
  std::size_t attempts{0};
  std::chrono::milliseconds due_in{0};  ///< Of `retrying`.
  std::string error{};
  EventId worker{};  ///< Of `running`.
};

/// A parked event that is due, or one that waits behind it.
struct ParkedRow {
  EventView event;
  ParkedState state{ParkedState::retrying};
  std::size_t attempts{0};
  std::int64_t token{0};  ///< How often it became `running`.
};

/// A row that was `running` when it was last read, and what it is now.
struct RunningRow {
  std::int64_t seq{0};
  ParkedState state{ParkedState::running};
};

/// How much of what is due is read at once, next to the bytes that a store allows. What is due comes by the thousand, as when tasks were
/// scheduled for one moment; so many keys with all that waits behind them would be a page of 100,000.
struct DueLimits {
  std::size_t events{1000};  ///< That are due.
  std::size_t keys{100};     ///< Of the first so many of them also what waits behind them,
  std::size_t behind{100};   ///< at most so many of each.
};

/// In the order of seq within each key. The first of a key is `retrying` and due; those that wait behind it follow.
struct DueEvents {
  std::vector<ParkedRow> rows;
  std::shared_ptr<const void> storage;  ///< Owns what the rows point into.
  /// When the next one that is not in `rows` is due; none: there is none.
  std::optional<std::chrono::milliseconds> next_in;
  std::vector<RunningRow> running{};  ///< Where that was asked; read before the rows.
};

/// A key that has parked events, and how many. One that is `running` or `ready` is listed for itself.
struct BlockedKey {
  std::string aggregate_type;
  std::string aggregate_id;
  std::size_t events{0};
  std::optional<std::int64_t> running{};  ///< Its seq.
};

}  // namespace outbox::store
