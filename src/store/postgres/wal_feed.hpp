// Follows the write-ahead log for all relays of this process on one store, and tells them of
// commits that wrote events (docs/design/feed.md). It may fail at any time: relays poll meanwhile.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <outbox/relay.hpp>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/event_fd.hpp"
#include "base/mutex.hpp"
#include "store/postgres/connection.hpp"
#include "store/postgres/parts.hpp"
#include "store/postgres/wal_connection.hpp"
#include "store/postgres/wal_core.hpp"

namespace outbox::store::postgres {

class WalFeed {
 public:
  /// The feed of this process for the store. It is made if there is none, and ends when nobody
  /// holds it any more.
  [[nodiscard]] static Result<std::shared_ptr<WalFeed>> of_process(const StoreOptions& options,
                                                                   Feed feed);

  WalFeed(const WalFeed&) = delete;
  WalFeed& operator=(const WalFeed&) = delete;
  WalFeed(WalFeed&&) = delete;
  WalFeed& operator=(WalFeed&&) = delete;
  ~WalFeed();

  // Any thread may call these.

  /// What the stream has told.
  struct News {
    std::uint64_t stream{0};   ///< The number of the stream; 0 while none counts.
    std::uint64_t commits{0};  ///< How many commits all streams have told of.
  };
  [[nodiscard]] News news() const;
  /// Adds the commits from number `from` on. Returns the number of the next one.
  [[nodiscard]] std::uint64_t take_commits(std::uint64_t from, UnseenCommits& into) const;
  [[nodiscard]] FeedState state() const;
  /// Signals the bell whenever there are news, until remove_bell().
  void add_bell(const EventFd& bell);
  void remove_bell(const EventFd& bell);

 private:
  WalFeed(StoreOptions options, Feed feed, EventFd interrupted);

  void run(const std::stop_token& stop);
  [[nodiscard]] WalTrouble follow(const std::stop_token& stop);
  [[nodiscard]] Result<WalFacts> ask_facts();
  [[nodiscard]] Result<bool> make_slot(WalConnection& stream, const std::stop_token& stop);
  void name_blocker(int backend);
  [[nodiscard]] Status stream(WalConnection& stream, const std::stop_token& stop);
  void note_up();
  void note_trouble(const WalTrouble& trouble);
  void show(const FeedState& state);
  void name_session(const std::string& text);
  void tell(const std::vector<std::uint32_t>& xids);

  const StoreOptions options_;
  const bool wanted_;  ///< Whether it is trouble when the log cannot be followed.
  const std::shared_ptr<const Queries> queries_;
  const std::string session_;  ///< How the name of the connection for questions begins.
  const EventFd interrupted_;

  // Used by the thread only.
  std::optional<Connection> asking_;
  bool direct_{false};  ///< Whether no pooler shares that connection, so that it may have a name.
  WalAttempts attempts_;
  WalTrouble told_{};    ///< The trouble that was logged last; empty while there is none.
  std::string blocker_;  ///< Who blocks the slot, as it was logged.

  mutable Mutex mutex_;
  std::uint64_t streams_ OUTBOX_GUARDED_BY(mutex_){0};
  std::optional<WalTime> up_at_ OUTBOX_GUARDED_BY(mutex_);
  std::uint64_t commits_ OUTBOX_GUARDED_BY(mutex_){0};
  std::deque<std::pair<std::uint32_t, WalTime>> newest_ OUTBOX_GUARDED_BY(mutex_);
  FeedState state_ OUTBOX_GUARDED_BY(mutex_);
  std::vector<const EventFd*> bells_ OUTBOX_GUARDED_BY(mutex_);

  std::jthread thread_;
};

/// The wake-up of a relay: the stream while there is one, else `beneath`.
[[nodiscard]] Result<std::unique_ptr<Wakeup>> make_wal_wakeup(std::unique_ptr<Wakeup> beneath,
                                                              std::shared_ptr<WalFeed> feed);

/// How the name of the session begins in which the feed of a process says what it does.
[[nodiscard]] std::string feed_session_name();

}  // namespace outbox::store::postgres
