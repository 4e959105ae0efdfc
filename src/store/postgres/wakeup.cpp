// The relay's part of the armed wake-up (docs/stores/postgres.md, "Wake-up"). The writer's part is
// the default of event.xid.
//
// A writer holds a shared lock from its first event to its commit, and notifies when it cannot get
// the lock. A relay is armed while it holds the lock exclusively: then no writer is in flight, and
// every later one notifies. Locks are released after a commit has become visible, so no wake-up is
// lost.
//
// Only one relay can be armed. While it is, other relays listen: every commit notifies all of them.
// When the armed relay wakes up by itself there is a moment without notifications, in which another
// relay may miss a commit; it finds the event at the end of its idle interval.
#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "pg/errors.hpp"
#include "store/postgres/parts.hpp"
#include "store/wait.hpp"

namespace outbox::store::postgres {
namespace {

using Clock = std::chrono::steady_clock;

/// The server ends an armed session that is silent for 3 s (queries.hpp).
constexpr std::chrono::seconds kPingEvery{1};
constexpr std::chrono::seconds kDropEvery{10};

class PostgresWakeup final : public Wakeup {
 public:
  PostgresWakeup(std::optional<Connection> connection, EventFd interrupted)
      : connection_(std::move(connection)), interrupted_(std::move(interrupted)) {}

  [[nodiscard]] Status listen() {
    if (!connection_) return {};
    OUTBOX_TRY(const Rows channel, connection_->exec(&Queries::wake_channel));
    // A pooler that shares connections invents the process id that it reports to libpq.
    direct_ = channel.int4(0, 1) == PQbackendPID(connection_->native());
    if (!direct_) {
      log::info("wake-up is not armed, the relay polls instead",
                {{"reason", "the connection goes through a pooler"}});
      return {};
    }
    const Query listen_there = postgres::listen(channel.bytes(0, 0));
    auto listening = connection_->exec(listen_there);
    return listening ? Status{} : pass(listening);
  }

  /// Drops notifications now and then. A relay that follows the log does not wait for any, and what
  /// it does not read would fill the server's queue.
  [[nodiscard]] Result<Told> told(std::string_view /*snapshot*/) override {
    if (direct_ && Clock::now() >= drop_at_) {
      drop_at_ = Clock::now() + kDropEvery;
      OUTBOX_TRY(drop_notifications());
    }
    return Told::nothing;
  }
  [[nodiscard]] FeedState feed() const override { return {}; }

  [[nodiscard]] Result<bool> arm() override {
    if (!direct_) return false;
    if (armed_ || listening_) return true;
    // Earlier notifications belong to polls that are done.
    (void)take_notifications(connection_->native());
    OUTBOX_TRY(const Rows armed, connection_->exec(&Queries::arm));
    armed_ = armed.boolean(0, 0);
    listening_ = armed_ || armed.boolean(0, 1);
    return listening_;
  }

  [[nodiscard]] Status disarm() override {
    listening_ = false;
    if (!std::exchange(armed_, false)) return {};
    return connection_->run(&Queries::disarm);
  }

  [[nodiscard]] Result<Wakeup::Wake> wait(Duration longest) override {
    const auto until = Clock::now() + std::min<Duration>(longest, std::chrono::hours(1));
    auto ping_at = Clock::now() + kPingEvery;
    for (;;) {
      if (listening_) {
        OUTBOX_TRY(const bool woken, notified());
        if (woken) return Wake::notified;
      }
      if (armed_ && Clock::now() >= ping_at) {
        OUTBOX_TRY(connection_->run(&Queries::ping));
        ping_at = Clock::now() + kPingEvery;
        continue;  // the answer may have brought a notification
      }
      if (Clock::now() >= until) return Wake::timeout;
      const int socket = listening_ ? PQsocket(connection_->native()) : -1;
      OUTBOX_TRY(const bool interrupted,
                 wait_for(interrupted_, socket, armed_ ? std::min(until, ping_at) : until));
      if (interrupted) return Wake::interrupted;
    }
  }

  /// A relay that only listens returns false, since it may be the last one now.
  [[nodiscard]] bool stays_armed() const override { return armed_; }
  void interrupt() noexcept override { interrupted_.signal(); }
  [[nodiscard]] std::uint64_t statements() const override {
    return connection_ ? connection_->statements() : 0;
  }

 private:
  [[nodiscard]] Result<bool> notified() {
    PGconn* const connection = connection_->native();
    if (PQconsumeInput(connection) != 1)
      return fail(pg::lost_connection(connection, "wait for a wake-up"));
    return take_notifications(connection);
  }

  [[nodiscard]] Status drop_notifications() {
    if (listening_) return {};
    auto dropped = notified();
    return dropped ? Status{} : pass(dropped);
  }

  std::optional<Connection> connection_;
  EventFd interrupted_;
  Clock::time_point drop_at_{Clock::now() + kDropEvery};
  bool direct_{false};  ///< Whether no pooler shares the connection.
  bool armed_{false};
  bool listening_{false};  ///< Whether this relay or another one is armed.
};

}  // namespace

Result<std::unique_ptr<Wakeup>> make_wakeup(std::optional<Connection> connection) {
  OUTBOX_TRY(EventFd interrupted, EventFd::create());
  auto wakeup = std::make_unique<PostgresWakeup>(std::move(connection), std::move(interrupted));
  OUTBOX_TRY(wakeup->listen());
  return wakeup;
}

}  // namespace outbox::store::postgres
