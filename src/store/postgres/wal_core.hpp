// What the feed decides (docs/design/feed.md): which commits wrote events, which of them a reader
// has not seen, what is confirmed when, what forbids a stream, and when to try again. Pure.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "store/diagnosis.hpp"
#include "store/postgres/snapshot.hpp"
#include "store/postgres/wal_message.hpp"

namespace outbox::store::postgres {

using WalTime = std::chrono::steady_clock::time_point;

/// Reads the stream, and says which transactions wrote events.
class WalReader {
 public:
  /// Returns the transaction's id if the message is the commit of one that inserted events.
  [[nodiscard]] std::optional<std::uint32_t> read(const WalMessage& message);

 private:
  std::uint32_t xid_{0};
  bool inserted_{false};
};

/// Commits that were reported, until a snapshot contains them.
class UnseenCommits {
 public:
  /// The newest ones that are kept. In a busy log nobody asks until it is quiet.
  static constexpr std::size_t kMost = 4096;
  /// Older ones are left to the idle poll: a commit may wait for its standby for ever.
  static constexpr std::chrono::seconds kLongest{1};

  void add(std::uint32_t xid, WalTime now);
  /// Forgets the commits that the snapshot contains. Returns whether none is left.
  [[nodiscard]] bool all_in(const Snapshot& snapshot, WalTime now);
  void clear() { commits_.clear(); }
  [[nodiscard]] std::size_t size() const { return commits_.size(); }

 private:
  struct Commit {
    std::uint32_t xid{0};
    WalTime at{};
  };
  std::deque<Commit> commits_;
};

/// Whether the transaction had ended when the snapshot was taken. The stream has only the lower
/// half of ids.
[[nodiscard]] bool has_ended(const Snapshot& snapshot, std::uint32_t xid);

/// What was received, and when the server is told.
class WalPosition {
 public:
  /// The server ends a session that is silent for longer (wal_sender_timeout).
  static constexpr std::chrono::seconds kSenderTimeout{15};
  /// A reply goes out so often in any case, and asks for an answer.
  static constexpr std::chrono::seconds kAsk{5};
  /// A reply goes out so often while the position moves.
  static constexpr std::chrono::seconds kConfirm{1};

  explicit WalPosition(WalTime now) : heard_at_(now), replied_at_(now), asked_at_(now) {}

  void read(const WalMessage& message, WalTime now);
  struct Reply {
    Lsn lsn{0};
    bool ask{false};
  };
  /// The reply that is due, which counts as sent.
  [[nodiscard]] std::optional<Reply> due(WalTime now);
  /// When the next reply may be due, if nothing is received.
  [[nodiscard]] WalTime next_at() const;
  /// Whether the server has not answered for so long that the connection is taken for lost.
  [[nodiscard]] bool is_silent(WalTime now) const { return now - heard_at_ >= kSenderTimeout; }

 private:
  Lsn received_{0};
  Lsn confirmed_{0};
  bool wanted_{false};
  WalTime heard_at_;
  WalTime replied_at_;
  WalTime asked_at_;
};

/// Why the log is not followed.
struct WalTrouble {
  std::string reason{};  ///< A few words; they are part of the name of a session.
  std::string hint{};
  bool lasting{false};  ///< Whether it stays until a person acts.

  [[nodiscard]] bool operator==(const WalTrouble&) const = default;
};

/// What forbids a stream; nullopt if nothing does.
[[nodiscard]] std::optional<WalTrouble> find_trouble(const WalFacts& facts);
/// What the failure of the replication connection, the slot or the stream means.
[[nodiscard]] WalTrouble explain_failure(const Error& error);

/// How long the feed pauses, and how long it waits for a slot.
class WalAttempts {
 public:
  explicit WalAttempts(std::uint64_t seed) : seed_(seed) {}

  void streaming(WalTime now) { since_ = now; }
  /// The attempt or the stream has failed. Returns the pause before the next attempt.
  [[nodiscard]] std::chrono::nanoseconds failed(WalTime now);
  /// The slot was not made within patience().
  void impatient() { ++waits_; }
  /// How long the transactions may run that delay a slot: meanwhile the slot keeps WAL.
  [[nodiscard]] std::chrono::seconds patience() const;

 private:
  const std::uint64_t seed_;
  std::optional<WalTime> since_{};
  int failures_{0};
  int waits_{0};
};

}  // namespace outbox::store::postgres
