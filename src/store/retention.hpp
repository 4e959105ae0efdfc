// Removing delivered history (docs/design/retention.md): events that every subscription has passed, and the rows about them.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <outbox/error.hpp>
#include <outbox/event.hpp>
#include <stop_token>
#include <string>
#include <vector>

#include "store/part.hpp"

namespace outbox::store {

/// Ends and results of tasks are kept as long as events, and at least this long.
inline constexpr std::chrono::milliseconds kLeastKept = std::chrono::hours(1);
/// What consumers have applied.
inline constexpr std::chrono::milliseconds kInboxKept = std::chrono::hours(24 * 30);

/// A part of the log that goes as a whole: a partition (PostgreSQL), a range of seqs (SQLite).
struct LogPiece {
  enum class State : std::uint8_t {
    removable,
    empty,   ///< Its events were removed.
    held,    ///< Old enough, but `held_by` have not passed it.
    young,   ///< Its newest event is younger than what is kept.
    in_use,  ///< Transactions may still write to it.
  };

  std::string name;
  State state{State::in_use};
  std::vector<std::int32_t>
      held_by{};              ///< Subscriptions. None, though held: there is no subscription.
  std::int64_t bytes{0};      ///< With indexes; SQLite: an estimate.
  std::int64_t newest_us{0};  ///< Microseconds since 1970, UTC: its newest event; 0: none.
  std::int64_t last_seq{0};   ///< 0: none.
  // The store's own: transaction ids (PostgreSQL; 0: the default partition), or seqs, from `first` to before `end`.
  std::uint64_t first{0};
  std::uint64_t end{0};
};

[[nodiscard]] const char* to_string(LogPiece::State state) noexcept;

/// What one subscription holds back: old enough to go, but not passed by it.
struct Hold {
  std::int32_t subscription{0};
  std::int64_t pieces{0};
  std::int64_t bytes{0};
  std::int64_t oldest_us{0};  ///< The newest event of the oldest of these pieces.
};

[[nodiscard]] std::vector<Hold> holds_of(const std::vector<LogPiece>& pieces);

/// What a call of remove() did.
struct Removal {
  bool removed{
      false};  ///< False: something holds it after all, or it is locked; nothing was changed.
  std::int64_t events{0};
  std::string archived{};  ///< The file that has them.
};

/// One thread at a time.
class Retention : public Part {
 public:
  using Duration = std::chrono::milliseconds;

  /// Becomes or remains the one that removes history. False: another one does.
  [[nodiscard]] virtual Result<bool> hold(const EventId& who, Duration lease) = 0;
  [[nodiscard]] virtual Status release(const EventId& who) = 0;

  /// The log, the oldest first. `keep`: how long history is kept after it was written.
  [[nodiscard]] virtual Result<std::vector<LogPiece>> survey(Duration keep) = 0;
  /// Removes a piece that survey() called removable, if that is still true, and notes it in the ledger. Before that, writes its events to a file
  /// in `archive`, unless that is empty. A stop ends it with `removed` false.
  [[nodiscard]] virtual Result<Removal> remove(const LogPiece& piece, const std::string& archive,
                                               const std::stop_token& stop) = 0;
  /// Removes what is left of removed events: emptied partitions, old settlements, ends of parked events. Returns how many rows.
  [[nodiscard]] virtual Result<std::int64_t> tidy(Duration keep, const std::stop_token& stop) = 0;
};

}  // namespace outbox::store
